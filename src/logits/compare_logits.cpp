#include "logits/compare_logits.h"

#include <algorithm>

#include "diagnose/hypotheses/confidence.h"
#include "logits/gates.h"
#include "logits/line_up.h"

namespace tensordiff {
namespace {

LogitsVerdict verdict_of(const LogitsComparison& comparison, bool gated) {
  const LogitsDiff& diff = comparison.diff;
  const LogitsVerdict alike = diff.equal ? LogitsVerdict::same : LogitsVerdict::close;
  if (gated) return comparison.failed.empty() ? alike : LogitsVerdict::different;
  const bool explained = std::ranges::any_of(
      comparison.findings, [](const Finding& finding) { return !finding.convention; });
  if (explained || diff.unusable > 0 || diff.ratio_error > kRatioErrorMax)
    return LogitsVerdict::different;
  return alike;
}

}  // namespace

std::string_view name_of(LogitsVerdict verdict) {
  constexpr std::string_view kNames[] = {"same", "close", "different"};
  return kNames[static_cast<std::size_t>(verdict)];
}

Result<LogitsComparison> compare_logits(const Catalog& a, const Catalog& b,
                                        const ToleranceRules* rules) {
  std::vector<TokenSequence> of_a = TRY(sequences_of(a));
  std::vector<TokenSequence> of_b = TRY(sequences_of(b));
  LinedUp lined = TRY(line_up(std::move(of_a), std::move(of_b)));
  LogitsComparison comparison;
  for (const SequencePair& pair : lined.pairs) {
    comparison.names.push_back(pair.a.name);
    comparison.tensors_a.push_back(pair.a.tensor);
  }
  comparison.diff = TRY(measure(lined.pairs));
  if (comparison.diff.positions + comparison.diff.unusable == 0)
    return Error("no position in common");
  comparison.notes = std::move(lined.notes);
  comparison.findings = std::move(lined.findings);
  for (Finding& finding : causes_of(lined.pairs, comparison.diff))
    comparison.findings.push_back(std::move(finding));
  for (Finding& finding : comparison.findings)
    finding.confidence = hypotheses::confidence_of(finding, hypotheses::Basis::predictions);
  const ToleranceRule* rule = rules ? rules->find(comparison.names[0]) : nullptr;
  const bool gated = rule && gates_logits(*rule);
  if (gated) comparison.failed = failed_gates(*rule, comparison.diff);
  comparison.verdict = verdict_of(comparison, gated);
  return comparison;
}

}  // namespace tensordiff
