#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "report/renderer.h"
#include "report/sample_report.h"

namespace tensordiff {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string_view line : split(text, '\n')) lines.emplace_back(line);
  lines.pop_back();  // The text ends in a newline.
  return lines;
}

TEST(Csv, HasARowForEachPairAndEachTensorLeftOver) {
  const auto lines = lines_of(renderers::csv.render(sample_report(), {}));
  ASSERT_EQ(lines.size(), 8U);
  EXPECT_TRUE(lines[0].starts_with("index,name_a,name_b,layer,stage,matched_by,status,"));
  EXPECT_TRUE(lines[3].starts_with(
      "2,off,off,1,query,exact,different,f32,bf16,2 3,2 3,6,5,0.5,1 2,2,2.5,"));
  EXPECT_TRUE(lines[6].starts_with(",gone,,,,,only_a,f32,,4,,"));
  EXPECT_TRUE(lines[7].starts_with(",,new,,,,only_b,,i64,,,"));
}

TEST(Csv, HasAsManyFieldsInEveryRow) {
  Report report = sample_report();
  report.pairs[3].message = "no commas here";
  const auto lines = lines_of(renderers::csv.render(report, {}));
  for (const std::string& line : lines) EXPECT_EQ(std::ranges::count(line, ','), 37) << line;
}

TEST(Csv, QuotesWhatNeedsIt) {
  Report report;
  report.only_a = {{{"a,\"b\"", DType::f32, {}, ""}, false, {}}};
  const auto lines = lines_of(renderers::csv.render(report, {}));
  EXPECT_TRUE(lines[1].starts_with(",\"a,\"\"b\"\"\",,")) << lines[1];
}

TEST(Csv, TellsWhatWasFound) {
  Report report = sample_report();
  report.next_divergences = {{1, true, "its inputs agree"}};
  Finding finding;
  finding.code = "scale";
  finding.pair = 2;
  finding.explanation = "B = 2 × A";
  report.findings = {finding};
  report.pairs[2].verdict = Verdict::bug;
  const auto lines = lines_of(renderers::csv.render(report, {}));
  EXPECT_TRUE(lines[0].ends_with(",message,verdict,diverges,findings,baseline"));
  EXPECT_TRUE(lines[3].ends_with(",,bug,first,scale: B = 2 × A,")) << lines[3];
  EXPECT_TRUE(lines[2].ends_with(",,,next,,")) << lines[2];
}

TEST(Csv, LetsNoNameBeAFormula) {
  Report report;
  report.only_a = {{{"=cmd|' /C calc'!A0", DType::f32, {}, ""}, false, {}}};
  const auto lines = lines_of(renderers::csv.render(report, {}));
  EXPECT_TRUE(lines[1].starts_with(",'=cmd|' /C calc'!A0,")) << lines[1];
}

TEST(Csv, CanBeCut) {
  EXPECT_EQ(lines_of(renderers::csv.render(sample_report(), {.top = 2})).size(), 1U + 2 + 2);
}

}  // namespace
}  // namespace tensordiff
