// Which experts a difference belongs to, in words.

#include "report/expert_reach.h"

#include <gtest/gtest.h>

namespace tensordiff {
namespace {

// Six tokens, four experts, two of them for each token: (0, 1), (0, 2), (1, 2), (2, 3), (1, 3),
// (0, 1).
ExpertScores scores() {
  ExpertScores made;
  made.experts = 4;
  made.a = {9, 8, 1, 0, 9, 1, 8, 0, 1, 9, 8, 0, 0, 1, 9, 8, 1, 9, 0, 8, 8, 9, 0, 1};
  made.b = made.a;
  made.errors = std::vector<double>(6, 1);
  made.differs = std::vector<bool>(6, false);
  return made;
}

TEST(ExpertReach, ExpertsWhoseTokensDifferAreNamed) {
  ExpertScores made = scores();
  made.differs = {false, true, true, true, true, false};
  EXPECT_EQ(experts_text(made),
            "the tokens of experts 2 and 3 differ, and no others: exchanged, or both wrong");
  made.differs = {false, false, false, true, true, false};
  EXPECT_EQ(experts_text(made),
            "the tokens of expert 3 differ, and no others: it computes something else");
}

TEST(ExpertReach, TokensOfAllExpertsTellNothing) {
  ExpertScores made = scores();
  made.differs = {true, false, true, false, true, false};
  EXPECT_EQ(experts_text(made), "");
  EXPECT_EQ(experts_text(ExpertScores()), "");
}

TEST(ExpertReach, FlipsAreToldWithTheirShare) {
  ExpertScores made = scores();
  made.differs = {true, true, false, false, false, false};
  made.errors = {3, 1, 0, 0, 0, 0};
  made.b[1] = 0.9, made.b[2] = 1.1;  // The first token takes expert 2 for 1.
  EXPECT_EQ(experts_text(made), "routing flips in 1 of 6 tokens explain 75 % of the error");
  made.a[1] = 1.2;  // It was a near tie.
  EXPECT_EQ(experts_text(made),
            "routing flips in 1 of 6 tokens explain 75 % of the error, near ties only");
}

}  // namespace
}  // namespace tensordiff
