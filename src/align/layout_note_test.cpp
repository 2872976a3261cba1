#include "align/layout_note.h"

#include <gtest/gtest.h>

namespace tensordiff {
namespace {

using Kind = LayoutNote::Kind;

TEST(LayoutNote, APartIsToldAndLeavesOut) {
  for (const Kind kind : {Kind::one_of_stack, Kind::only_beginning, Kind::only_end}) {
    EXPECT_TRUE(leaves_out({{kind}}));
    EXPECT_TRUE(is_told({{kind}}));
    EXPECT_FALSE(is_told({{kind}, {Kind::not_confirmed}}));
    EXPECT_TRUE(leaves_out({{Kind::not_confirmed}, {kind}}));
  }
}

TEST(LayoutNote, OthersLeaveNothingOutAndAreNotTold) {
  for (const Kind kind :
       {Kind::flattened, Kind::not_confirmed, Kind::other_order, Kind::rope_rows}) {
    EXPECT_FALSE(leaves_out({{kind}}));
    EXPECT_FALSE(is_told({{kind}}));
  }
  EXPECT_TRUE(is_told({}));
  EXPECT_FALSE(leaves_out({}));
}

TEST(LayoutNote, IsFoundByKind) {
  const LayoutNotes notes = {{Kind::flattened}, {Kind::rope_rows, 'b'}};
  EXPECT_TRUE(has(notes, Kind::rope_rows));
  EXPECT_FALSE(has(notes, Kind::other_order));
}

}  // namespace
}  // namespace tensordiff
