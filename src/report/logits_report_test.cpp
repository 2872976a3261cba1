#include "report/logits_report.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "naming/naming.h"
#include "report/predictions.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

Catalog run_of(float factor) {
  Catalog catalog;
  std::vector<float> values = noise(12 * 40, 3);
  for (float& value : values) value *= factor;
  catalog.tensors.push_back({"logits", f32_view({12, 40}, values), ""});
  read_places(catalog);
  return catalog;
}

LogitsComparison hot() { return compare_logits(run_of(1), run_of(2)).value(); }

TEST(LogitsReport, SaysVerdictCauseAndNumbers) {
  const std::string text = logits_text(hot(), {});
  EXPECT_EQ(text.substr(0, text.find('\n')), "DIFFERENT  12 positions of 1 sequence, 40 words");
  EXPECT_NE(text.find("cause       B's logits are A's divided by 0.5"), std::string::npos) << text;
  for (const std::string_view label : {"\nKL ", "\nΔp", "\nsame top", "\noverlap", "\ndiverges"})
    EXPECT_NE(text.find(label), std::string::npos) << label;
  RenderOptions brief;
  brief.brief = true;
  EXPECT_EQ(logits_text(hot(), brief).find('\n') + 1, logits_text(hot(), brief).size());
}

TEST(LogitsReport, HasARowForEachPosition) {
  const std::string csv = logits_csv(hot());
  EXPECT_EQ(std::ranges::count(csv, '\n'), 13);
  EXPECT_TRUE(Json::parse(logits_json(hot())).ok());
  EXPECT_NE(doc::html_of(logits_document(hot())).find("KL by position"), std::string::npos);
}

Report report_of(Status status) {
  Report report;
  report.pairs.resize(1);
  report.pairs[0].comparison.status = status;
  return report;
}

Matching one_pair() {
  Matching matching;
  matching.pairs.push_back({.a = 0, .b = 0, .layer = {}, .stage = {}});
  return matching;
}

TEST(Predictions, DecideWhereTheyAreAllThereIs) {
  Report report = report_of(Status::close);
  judge_predictions(run_of(1), run_of(2), one_pair(), nullptr, report);
  EXPECT_EQ(report.pairs[0].comparison.status, Status::different);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].code, "temperature");
  ASSERT_TRUE(report.first_divergence);
  EXPECT_EQ(report.first_divergence->pair, 0U);
  EXPECT_TRUE(report.logits);
}

TEST(Predictions, LeaveOtherInputsAlone) {
  Catalog weights = run_of(1);
  weights.tensors.push_back({"layers.0.w", noise_view({4, 4}, 1), ""});
  Report report = report_of(Status::close);
  judge_predictions(weights, weights, one_pair(), nullptr, report);
  EXPECT_FALSE(report.logits);
}

}  // namespace
}  // namespace tensordiff
