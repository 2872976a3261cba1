#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/json.h"
#include "report/renderer.h"
#include "report/sample_report.h"

namespace tensordiff {
namespace {

Json rendered(const Report& report) {
  Result<Json> json = Json::parse(renderers::report.render(report, {}));
  EXPECT_TRUE(json.ok());
  return json.ok() ? std::move(json).value() : Json();
}

std::string keys(const Json& object) {
  std::string out;
  for (const Json::Member& member : object.object()) out += (out.empty() ? "" : " ") + member.key;
  return out;
}

TEST(ReportJson, KeepsTheKeysInTheOrderOfTheContract) {
  const Json json = rendered(sample_report());
  EXPECT_EQ(
      keys(json),
      "schema tool a b summary first_divergence findings pairs only_a only_b analyses metadata "
      "notes next_divergences auxiliary conversion");
  EXPECT_EQ(keys(json["a"]), "path format tensors elements bytes problems");
  EXPECT_EQ(keys(json["summary"]),
            "pairs identical equal close same_shape different incomparable error only_a only_b "
            "verdict caveat coverage");
  EXPECT_EQ(keys(json["first_divergence"]), "pair name_a name_b layer stage created explanation");
  EXPECT_EQ(
      keys(json["pairs"][0]),
      "index name_a name_b layer stage matched_by status dtype_a dtype_b shape_a shape_b shape "
      "alignment stats_a stats_b diff message verdict baseline made_from_a made_from_b");
  EXPECT_EQ(keys(json["pairs"][0]["stats_a"]), "mean std min max norm zeros nan inf");
  EXPECT_EQ(keys(json["pairs"][0]["diff"]),
            "compared equal max_abs max_abs_at a_there b_there mean_abs mse rmse max_rel mean_rel "
            "rel_l2 cosine pcc norm_ratio ulp_max nonfinite_mismatch nonfinite_agreeing exceeding "
            "atol rtol rtol_needed");
  EXPECT_EQ(keys(json["only_a"][0]),
            "name dtype shape message layer_absent not_dumped nearest likeness why baseline");
}

TEST(ReportJson, SaysWhatThePairsAre) {
  const Json json = rendered(sample_report());
  EXPECT_EQ(json["summary"]["verdict"].string(), "trouble");
  EXPECT_EQ(json["summary"]["only_b"].u64(), 1U);
  EXPECT_EQ(json["a"]["problems"][0]["message"].string(), "posix.system was not run");
  const Json& off = json["pairs"][2];
  EXPECT_EQ(off["layer"].u64(), 1U);
  EXPECT_EQ(off["stage"].string(), "query");
  EXPECT_EQ(off["dtype_b"].string(), "bf16");
  EXPECT_EQ(off["alignment"][0]["axis"].u64(), 0U);
  EXPECT_EQ(off["alignment"][1]["order"][0].u64(), 1U);
  EXPECT_EQ(off["alignment"][2]["axis"].u64(), 1U);
  EXPECT_EQ(off["alignment"][2]["sizes"][1].u64(), 64U);
  EXPECT_EQ(off["alignment"][3]["size"].u64(), 20U);
  EXPECT_EQ(off["diff"]["max_abs_at"][1].u64(), 2U);
  EXPECT_EQ(off["diff"]["rtol"].number(), 0.016);
  EXPECT_EQ(json["first_divergence"]["name_a"].string(), "off");
  EXPECT_EQ(json["first_divergence"]["created"].boolean(), true);
}

TEST(ReportJson, WritesNullForWhatIsNotDefined) {
  Report report = sample_report();
  report.first_divergence.reset();
  const Json json = rendered(report);
  EXPECT_TRUE(json["first_divergence"].is_null());
  EXPECT_TRUE(json["pairs"][0]["layer"].is_null());
  EXPECT_TRUE(json["pairs"][0]["stage"].is_null());
  EXPECT_TRUE(json["pairs"][0]["message"].is_null());
  EXPECT_TRUE(json["pairs"][0]["diff"]["pcc"].is_null());
  const Json& odd = json["pairs"][3];
  EXPECT_TRUE(odd["shape"].is_null());
  EXPECT_TRUE(odd["diff"]["max_abs_at"].is_null());
  EXPECT_EQ(odd["message"].string(), "no common layout for [2, 3] and [7]");
}

TEST(ReportJson, WritesNumbersThatAreNotFiniteAsStrings) {
  Report report = sample_report();
  report.pairs[0].comparison.diff.rel_l2 = std::numeric_limits<double>::infinity();
  report.pairs[0].comparison.a.mean = std::numeric_limits<double>::quiet_NaN();
  const Json json = rendered(report);
  EXPECT_EQ(json["pairs"][0]["diff"]["rel_l2"].string(), "inf");
  EXPECT_EQ(json["pairs"][0]["stats_a"]["mean"].string(), "nan");
}

TEST(ReportJson, OfAScalarHasAnEmptyShapeAndIndex) {
  Report report = sample_report();
  report.pairs[0].shape = {};
  report.pairs[0].comparison.diff.max_abs_at = {};
  const Json json = rendered(report);
  EXPECT_TRUE(json["pairs"][0]["shape"].is_array());
  EXPECT_TRUE(json["pairs"][0]["diff"]["max_abs_at"].is_array());
}

TEST(ReportJson, WritesFindingsWithTheirEvidence) {
  Report report = sample_report();
  Finding finding;
  finding.code = "scale";
  finding.pair = 2;
  finding.confidence = 0.75;
  finding.explanation = "B = 0.125 × A";
  finding.parameters = {{"factor", 0.125}, {"per", std::string("head")}};
  finding.residual_before = 0.875;
  finding.evidence = EvidenceSlice{{1, 0}, {8, 16}, {1, 2}, {1, NAN}};
  report.findings = {finding};
  const Json json = Json::parse(renderers::report.render(report, {})).value();
  const Json& written = json["findings"][0];
  EXPECT_EQ(keys(written),
            "code pair confidence explanation parameters residual_before residual_after "
            "convention evidence");
  EXPECT_EQ(written["code"].string(), "scale");
  EXPECT_EQ(written["parameters"]["factor"].number(), 0.125);
  EXPECT_EQ(written["parameters"]["per"].string(), "head");
  EXPECT_TRUE(written["residual_after"].is_null());
  EXPECT_EQ(keys(written["evidence"]), "at a b model");
  EXPECT_EQ(written["evidence"]["at"][0].u64(), 1U);
  EXPECT_EQ(written["evidence"]["b"][1].number(), 2);
  EXPECT_EQ(written["evidence"]["model"][1].string(), "nan");

  report.findings[0].evidence->model.clear();
  const Json without = Json::parse(renderers::report.render(report, {})).value();
  EXPECT_TRUE(without["findings"][0]["evidence"]["model"].is_null());
  report.findings[0].evidence.reset();
  const Json none = Json::parse(renderers::report.render(report, {})).value();
  EXPECT_TRUE(none["findings"][0]["evidence"].is_null());
}

}  // namespace
}  // namespace tensordiff
