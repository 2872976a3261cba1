#include "report/auxiliary.h"

#include <map>

#include "base/text.h"
#include "formats/statistics.h"

namespace tensordiff {
namespace {

// Takes out what is no weight, and says what it is instead.
std::vector<Report::Unpaired> take_auxiliary(std::vector<Report::Unpaired>& rows,
                                             const Catalog& catalog,
                                             const std::vector<Leftover>& which) {
  std::vector<Report::Unpaired> weights, others;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string& kind = catalog.tensors[which[i].tensor].auxiliary;
    if (!kind.empty()) rows[i].why = kind;
    (kind.empty() ? weights : others).push_back(std::move(rows[i]));
  }
  rows = std::move(weights);
  return others;
}

// Says in one line what one side has beside its weights.
void note_auxiliary(const std::vector<Report::Unpaired>& rows, std::string_view side,
                    std::vector<std::string>& notes) {
  if (rows.empty()) return;
  std::map<std::string_view, std::size_t> kinds;
  for (const Report::Unpaired& row : rows) ++kinds[row.why];
  std::string list;
  for (const auto& [kind, count] : kinds)
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", kind, count);
  notes.push_back(fmt::format("only in {}, not weights: {}", side, list));
}

// Says once for each kind what was made from packed weights.
void note_made(const Catalog& catalog, std::string_view side, std::vector<std::string>& notes) {
  std::map<std::string_view, std::size_t> kinds;
  for (const Tensor& tensor : catalog.tensors)
    if (!tensor.made_from.empty() && !tensor.made_from.starts_with(kStatisticsMark))
      ++kinds[tensor.made_from];
  for (const auto& [from, count] : kinds)
    notes.push_back(fmt::format("{}: {} weight{} dequantized from {}", side, count,
                                count == 1 ? " was" : "s were", from));
}

}  // namespace

void list_auxiliary(const Catalog& a, const Catalog& b, const Matching& matching, Report& report) {
  note_made(a, "A", report.notes);
  note_made(b, "B", report.notes);
  report.auxiliary_a = take_auxiliary(report.only_a, a, matching.only_a);
  report.auxiliary_b = take_auxiliary(report.only_b, b, matching.only_b);
  note_auxiliary(report.auxiliary_a, "A", report.notes);
  note_auxiliary(report.auxiliary_b, "B", report.notes);
}

}  // namespace tensordiff
