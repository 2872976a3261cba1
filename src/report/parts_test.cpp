#include "report/parts.h"

#include <gtest/gtest.h>

#include "align/part_note.h"

namespace tensordiff {
namespace {

PairRow row(Status status, std::string message) {
  PairRow row;
  row.a.name = "w";
  row.comparison.status = status;
  row.message = std::move(message);
  return row;
}

TEST(Parts, AreToldWhereTheyAgree) {
  const std::string part = part_note({'b', ops::kTruncate, {0, 20}}, 24);
  EXPECT_EQ(part, "b has 4 more rows on axis 0: only the first 20 are compared");
  Report report;
  report.pairs = {row(Status::identical, ""), row(Status::equal, part)};
  note_parts(report);
  EXPECT_EQ(report.notes, std::vector<std::string>{
                              "one pair that agrees was compared in part only: 'w': " + part});
  report.notes.clear();
  report.pairs.push_back(row(Status::close, part_note({'a', ops::kSelect, {0, 0, 1}}, 8)));
  note_parts(report);
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_TRUE(report.notes[0].starts_with("2 pairs that agree were compared in part only"));
}

TEST(Parts, AxesInAnotherOrderAreToldToo) {
  Report report;
  report.pairs = {row(Status::equal, std::string(kOtherOrder))};
  note_parts(report);
  EXPECT_EQ(report.notes, std::vector<std::string>{"one pair that agrees was compared with axes "
                                                   "moved: 'w': " +
                                                   std::string(kOtherOrder)});
}

TEST(Parts, AreNotToldWhereNothingIsLeftOutOrAllDiffers) {
  Report report;
  report.pairs = {row(Status::equal, "layout not confirmed by values"),
                  row(Status::different, part_note({'b', ops::kTruncate, {0, 20}}, 24))};
  note_parts(report);
  EXPECT_TRUE(report.notes.empty());
}

}  // namespace
}  // namespace tensordiff
