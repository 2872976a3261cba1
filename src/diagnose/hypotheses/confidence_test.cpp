#include "diagnose/hypotheses/confidence.h"

#include <gtest/gtest.h>

namespace tensordiff::hypotheses {
namespace {

constexpr Counted kCorpus[] = {
    {Basis::given, "scale", true, 38, 38},
    {Basis::given, "offset", true, 8, 10},
    {Basis::fitted, "offset", true, 1, 2},
    {Basis::given, "operator", false, 3, 30},
};

Finding of_code(std::string code, std::vector<Parameter> parameters = {}) {
  Finding finding;
  finding.code = std::move(code);
  finding.parameters = std::move(parameters);
  return finding;
}

TEST(Confidence, IsTheShareOfFindingsThatWereRight) {
  EXPECT_EQ(confidence_of(of_code("scale"), Basis::given, kCorpus), 39.0 / 40);
}

TEST(Confidence, IsThatOfTheBasisWhereACodeIsRare) {
  EXPECT_EQ(confidence_of(of_code("offset"), Basis::given, kCorpus), 47.0 / 50);
}

TEST(Confidence, IsThatOfAllWhereTheBasisIsRare) {
  EXPECT_EQ(confidence_of(of_code("offset"), Basis::fitted, kCorpus), 48.0 / 52);
}

TEST(Confidence, KnowsNothingWithoutACorpus) {
  EXPECT_EQ(confidence_of(of_code("scale"), Basis::given, {}), 0.5);
}

TEST(Confidence, CountsAStepWithoutACauseApart) {
  EXPECT_EQ(confidence_of(of_code("operator"), Basis::given, kCorpus), 4.0 / 32);
  EXPECT_EQ(confidence_of(of_code("operator", {{"cause", std::string("activation")}}), Basis::given,
                          kCorpus),
            47.0 / 50);
}

TEST(Confidence, TakesTheStandingOfAStepForItsBasis) {
  const auto standing = [](std::string word) {
    return basis_of(of_code("scale", {{"standing", std::move(word)}}));
  };
  EXPECT_EQ(standing("given"), Basis::given);
  EXPECT_EQ(standing("fitted"), Basis::fitted);
  EXPECT_EQ(standing("unknown"), Basis::unknown);
  EXPECT_EQ(basis_of(of_code("scale")), Basis::transform);
}

TEST(Confidence, IsGivenToEveryFinding) {
  std::vector<Finding> findings = {of_code("scale"), of_code("operator")};
  rate(findings, true);
  for (const Finding& finding : findings) {
    EXPECT_GT(finding.confidence, 0);
    EXPECT_LT(finding.confidence, 1);
  }
}

}  // namespace
}  // namespace tensordiff::hypotheses
