#include "tensordiff/tensordiff.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace tensordiff {
namespace {

const std::string kDemo = TENSORDIFF_SOURCE_DIR "/demo/";

TEST(Api, FindsTheBugOfTheDemo) {
  const api::Outcome outcome = api::compare(kDemo + "reference.zip", kDemo + "constant_scale.tgz");
  EXPECT_EQ(outcome.verdict, api::Verdict::different);
  EXPECT_EQ(outcome.error, "");

  const Result<Json> report = Json::parse(outcome.report_json);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report.value()["schema"].string(), "tensordiff.report/1");
  EXPECT_EQ(report.value()["first_divergence"]["name_a"].string(), "1_post_attn");
}

TEST(Api, ToleranceDecides) {
  const api::Options generous = {.atol = 1e9, .rtol = 0, .equal_nan = true, .threads = 0};
  const api::Outcome outcome =
      api::compare(kDemo + "reference.zip", kDemo + "constant_scale.tgz", generous);
  EXPECT_EQ(outcome.verdict, api::Verdict::close);
}

TEST(Api, AFileIsTheSameAsItself) {
  const api::Outcome outcome = api::compare(kDemo + "reference.zip", kDemo + "reference.zip");
  EXPECT_EQ(outcome.verdict, api::Verdict::same);
}

TEST(Api, SaysWhyThereIsNoReport) {
  const api::Outcome outcome = api::compare(kDemo + "reference.zip", kDemo + "nothing.zip");
  EXPECT_EQ(outcome.verdict, api::Verdict::trouble);
  EXPECT_EQ(outcome.report_json, "");
  EXPECT_NE(outcome.error.find("nothing.zip"), std::string::npos) << outcome.error;
}

TEST(Api, ExitStatusIsThatOfDiff) {
  EXPECT_EQ(api::exit_status(api::Verdict::same), 0);
  EXPECT_EQ(api::exit_status(api::Verdict::close), 0);
  EXPECT_EQ(api::exit_status(api::Verdict::different), 1);
  EXPECT_EQ(api::exit_status(api::Verdict::trouble), 2);
}

}  // namespace
}  // namespace tensordiff
