#include "report/baseline.h"

#include <fmt/format.h>

#include "base/json.h"
#include "report/divergence_text.h"
#include "report/wire.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

// Sums differ in their last digits from one machine to the next.
constexpr double kGrowthMin = 1.001;

// No name holds a newline twice over by chance; even then only the wording would be wrong.
std::string key_of(std::string_view a, std::string_view b) { return fmt::format("{}\n{}", a, b); }

bool differs(Status status) { return status >= Status::different; }

}  // namespace

Result<Baseline> Baseline::parse(std::string_view text) {
  const Json json = TRY(Json::parse(text));
  // What is read here was the same in both.
  const std::string_view schema = json["schema"].string();
  if (schema != wire::kSchema && schema != "tensordiff.report/1")
    return Error("not a result of -o report: its schema is not {}", wire::kSchema);
  Baseline baseline;
  for (const Json& pair : json["pairs"].array()) {
    Row& row = baseline.rows_[key_of(pair["name_a"].string(), pair["name_b"].string())];
    // A word that is none of ours is no difference that was known.
    row.status = status_named(pair["status"].string()).value_or(Status::identical);
    row.rel_l2 = pair["diff"]["rel_l2"].number();
    row.nonfinite_mismatch = pair["diff"]["nonfinite_mismatch"].u64().value_or(0);
  }
  for (const Json& tensor : json["only_a"].array())
    baseline.only_a_.emplace(tensor["name"].string());
  for (const Json& tensor : json["only_b"].array())
    baseline.only_b_.emplace(tensor["name"].string());
  return baseline;
}

std::string Baseline::growth(const Row& before, const PairRow& now) {
  const Diff& diff = now.comparison.diff;
  const Status status = now.comparison.status;
  if (status != before.status && status > Status::different)
    return fmt::format("was {}, is {}", name_of(before.status), name_of(status));
  if (diff.nonfinite_mismatch > before.nonfinite_mismatch)
    return fmt::format("NaN/Inf mismatch at {} elements, was {}", diff.nonfinite_mismatch,
                       before.nonfinite_mismatch);
  if (diff.rel_l2 && before.rel_l2 && *diff.rel_l2 > kGrowthMin * *before.rel_l2)
    return fmt::format("relative L2 error {}, was {}", short_number(*diff.rel_l2),
                       short_number(*before.rel_l2));
  return "";
}

void Baseline::judge(Report& report) const {
  BaselineDelta& delta = report.baseline.emplace();
  for (PairRow& row : report.pairs) {
    const auto found = rows_.find(key_of(row.a.name, row.b.name));
    const bool was = found != rows_.end() && differs(found->second.status);
    const bool is = differs(row.comparison.status);
    if (was && !is) ++delta.gone;
    if (!is || row.comparison.status == Status::error) continue;
    const std::string grown = was ? growth(found->second, row) : "";
    row.novelty = !was ? Novelty::added : grown.empty() ? Novelty::known : Novelty::grown;
    if (!was)
      delta.added.push_back(names_of(row));
    else if (!grown.empty())
      delta.grown.push_back(names_of(row) + ": " + grown);
    else
      ++delta.known;
  }
  const auto unpaired = [&](auto& tensors, const std::set<std::string>& before) {
    for (Report::Unpaired& tensor : tensors) {
      if (!tensor.is_difference() || !tensor.id.fault.empty()) continue;
      const bool was = before.contains(tensor.id.name);
      tensor.novelty = was ? Novelty::known : Novelty::added;
      if (was)
        ++delta.known;
      else
        delta.added.push_back(tensor.id.name);
    }
  };
  unpaired(report.only_a, only_a_);
  unpaired(report.only_b, only_b_);
  report.summary = summarise(report);
}

}  // namespace tensordiff
