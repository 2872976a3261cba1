#include "report/layout_notes.h"

#include <gtest/gtest.h>

#include "report/wording.h"

namespace tensordiff {
namespace {

using Kind = LayoutNote::Kind;

PairRow row(Status status, LayoutNotes notes) {
  PairRow row;
  row.a.name = "w";
  row.comparison.status = status;
  row.notes = std::move(notes);
  return row;
}

const LayoutNote kPart = {Kind::only_beginning, 'b', 0, 24, 20};

TEST(LayoutNotes, PartsAreToldWhereTheyAgree) {
  Report report;
  report.pairs = {row(Status::identical, {}), row(Status::equal, {kPart})};
  note_layouts(report);
  EXPECT_EQ(report.notes,
            std::vector<std::string>{"one pair that agrees was compared in part only: 'w': B has 4 "
                                     "more rows on axis 0: only the first 20 are compared"});
  report.notes.clear();
  report.pairs.push_back(row(Status::close, {{Kind::one_of_stack, 'a', 0, 8, 1}}));
  note_layouts(report);
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_TRUE(report.notes[0].starts_with("2 pairs that agree were compared in part only"));
}

TEST(LayoutNotes, AxesInAnotherOrderAreToldToo) {
  Report report;
  report.pairs = {row(Status::equal, {{Kind::other_order}})};
  note_layouts(report);
  EXPECT_EQ(report.notes,
            std::vector<std::string>{
                "one pair that agrees was compared with axes moved: 'w': the shapes fit as they "
                "are, but the values only with the axes in another order"});
}

TEST(LayoutNotes, RowsOfRopeAreCounted) {
  Report report;
  report.pairs = {row(Status::equal, {{Kind::rope_rows, 'a', 0, 64}}),
                  row(Status::different, {{Kind::rope_rows, 'a', 0, 64}}), row(Status::equal, {})};
  note_layouts(report);
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_TRUE(report.notes[0].starts_with("q and k: rows follow the other RoPE layout in 2 pairs"));
}

TEST(LayoutNotes, NothingIsToldWhereNothingIsLeftOutOrAllDiffers) {
  Report report;
  report.pairs = {row(Status::equal, {{Kind::not_confirmed}}), row(Status::different, {kPart})};
  note_layouts(report);
  EXPECT_TRUE(report.notes.empty());
}

TEST(Wording, EveryNoteHasItsWordsAndTheMessageFollows) {
  EXPECT_EQ(note_text({Kind::only_end, 'a', 1, 9, 6}),
            "A has 3 more rows on axis 1: only the last 6 are compared");
  EXPECT_EQ(note_text({Kind::one_of_stack, 'b', 0, 4, 1}),
            "axis 0 of B stacks 4, of which only the first is compared");
  EXPECT_EQ(note_text({Kind::rope_rows, 'a', 0, 32}),
            "rows follow the other RoPE layout: in each head of 32, B has neighbours where A has "
            "halves");
  EXPECT_EQ(note_text({Kind::flattened}),
            "no axes in common: compared element by element in the order they are stored");
  PairRow both = row(Status::close, {kPart, {Kind::not_confirmed}});
  both.message = "and more";
  EXPECT_EQ(message_of(both),
            "B has 4 more rows on axis 0: only the first 20 are compared; layout not confirmed by "
            "values; and more");
  EXPECT_EQ(message_of(row(Status::close, {})), "");
}

TEST(Wording, EveryStepHasItsName) {
  EXPECT_EQ(words_of(Op::squeeze).name, "squeeze");
  EXPECT_EQ(words_of(Op::flatten).name, "flatten");
  EXPECT_EQ(words_of(Op::flatten).arguments.size(), 0U);
  EXPECT_EQ(words_of(Op::concat_parts).name, "concat_parts");
}

}  // namespace
}  // namespace tensordiff
