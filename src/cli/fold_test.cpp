#include "cli/fold.h"

#include <gtest/gtest.h>

namespace tensordiff {
namespace {

TEST(Folded, GoesOnBelowTheSentence) {
  EXPECT_EQ(folded("cause      one two three four\nnext\n", 22),
            "cause      one two\n"
            "           three four\n"
            "next\n");
  EXPECT_EQ(folded("           also one two three", 22),
            "           also one\n           two three");
}

TEST(Folded, LeavesTablesAndShortLines) {
  const std::string table = "  a row of a table that is longer than the line\n    └ a remark on it";
  EXPECT_EQ(folded(table, 20), table);
  EXPECT_EQ(folded("cause      short\n", 60), "cause      short\n");
  EXPECT_EQ(folded("", 60), "");
}

TEST(Folded, NeverBreaksAWord) {
  EXPECT_EQ(folded("A          model.layers.1.self_attn.q_proj.weight is long", 30),
            "A          model.layers.1.self_attn.q_proj.weight\n           is long");
}

TEST(Folded, CountsCharactersAndNoColours) {
  EXPECT_EQ(folded("\x1b[2mcause\x1b[0m      ααα βββ γγγ", 18),
            "\x1b[2mcause\x1b[0m      ααα βββ\n           γγγ");
}

TEST(Folded, KeepsTheConfidenceApart) {
  EXPECT_EQ(folded("cause      B is A  91 %", 20), "cause      B is A\n           91 %");
}

}  // namespace
}  // namespace tensordiff
