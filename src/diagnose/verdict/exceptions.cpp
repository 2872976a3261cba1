#include "diagnose/verdict/exceptions.h"

#include <fmt/format.h>

#include "diagnose/hypotheses/confidence.h"

namespace tensordiff {
namespace {

struct Name {
  std::string_view code;
  std::string sentence;
};

// What a pair that fits `fits` lacks, where its kind follows `rule`.
Name name_of(const Form& rule, const Form& fits) {
  if (rule.merge.kind != MergeKind::none && fits.merge.kind == MergeKind::none)
    return {"not_merged", "this weight is not merged; all others that could be are"};
  if (rule.merge.kind == MergeKind::none && fits.merge.kind != MergeKind::none)
    return {"not_merged", "this weight is merged; the others that could be are not"};
  if (rule.merge.scale != fits.merge.scale)
    return {"merge_scale", "the update is merged with another scale"};
  if (rule.moves_axes() && !fits.moves_axes())
    return {"not_transposed",
            "B has this tensor as A has it; all others of its kind are converted"};
  if (!rule.moves_axes() && fits.moves_axes())
    return {"not_transposed", "B has this tensor transposed; all others of its kind are not"};
  if (rule.rows.order == RowOrder::rope && fits.rows.order == RowOrder::as_is)
    return {"rope_rows_missing", "the q/k row order of RoPE was not changed for this tensor"};
  if (rule.rows.order == RowOrder::as_is && fits.rows.order == RowOrder::rope)
    return {"rope_rows_changed", "the q/k row order of RoPE was changed for this tensor"};
  if (rule.parts != fits.parts)
    return {"parts_exchanged", "the parts of the tensor are stored in another order"};
  if (rule.rows != fits.rows)
    return {"row_order", "the rows are in another order than in the others of its kind"};
  if (rule.whole != fits.whole)
    return {"parts_exchanged", "the parts of the fused tensor are stored in another order"};
  return {"offset", "the values follow another function than in the others of its kind"};
}

}  // namespace

std::vector<Finding> explain_exceptions(const Conversion& conversion,
                                        const std::vector<Pair>& pairs, const OperandsOf& operands,
                                        std::span<const std::optional<double>> errors) {
  std::vector<Finding> findings;
  for (const Exception& exception : conversion.exceptions) {
    const std::optional<AlignedPair> fitted =
        carried_out(exception.fits, operands(pairs[exception.pair]));
    if (!fitted || !errors[exception.pair]) continue;
    const Result<Comparison> compared = compare(*fitted, {});
    if (!compared.ok() || !compared.value().diff.rel_l2) continue;
    const double before = *errors[exception.pair];
    const double after = *compared.value().diff.rel_l2;
    if (after >= before) continue;  // It explains nothing.
    const Name name = name_of(exception.rule, exception.fits);
    Finding finding;
    finding.code = name.code;
    finding.pair = exception.pair;
    finding.confidence = hypotheses::confidence_of(finding, hypotheses::Basis::conversion);
    finding.explanation = fmt::format("{} (its kind: {}; this one: {}){}{}", name.sentence,
                                      text_of(exception.rule), text_of(exception.fits),
                                      exception.reason.empty() ? "" : ": ", exception.reason);
    finding.residual_before = before;
    finding.residual_after = after;
    findings.push_back(std::move(finding));
  }
  return findings;
}

Finding shift_finding(std::size_t pair, char side, uint64_t rows, std::optional<double> error) {
  const char other = side == 'a' ? 'B' : 'A', own = side == 'a' ? 'A' : 'B';
  Finding finding;
  finding.code = "shifted_rows";
  finding.pair = pair;
  finding.confidence = hypotheses::confidence_of(finding, hypotheses::Basis::conversion);
  finding.explanation =
      rows == 1 ? fmt::format("{} has 1 row before those of {}: each index means the next row", own,
                              other)
                : fmt::format("{} has {} rows before those of {}: padding belongs at the end", own,
                              rows, other);
  finding.parameters = {{"rows", static_cast<double>(rows)}};
  finding.residual_before = error.value_or(1);
  finding.residual_after = 0;
  return finding;
}

}  // namespace tensordiff
