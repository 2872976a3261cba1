// An earlier result as what is known already: --baseline.
//
// Differences that it has, no larger than it has them, are known and no reason to fail; what is
// new or has grown is. What cannot be read is trouble, whether or not it was before.

#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "report/report.h"

namespace tensordiff {

class Baseline {
 public:
  // From the text of an `-o report`.
  static Result<Baseline> parse(std::string_view json);

  // Marks each difference of the report as known, grown or new, and sums it up again.
  void judge(Report& report) const;

 private:
  struct Row {
    Status status = Status::identical;
    std::optional<double> rel_l2;
    uint64_t nonfinite_mismatch = 0;
  };
  // Why a row is worse than it was; "" where it is not.
  static std::string growth(const Row& before, const PairRow& now);

  std::map<std::string, Row> rows_;  // By the names of both sides.
  std::set<std::string> only_a_, only_b_;
};

}  // namespace tensordiff
