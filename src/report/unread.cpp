#include "report/unread.h"

#include <algorithm>

#include "tensor/stored.h"

namespace tensordiff {
namespace {

constexpr const char* kIdenticalByHash = "identical by hash: values not read";

}  // namespace

void compare_shapes(const Tensor& a, const Tensor& b, PairRow& row) {
  const bool same = a.view.shape == b.view.shape;
  row.shape = same ? a.view.shape : Shape{};
  row.comparison.status = same ? Status::same_shape : Status::different;
  row.message = same ? "shapes match, values not compared" : "shapes differ, values not compared";
}

bool compare_hashes(const AlignedPair& pair, const CompareOptions& options, PairRow& row) {
  // NaN at the same place may count as a difference, and only values can tell.
  if (!options.equal_nan || !pair.copies.empty() || !same_remote_elements(pair.a, pair.b))
    return false;
  row.comparison.status = Status::identical;
  row.message = kIdenticalByHash;
  row.views = pair;
  return true;
}

void note_hashes(Report& report) {
  const auto count = std::ranges::count(report.pairs, kIdenticalByHash, &PairRow::message);
  if (count > 0)
    report.notes.push_back(
        fmt::format("{} pair{} identical by hash: the servers give one hash for both files, so "
                    "their values were not read (--remote-read-all reads them)",
                    count, count == 1 ? " is" : "s are"));
}

}  // namespace tensordiff
