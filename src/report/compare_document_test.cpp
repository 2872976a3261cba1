#include "report/compare_document.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "report/sample_report.h"

namespace tensordiff {
namespace {

Report with_findings() {
  Report report = sample_report();
  Finding finding;
  finding.code = "scale";
  finding.pair = 2;
  finding.confidence = 0.99;
  finding.explanation = "B = 0.125 × A";
  finding.parameters = {{"factor", 0.125}};
  finding.residual_before = 0.875;
  finding.residual_after = 2e-7;
  finding.evidence = EvidenceSlice{{1, 0}, {8, 16, 24}, {1, 2, 3.25}, {1, 2, 3}};
  report.findings = {finding};
  finding.pair = 1;
  finding.code = "cast";
  finding.explanation = "B is A rounded to bf16";
  report.findings.push_back(finding);
  report.next_divergences = {{3, true, "its inputs agree"}};
  Answer answer;
  answer.name = "memory_analysis";
  answer.field("delta_bytes", 12).unknown("kv_cache", "a config.json beside the file");
  answer.list("largest", {"tensor", "bytes"}).add({"w", 144});
  answer.charts.push_back({Chart::Kind::bars, "bytes", "Bytes by type", {"f32"}, {"b"}, {144}});
  answer.alarm = "too large";
  report.analyses = {answer};
  return report;
}

void expect_all(const std::string& text, const std::vector<std::string>& wanted) {
  for (const std::string& each : wanted)
    EXPECT_NE(text.find(each), std::string::npos) << each << "\nis not in\n" << text;
}

// Both outputs say the same: verdict, cause, evidence, what follows, analyses, leftovers, problems.
const std::vector<std::string> kFacts = {"trouble",
                                         "Diverges in layer 1 at query",
                                         "B = 0.125 × A; residual 0.875 → 2e-07",
                                         "Its inputs agree; its output does not",
                                         "factor = 0.125",
                                         "values from [1, 0]",
                                         "A, with the finding applied",
                                         "3.25",
                                         "confidence 99 %",
                                         "Then at odd",
                                         "B is A rounded to bf16",
                                         "Memory analysis",
                                         "too large",
                                         "missing: a config.json beside the file",
                                         "gone",
                                         "new",
                                         "deflate stream ends early",
                                         "layer 3 of B is compared with layer 1 of A"};

TEST(CompareDocument, TellsEverythingInHtml) {
  const std::string page = renderers::html.render(with_findings(), {});
  expect_all(page, kFacts);
  expect_all(page, {"<svg viewBox", "class=\"mark\"", "Bytes by type", "near", "same"});
}

TEST(CompareDocument, TellsEverythingInMarkdown) {
  RenderOptions options;
  const std::string text = renderers::markdown.render(with_findings(), options);
  expect_all(text,
             {"# ⚠️ a.pt → b.npz: trouble", "Memory analysis", "| `off` | different |",
              "**Diverges in layer 1 at query**", "factor = 0.125", "posix.system was not run"});
  // Only what differs, until more is asked for.
  EXPECT_EQ(text.find("| `near` | close |"), std::string::npos);
  options.verbose = true;
  expect_all(renderers::markdown.render(with_findings(), options), {"| `near` | close |"});
}

TEST(CompareDocument, IsShortForAReviewer) {
  RenderOptions options;
  options.review = true;
  const std::string text = renderers::markdown.render(with_findings(), options);
  expect_all(text, {"## What changed", "## What to look at", "First divergence in layer 1 at query",
                    "Could not be read: cut", "memory\\_analysis: too large"});
  EXPECT_LT(std::ranges::count(text, '\n'), 25);
  expect_all(renderers::text.render(with_findings(), options),
             {"what changed\n", "what to look at\n", "Type f32 → bf16 in 5 tensors."});
}

TEST(CompareDocument, NamesTheLargestChangeOfWeightsWhereNoneComesFirst) {
  Report report = sample_report();
  report.steps = false;
  report.summary.different = 2;
  for (const std::size_t changed : {1, 3}) {
    report.pairs[changed].comparison.status = Status::different;
    report.pairs[changed].comparison.diff.rel_l2 = static_cast<double>(changed);
  }
  const std::string text = renderers::markdown.render(report, {});
  EXPECT_EQ(text.find("Diverges"), std::string::npos);
  EXPECT_NE(text.find("## Changes"), std::string::npos) << text;
  EXPECT_NE(text.find("largest change: "), std::string::npos) << text;
}

TEST(CompareDocument, MapsLayersAndStages) {
  Report report;
  for (std::size_t i = 0; i < 4; ++i) {
    report.pairs.push_back(sample_pair(i, "p" + std::to_string(i), Status::close));
    report.pairs[i].layer = static_cast<int64_t>(i / 2);
    report.pairs[i].stage = i % 2 == 0 ? "query" : "key";
  }
  report.summary.verdict = Conclusion::close;
  const std::string page = renderers::html.render(report, {});
  expect_all(page, {"Relative L2 error by layer and stage", "1 · key: relative L2 error 0.125"});
}

TEST(CompareDocument, ShowsTheBaseline) {
  Report report = sample_report();
  report.baseline = BaselineDelta{3, 1, {"fresh"}, {"off: relative L2 error 0.5, was 0.1"}};
  expect_all(
      renderers::markdown.render(report, {}),
      {"Worse than the baseline", "3 known differences, 1 new, 1 grown, 1 gone", "new: fresh"});
  expect_all(renderers::text.render(report, {}), {"baseline   3 known differences", "new  fresh"});
}

}  // namespace
}  // namespace tensordiff
