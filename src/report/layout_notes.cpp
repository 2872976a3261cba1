#include "report/layout_notes.h"

#include <algorithm>

#include "base/text.h"
#include "report/wording.h"

namespace tensordiff {

namespace {

// "{} that {} {}: NAME: MESSAGE", for the pairs that agree and whose layout is `such`.
template <class Such>
void note_agreement(Report& report, const Such& such, std::string_view how) {
  std::size_t count = 0;
  const PairRow* first = nullptr;
  for (const PairRow& row : report.pairs) {
    if (row.comparison.status > Status::close || !such(row.notes)) continue;
    if (count++ == 0) first = &row;
  }
  if (count == 0) return;
  report.notes.push_back(fmt::format(
      "{} that {} compared {}: '{}': {}", count == 1 ? "one pair" : human_count(count) + " pairs",
      count == 1 ? "agrees was" : "agree were", how, printable(first->a.name), message_of(*first)));
}

}  // namespace

void note_layouts(Report& report) {
  using enum LayoutNote::Kind;
  const auto turned = std::ranges::count_if(
      report.pairs, [](const PairRow& row) { return has(row.notes, rope_rows); });
  if (turned > 0)
    report.notes.push_back(fmt::format(
        "q and k: {} in {} pairs, halves on one side and neighbours on the other; compared in one "
        "order",
        kRopeRows, turned));
  note_agreement(report, leaves_out, "in part only");
  note_agreement(
      report, [](const LayoutNotes& notes) { return has(notes, other_order); }, "with axes moved");
}

}  // namespace tensordiff
