#include "report/predictions.h"

#include <algorithm>

#include "logits/compare_logits.h"
#include "match/checkpoint.h"

namespace tensordiff {
namespace {

// The row of each sequence; nothing where it was not paired.
std::vector<std::optional<std::size_t>> rows_of(const LogitsComparison& comparison,
                                                const Matching& matching) {
  std::vector<std::optional<std::size_t>> rows;
  for (const std::size_t tensor : comparison.tensors_a) {
    const auto at = std::ranges::find(matching.pairs, tensor, &Pair::a);
    rows.push_back(at == matching.pairs.end()
                       ? std::nullopt
                       : std::optional(static_cast<std::size_t>(at - matching.pairs.begin())));
  }
  return rows;
}

// A row is what its predictions are, whatever became of its elements: positions or words that only
// one side has are told in notes.
void settle(PairRow& row, bool different) {
  Status& status = row.comparison.status;
  if (status == Status::error) return;
  if (different)
    status = Status::different;
  else if (status > Status::equal)
    status = Status::close;
}

// Which sequences are beyond what rounding leaves; the worst one where only all together are.
std::vector<bool> different_ones(const LogitsComparison& comparison) {
  const std::vector<double>& errors = comparison.diff.ratio_errors;
  std::vector<bool> different(errors.size());
  if (comparison.verdict != LogitsVerdict::different || errors.empty()) return different;
  for (std::size_t i = 0; i < errors.size(); ++i) different[i] = errors[i] > kRatioErrorMax;
  const auto worst = std::ranges::max_element(errors) - errors.begin();
  different[static_cast<std::size_t>(worst)] = true;
  return different;
}

}  // namespace

void judge_predictions(const Catalog& a, const Catalog& b, const Matching& matching,
                       const ToleranceRules* rules, Report& report) {
  if (!holds_only_sequences(a) || !holds_only_sequences(b)) return;
  const Result<LogitsComparison> result = compare_logits(a, b, rules);
  if (!result.ok()) {
    report.notes.push_back("predictions were not compared: " + result.error().message());
    return;
  }
  const LogitsComparison& comparison = result.value();
  const bool of_tokens = comparison.diff.vocabulary == 0;
  const std::vector<std::optional<std::size_t>> rows = rows_of(comparison, matching);
  const std::vector<bool> different = different_ones(comparison);
  const bool differs = comparison.verdict == LogitsVerdict::different;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i]) settle(report.pairs[*rows[i]], different[i]);
  // The alternatives of each token are a part of what is predicted, not a result of their own.
  for (PairRow& row : report.pairs)
    if (of_tokens && is_alternatives(row.a.name))
      settle(row, differs && row.comparison.status >= Status::different);
    else if (is_integer(row.a.dtype))  // Ids and masks, by which sequences were lined up.
      settle(row, false);
  const auto first = std::ranges::find_if(
      report.pairs, [](const PairRow& row) { return row.comparison.status == Status::different; });
  report.first_divergence.reset();
  if (first != report.pairs.end())
    report.first_divergence = {first->index, true, "predictions differ here first"};
  const bool explained = std::ranges::any_of(
      comparison.findings, [](const Finding& finding) { return !finding.convention; });
  // What the tensors by themselves tell stands where predictions tell nothing better.
  if (of_tokens || explained || !differs) report.findings.clear();
  for (Finding finding : comparison.findings) {
    const bool known =
        std::ranges::find(report.findings, finding.code, &Finding::code) != report.findings.end();
    if (known || (first == report.pairs.end() && !finding.convention)) continue;
    finding.pair = first == report.pairs.end() ? rows[finding.pair].value_or(0) : first->index;
    report.findings.push_back(std::move(finding));
  }
  report.logits = std::make_shared<const LogitsComparison>(comparison);
}

bool hold_parts(const Catalog& a, const Catalog& b) {
  return are_dumps(a, b) || (holds_only_sequences(a) && holds_only_sequences(b));
}

}  // namespace tensordiff
