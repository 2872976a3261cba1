#include "report/batch_report.h"

#include <gtest/gtest.h>

#include <limits>

#include "report/divergence_text.h"
#include "report/sample_report.h"

namespace tensordiff {
namespace {

std::vector<BatchRow> sample() {
  BatchRow good;
  good.name = "seven";
  good.a = "ref/7.pt";
  good.b = "new/7.pt";
  good.verdict = Conclusion::same;
  good.pairs = 12;
  good.worst = 0;
  BatchRow bad = good;
  bad.name = "<eight>";
  bad.verdict = Conclusion::different;
  bad.status = 1;
  bad.different = 3;
  bad.worst = std::numeric_limits<double>::infinity();
  bad.divergence = "in layer 1 at query: scale: B = 2 × A";
  BatchRow ugly = good;
  ugly.name = "nine";
  ugly.verdict = Conclusion::trouble;
  ugly.status = 2;
  ugly.worst.reset();
  ugly.message = "new/9.pt: No such file or directory";
  return {good, bad, ugly};
}

TEST(BatchRow, SumsUpAReport) {
  Report report = sample_report();
  const BatchRow row = batch_row(report);
  EXPECT_EQ(row.verdict, Conclusion::trouble);
  EXPECT_EQ(row.pairs, 5U);
  EXPECT_EQ(row.different, 3U);
  EXPECT_EQ(row.unpaired, 2U);
  EXPECT_EQ(row.worst, 0.125);
  EXPECT_EQ(row.divergence, "in layer 1 at query");
}

TEST(BatchRow, NamesTheLargestChangeOfWeights) {
  Report report = sample_report();
  report.steps = false;
  for (PairRow& row : report.pairs) row.comparison.status = Status::different;
  report.pairs[3].comparison.diff.rel_l2 = 7;
  EXPECT_EQ(batch_row(report).divergence, "largest change: " + names_of(report.pairs[3]));
}

TEST(BatchRow, ComesBackFromJson) {
  for (const BatchRow& row : sample()) {
    JsonWriter json, again;
    write_row(json, row);
    write_row(again, read_row(Json::parse(json.text()).value()).value());
    EXPECT_EQ(again.text(), json.text());
  }
  EXPECT_FALSE(read_row(Json::parse("{}").value()).ok());
}

TEST(BatchReport, ExitsAsTheWorst) {
  std::vector<BatchRow> rows = sample();
  EXPECT_EQ(worst_exit(rows), 2);
  rows.pop_back();
  EXPECT_EQ(worst_exit(rows), 1);
  EXPECT_EQ(worst_exit({}), 0);
}

TEST(BatchReport, TellsTheSameInEveryForm) {
  for (const std::string_view output : kBatchOutputs) {
    const std::string text = render_batch(sample(), output, {});
    EXPECT_NE(text.find("seven"), std::string::npos) << output;
    EXPECT_NE(text.find("No such file or directory"), std::string::npos) << output << "\n" << text;
    EXPECT_NE(text.find("B = 2 × A"), std::string::npos) << output;
  }
  EXPECT_TRUE(render_batch(sample(), "text", {})
                  .starts_with("3 comparisons: 1 trouble, 1 different, 1 same\n"));
  EXPECT_NE(render_batch(sample(), "junit", {})
                .find("tests=\"3\" failures=\"1\" errors=\"1\" skipped=\"0\""),
            std::string::npos);
  EXPECT_EQ(render_batch(sample(), "html", {}).find("<eight>"), std::string::npos);
}

}  // namespace
}  // namespace tensordiff
