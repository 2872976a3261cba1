#include "report/parts.h"

#include "align/part_note.h"
#include "base/text.h"

namespace tensordiff {

void note_parts(Report& report) {
  std::size_t count = 0;
  const PairRow* first = nullptr;
  for (const PairRow& row : report.pairs) {
    if (row.comparison.status > Status::close || !tells_of_a_part(row.message)) continue;
    if (count++ == 0) first = &row;
  }
  if (count == 0) return;
  report.notes.push_back(fmt::format("{} that {} compared in part only: '{}': {}",
                                     count == 1 ? "one pair" : human_count(count) + " pairs",
                                     count == 1 ? "agrees was" : "agree were",
                                     printable(first->a.name), first->message));
}

}  // namespace tensordiff
