#include "diagnose/verdict/exceptions.h"

#include <gtest/gtest.h>

#include "align/view.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

Form turned() {
  Form form;
  form.axes = {{'a', Op::permute, {1, 0}}};
  return form;
}

std::vector<Finding> explain(const Form& rule, const Form& fits, const View& a, const View& b) {
  Conversion conversion;
  conversion.exceptions.push_back({0, rule, fits});
  const std::optional<double> errors[] = {1.4};
  return explain_exceptions(
      conversion, {Pair{}},
      [&](const Pair&) {
        return PairOperands{Operand{{a}}, Operand{{b}}};
      },
      errors);
}

TEST(Exceptions, NameTheStepThatIsMissing) {
  const View a = noise_view({8, 8}, 1);
  const std::vector<Finding> findings = explain(turned(), Form(), a, a);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].code, "not_transposed");
  EXPECT_EQ(findings[0].residual_after, 0);
  EXPECT_GT(findings[0].confidence, 0);
  EXPECT_EQ(
      findings[0].explanation,
      "B has this tensor as A has it; all others of its kind are converted (its kind: transposed; "
      "this one: as it is)");
}

TEST(Exceptions, SayNothingThatExplainsNothing) {
  EXPECT_TRUE(explain(turned(), Form(), noise_view({8, 8}, 1), noise_view({8, 8}, 2)).empty());
}

TEST(Exceptions, TellOfATableThatWasPaddedInFront) {
  const Finding finding = shift_finding(3, 'b', 61, 1.4);
  EXPECT_EQ(finding.code, "shifted_rows");
  EXPECT_EQ(finding.pair, 3U);
  EXPECT_EQ(finding.explanation, "B has 61 rows before those of A: padding belongs at the end");
  EXPECT_EQ(shift_finding(0, 'a', 1, 1).explanation,
            "A has 1 row before those of B: each index means the next row");
}

}  // namespace
}  // namespace tensordiff
