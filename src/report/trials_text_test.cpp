#include "report/trials_text.h"

#include <gtest/gtest.h>

#include "report/sample_report.h"

namespace tensordiff {
namespace {

TEST(TrialsText, GroupsEqualOutcomesAndPairsThatHaveTheSame) {
  Report report;
  for (std::size_t i = 0; i < 6; ++i)
    report.pairs.push_back(sample_pair(i, "w" + std::to_string(i), Status::different));
  report.trials = {{0, "cast", "does not apply"},
                   {0, "offset", "does not apply"},
                   {0, "scale", "accepted: B = 2 × A; leaves 1e-07"}};
  for (std::size_t i = 1; i < 6; ++i) {
    report.trials.push_back({i, "cast", "rejected: does not fit a sample"});
    report.trials.push_back({i, "scale", "rejected: does not fit a sample"});
  }
  EXPECT_EQ(trial_lines(report, Style(false), 80),
            "\nwhat was tried\n"
            "  w0\n"
            "    accepted        scale: B = 2 × A; leaves 1e-07\n"
            "    does not apply  cast, offset\n"
            "  w1, w2, w3 and 2 more\n"
            "    rejected        cast, scale: does not fit a sample\n");
}

TEST(TrialsText, BreaksLongListsAtTheWidth) {
  Report report;
  report.pairs.push_back(sample_pair(0, "w", Status::different));
  for (const char* code : {"cast", "reduction", "softmax_shift", "offset"})
    report.trials.push_back({0, code, "does not apply"});
  EXPECT_EQ(trial_lines(report, Style(false), 40),
            "\nwhat was tried\n"
            "  w\n"
            "    does not apply  cast, reduction,\n"
            "                    softmax_shift,\n"
            "                    offset\n");
}

TEST(TrialsText, IsEmptyWhereNothingWasTried) {
  EXPECT_EQ(trial_lines(Report{}, Style(false), 80), "");
}

}  // namespace
}  // namespace tensordiff
