#include "report/predictions.h"

#include <algorithm>

#include "logits/compare_logits.h"

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

bool is_settled(Status status) { return status <= Status::equal || status >= Status::incomparable; }

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
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i]) continue;
    Status& status = report.pairs[*rows[i]].comparison.status;
    if (is_settled(status)) continue;
    // A cause that was found stands; what is merely beyond a tolerance is for the predictions.
    const bool explained = std::ranges::any_of(report.findings, [&](const Finding& finding) {
      return finding.pair == *rows[i] && !finding.convention;
    });
    if (different[i] || (!of_tokens && explained && status == Status::different))
      status = Status::different;
    else
      status = Status::close;
  }
  // The alternatives of each token are a part of what is predicted, not a result of their own.
  for (PairRow& row : report.pairs)
    if (of_tokens && is_alternatives(row.a.name) && !is_settled(row.comparison.status) &&
        comparison.verdict != LogitsVerdict::different)
      row.comparison.status = Status::close;
  const auto first = std::ranges::find_if(report.pairs, [](const PairRow& row) {
    return row.comparison.status == Status::different ||
           row.comparison.status == Status::incomparable;
  });
  if (first == report.pairs.end())
    report.first_divergence.reset();
  else if (!report.first_divergence || of_tokens)
    report.first_divergence = {first->index, true, "predictions differ here first"};
  if (of_tokens) report.findings.clear();
  for (Finding finding : comparison.findings) {
    const bool known =
        std::ranges::find(report.findings, finding.code, &Finding::code) != report.findings.end();
    // The same under another name: the scale of all logits is a temperature.
    if (known || (first == report.pairs.end() && !finding.convention)) continue;
    finding.pair = first == report.pairs.end() ? rows[finding.pair].value_or(0) : first->index;
    report.findings.push_back(std::move(finding));
  }
  report.logits = std::make_shared<const LogitsComparison>(comparison);
}

}  // namespace tensordiff
