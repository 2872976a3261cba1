#include "report/divergence_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/answer_text.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

constexpr std::size_t kLengthMax = 1000;

}  // namespace

std::optional<FirstDivergence> first_divergence(const std::vector<PairRow>& rows) {
  for (const PairRow& row : rows) {
    const Status status = row.comparison.status;
    // An expert that gets a token more, or less, where rounding decides.
    const bool forgiven = status == Status::incomparable && row.verdict == Verdict::precision;
    if (status == Status::different || (status == Status::incomparable && !forgiven))
      return FirstDivergence{row.index, false,
                             "the first pair, in display order, that is not close"};
  }
  return std::nullopt;
}

std::string place_of(const PairRow& row) {
  if (row.layer && !row.stage.empty())
    return fmt::format("in layer {} at {}", *row.layer, printable(row.stage));
  return "at " + names_of(row);
}

const Finding* finding_at(const Report& report, std::size_t pair) {
  const auto found = std::ranges::find(report.findings, pair, &Finding::pair);
  return found == report.findings.end() ? nullptr : &*found;
}

std::string cause_of(const Finding& finding) {
  std::string text = printable(finding.explanation, kLengthMax);
  const auto &before = finding.residual_before, &after = finding.residual_after;
  if (before && after && *before != *after)
    text += fmt::format("; residual {} → {}", short_number(*before), short_number(*after));
  return text;
}

std::string cause_at(const Report& report, std::size_t pair) {
  const Finding* finding = finding_at(report, pair);
  return finding ? cause_of(*finding) : printable(message_of(report.pairs[pair]), kLengthMax);
}

std::string confidence_text(double confidence) {
  const double percent = 100 * confidence;
  if (confidence >= 1) return "100 %";
  if (percent > 99) return fmt::format("{:.1f} %", std::floor(percent * 10) / 10);
  return fmt::format("{:.0f} %", percent);
}

std::string capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

namespace {

// A file of one array has no name for it.
std::string name_or_array(const TensorId& id) {
  return id.name.empty() ? "the array" : printable(id.name);
}

}  // namespace

std::string name_of_a(const PairRow& row) { return name_or_array(row.a); }

std::string names_of(const PairRow& row) {
  const std::string a = name_or_array(row.a), b = name_or_array(row.b);
  return a == b ? a : a + " → " + b;
}

std::string needed_line(const Report& report, const Style& style) {
  const PairRow* worst = nullptr;
  for (const PairRow& row : report.pairs) {
    const Diff& diff = row.comparison.diff;
    if (diff.compared == 0) continue;
    if (!diff.rtol_needed)
      return labelled("tolerance", fmt::format("no rtol passes for {}", names_of(row)), style);
    if (!worst || *diff.rtol_needed > *worst->comparison.diff.rtol_needed) worst = &row;
  }
  if (!worst) return "";
  const double needed = *worst->comparison.diff.rtol_needed;
  if (needed == 0) return labelled("tolerance", "all within atol", style);
  return labelled("tolerance",
                  fmt::format("the smallest rtol that passes is {}, for {}", short_number(needed),
                              names_of(*worst)),
                  style);
}

}  // namespace tensordiff
