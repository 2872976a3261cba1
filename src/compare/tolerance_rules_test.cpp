#include "compare/tolerance_rules.h"

#include <gtest/gtest.h>

namespace tensordiff {
namespace {

Comparison apart(double cosine, double max_abs) {
  Comparison comparison;
  comparison.status = Status::different;
  comparison.diff.compared = 100;
  comparison.diff.exceeding = 7;
  comparison.diff.cosine = cosine;
  comparison.diff.max_abs = max_abs;
  return comparison;
}

std::string error_of(std::string_view yaml) {
  return ToleranceRules::parse(yaml).error().message();
}

TEST(ToleranceRules, TheFirstThatIsFoundDecides) {
  const ToleranceRules rules = ToleranceRules::parse(
                                   "'\\.norm\\.': {atol: 1e-6}\n"
                                   "layers\\.\\d+: {rtol: 0.01}\n")
                                   .value();
  EXPECT_EQ(rules.find("layers.3.norm.w")->atol, 1e-6);
  EXPECT_EQ(rules.find("layers.3.mlp.w")->rtol, 0.01);
  EXPECT_EQ(rules.find("head"), nullptr);
  EXPECT_EQ(rules.find(std::string(10'000'000, 'x')), nullptr);
}

TEST(ToleranceRules, ReplaceTheToleranceOfThePair) {
  ToleranceRule rule;
  rule.rtol = 0.5;
  CompareOptions options;
  options.atol = 1;
  EXPECT_EQ(with_rule(options, rule).atol, 0);
  EXPECT_EQ(with_rule(options, rule).rtol, 0.5);
  EXPECT_EQ(with_rule(options, ToleranceRule()).atol, 1);
}

TEST(ToleranceRules, GatesDecideWhereElementsHaveNoTolerance) {
  const ToleranceRules rules =
      ToleranceRules::parse("w: {cosine: 0.999, max_abs: 0.1}\nv: {cosine: 0.9, atol: 0}\n")
          .value();
  Comparison good = apart(0.9995, 0.01);
  EXPECT_EQ(judge(*rules.find("w"), good), "");
  EXPECT_EQ(good.status, Status::close);

  Comparison bad = apart(0.9985, 0.2);
  EXPECT_EQ(judge(*rules.find("w"), bad),
            "gate 'w': cosine is 0.9985, below 0.999; max_abs is 0.2, above 0.1");
  EXPECT_EQ(bad.status, Status::different);

  // Both have to hold.
  Comparison beyond = apart(0.95, 0.01);
  EXPECT_EQ(judge(*rules.find("v"), beyond), "");
  EXPECT_EQ(beyond.status, Status::different);
}

TEST(ToleranceRules, NanIsNeverWithinAGate) {
  const ToleranceRules rules = ToleranceRules::parse("w: {cosine: 0.9}").value();
  Comparison comparison = apart(1, 0);
  comparison.diff.nonfinite_mismatch = 1;
  judge(*rules.find("w"), comparison);
  EXPECT_EQ(comparison.status, Status::different);
}

TEST(ToleranceRules, WhatIsUndefinedPassesNoGateUnlessItIsTheSame) {
  const ToleranceRules rules =
      ToleranceRules::parse("w: {pcc: 0.9, exceeding_share: 0.05, norm_ratio: [0.9, 1.1]}").value();
  Comparison comparison = apart(1, 0);
  EXPECT_EQ(judge(*rules.find("w"), comparison),
            "gate 'w': pcc is undefined here; exceeding_share is 0.07, above 0.05; norm_ratio is "
            "undefined here");
  comparison.status = Status::identical;
  EXPECT_EQ(judge(*rules.find("w"), comparison), "");
  EXPECT_EQ(comparison.status, Status::identical);
}

TEST(ToleranceRules, SayWhereTheFileIsWrong) {
  EXPECT_EQ(error_of("w:\n  atol: -1"), "line 2: a tolerance is not negative");
  EXPECT_EQ(error_of("w:\n  atol: tiny"), "line 2: 'tiny' is not a number");
  EXPECT_EQ(error_of("'(': {atol: 1}"), "line 1: '(' is not a regular expression: missing ): (");
  EXPECT_EQ(error_of("w: 1e-3"), "line 1: keys and values are expected here");
  EXPECT_EQ(error_of("w: {norm_ratio: 1}"), "line 1: a ratio needs a range: [0.9, 1.1]");
  EXPECT_EQ(error_of("w: {cosine: [1, 0]}"), "line 1: the range is empty");
  EXPECT_EQ(error_of("- w"), "line 1: a regular expression and its tolerances are expected");
  EXPECT_NE(error_of("a: {atol: 1}\nw:\n  atoll: 1").find("line 3: unknown key 'atoll'"),
            std::string::npos);
}

}  // namespace
}  // namespace tensordiff
