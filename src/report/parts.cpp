#include "report/parts.h"

#include "align/part_note.h"
#include "base/text.h"

namespace tensordiff {

namespace {

// "{} that {} {}: NAME: MESSAGE", for the pairs that agree and whose message tells of it.
void note_agreement(Report& report, bool (*tells)(std::string_view), std::string_view how) {
  std::size_t count = 0;
  const PairRow* first = nullptr;
  for (const PairRow& row : report.pairs) {
    if (row.comparison.status > Status::close || !tells(row.message)) continue;
    if (count++ == 0) first = &row;
  }
  if (count == 0) return;
  report.notes.push_back(fmt::format(
      "{} that {} compared {}: '{}': {}", count == 1 ? "one pair" : human_count(count) + " pairs",
      count == 1 ? "agrees was" : "agree were", how, printable(first->a.name), first->message));
}

}  // namespace

void note_parts(Report& report) {
  note_agreement(report, tells_of_a_part, "in part only");
  note_agreement(
      report, [](std::string_view message) { return message.find(kOtherOrder) != message.npos; },
      "with axes moved");
}

}  // namespace tensordiff
