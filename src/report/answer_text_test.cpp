#include "report/answer_text.h"

#include <gtest/gtest.h>

#include "report/sample_report.h"

namespace tensordiff {
namespace {

constexpr std::size_t kWidth = 80;

std::string answer(const Report& report) { return answer_lines(report, Style(false), kWidth); }

Finding finding_of(std::size_t pair, std::string explanation) {
  Finding finding;
  finding.code = "scale";
  finding.pair = pair;
  finding.confidence = 0.985;
  finding.explanation = std::move(explanation);
  return finding;
}

// Pairs of weights that all differ, the last one most.
Report weights(std::size_t count) {
  Report report;
  report.a = {"a.pt", "torch-zip", count, 6, 24, {}};
  report.b = {"b.pt", "torch-zip", count, 6, 24, {}};
  for (std::size_t i = 0; i < count; ++i) {
    report.pairs.push_back(sample_pair(i, "w" + std::to_string(i), Status::different));
    report.pairs[i].comparison.diff.rel_l2 = 0.25 * static_cast<double>(i + 1);
  }
  report.first_divergence = {0, false, ""};
  report.summary = {.different = count, .verdict = Conclusion::different};
  return report;
}

TEST(AnswerText, GivesPlaceCauseEvidenceAndCountsInThatOrder) {
  Report report = sample_report();
  report.summary.verdict = Conclusion::different;
  Finding finding = finding_of(2, "B = 0.125 × A");
  finding.residual_before = 0.875;
  finding.residual_after = 1e-7;
  report.findings = {finding};
  EXPECT_EQ(
      answer(report),
      "DIFFERENT  first divergence: layer 1, query\n"
      "cause      B = 0.125 × A                                                    98 %\n"
      "evidence   its inputs agree; its output does not; relative error 0.875 → 1e-07 with "
      "this cause undone\n"
      "pairs      5: 1 error, 1 incomparable, 1 different, 1 close, 1 identical; 1 only in A, "
      "1 only in B\n"
      "coverage   5 of 7 steps compared\n"
      "A          a.pt   torch-zip, 6 tensors, 144 B\n"
      "B          b.npz  npz, 6 tensors, 144 B\n");
}

TEST(AnswerText, KeepsTheConfidenceAtTheEdgeWhereACauseTakesMoreLines) {
  Report report = sample_report();
  report.findings = {finding_of(2,
                                "8 blocks along the features are in another order: B has "
                                "A's [7, 6, 5, 4, 3, 2, 1, 0]")};
  const std::string text = answer(report);
  EXPECT_NE(text.find("\ncause      8 blocks along the features are in another order: B has A's"
                      " [7,  98 %\n"
                      "           6, 5, 4, 3, 2, 1, 0]\n"),
            std::string::npos)
      << text;
}

TEST(AnswerText, TellsFurtherFindingsAfterTheFirst) {
  Report report = sample_report();
  report.findings = {finding_of(2, "B = 2 × A"), finding_of(1, "B = A + 1")};
  report.next_divergences = {{1, true, "beyond what it reads"}};
  EXPECT_NE(answer(report).find("also       near: B = A + 1\n"), std::string::npos)
      << answer(report);
  report.findings.pop_back();
  EXPECT_NE(answer(report).find("also       near: beyond what it reads\n"), std::string::npos);
}

TEST(AnswerText, DoesNotSayTheCauseTwice) {
  Report report = sample_report();
  report.findings = {finding_of(2, "B = 2 × A"), finding_of(1, "B = 2 × A")};
  EXPECT_NE(answer(report).find("also       near: the same cause\n"), std::string::npos)
      << answer(report);
}

TEST(AnswerText, CountsChangedWeightsAndNamesTheLargestChange) {
  const std::string text = answer(weights(3));
  EXPECT_TRUE(text.starts_with(
      "DIFFERENT  3 of 3 tensors changed; largest change: w2 (relative L2 0.75)\n"))
      << text;
  EXPECT_EQ(text.find("first divergence"), std::string::npos);
  EXPECT_TRUE(
      answer(weights(1)).starts_with("DIFFERENT  1 of 1 tensor changed: w0 (relative L2 0.25)\n"))
      << answer(weights(1));
}

TEST(AnswerText, SaysOnceWhatIsTrueOfManyTensors) {
  Report report = weights(5);
  for (std::size_t i = 0; i < 5; ++i) report.findings.push_back(finding_of(i, "B = A + 0.001"));
  EXPECT_NE(answer(report).find("cause      5 tensors: B = A + 0.001 (w0, w1, w2, …)\n"),
            std::string::npos)
      << answer(report);
}

TEST(AnswerText, SaysOnceThatTensorsHoldTheValuesOfOthers) {
  Report report = weights(2);
  report.findings = {finding_of(0, "B is another tensor of A: 'w1'"),
                     finding_of(1, "B is another tensor of A: 'w0'")};
  for (Finding& finding : report.findings) finding.code = "other_tensor";
  EXPECT_NE(answer(report).find(
                "cause      2 tensors: B is another tensor of A (w0 is 'w1', w1 is 'w0')\n"),
            std::string::npos)
      << answer(report);
  report.findings.pop_back();
  EXPECT_NE(answer(report).find("findings   w0: B is another tensor of A: 'w1'\n"),
            std::string::npos);
}

TEST(AnswerText, SaysAnErrorOnce) {
  Report report = sample_report();
  report.first_divergence->explanation = "its inputs agree; relative error 0.00183; more";
  Finding finding = finding_of(2, "x");
  finding.residual_before = 0.00184;
  finding.residual_after = 1e-7;
  report.findings = {finding};
  EXPECT_NE(answer(report).find("evidence   its inputs agree; relative error 0.00184 → 1e-07 with "
                                "this cause undone; more\n"),
            std::string::npos)
      << answer(report);
}

TEST(AnswerText, SaysOnceWhichOrderBlocksAreIn) {
  Report report = weights(2);
  report.findings = {finding_of(0, "blocks 1 and 2 (of 4) are swapped along the rows"),
                     finding_of(1, "blocks 1 and 2 (of 4) are swapped along the features")};
  for (Finding& finding : report.findings) {
    finding.code = "block_permutation";
    finding.parameters = {{"source", std::vector<uint64_t>{0, 2, 1, 3}}};
  }
  EXPECT_NE(answer(report).find("cause      2 tensors: 4 blocks are in the order [0, 2, 1, 3], in "
                                "rows or columns (w0, w1)\n"),
            std::string::npos)
      << answer(report);
}

TEST(AnswerText, NeverRoundsConfidenceUpToCertainty) {
  Report report = sample_report();
  report.findings = {finding_of(2, "x")};
  report.findings[0].confidence = 0.99996;
  EXPECT_NE(answer(report).find("99.9 %"), std::string::npos);
  report.findings[0].confidence = 1;
  EXPECT_NE(answer(report).find("100 %"), std::string::npos);
}

}  // namespace
}  // namespace tensordiff
