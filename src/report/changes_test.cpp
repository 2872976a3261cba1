// The list of changes in its three spellings.

#include "report/changes.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/json.h"
#include "report/sample_report.h"

namespace tensordiff {
namespace {

std::vector<std::string> names(const Report& report, const RenderOptions& options = {}) {
  std::vector<std::string> out;
  for (const Change& change : list_changes(report, options)) out.emplace_back(change.name);
  return out;
}

using Names = std::vector<std::string>;

TEST(Changes, AreSortedByNameAndLeaveOutWhatAgrees) {
  EXPECT_EQ(names(sample_report()), (Names{"cut", "gone", "new", "odd", "off"}));
}

TEST(Changes, ComeLargestFirstWhenAskedFor) {
  Report report = sample_report();
  report.only_a.clear();
  report.only_b.clear();
  report.pairs = {sample_pair(0, "small", Status::different),
                  sample_pair(1, "large", Status::different)};
  report.pairs[1].comparison.diff.rel_l2 = 7;
  EXPECT_EQ(names(report, {.sort = Sort::difference}), (Names{"large", "small"}));
}

TEST(Changes, CanBeCutAndFiltered) {
  EXPECT_EQ(names(sample_report(), {.top = 2}), (Names{"cut", "gone"}));
  EXPECT_EQ(names(sample_report(), {.top = 0}).size(), 5U);
  EXPECT_EQ(names(sample_report(), {.show = std::set{Status::different}, .show_unpaired = false}),
            Names{"off"});
}

TEST(Changes, OfLayoutAloneAreChangesOfValues) {
  Report report;
  report.pairs = {sample_pair(0, "w", Status::different)};
  report.pairs[0].b.shape = {1, 2, 3};
  EXPECT_EQ(list_changes(report, {})[0].kind, ChangeKind::stats);
  report.pairs[0].b.shape = {2, 4};
  EXPECT_EQ(list_changes(report, {})[0].kind, ChangeKind::shape);
}

TEST(Changes, OfShapesThatWereNotReadAreChangesOfShape) {
  Report report;
  report.pairs = {sample_failure(0, "w", Status::different, "shapes differ")};
  report.pairs[0].b.shape = {3, 2};
  EXPECT_EQ(list_changes(report, {})[0].kind, ChangeKind::shape);
}

TEST(StatsText, HasALineForEachChange) {
  EXPECT_EQ(renderers::stats.render(sample_report(), {}),
            "  ! cut: B: deflate stream ends early\n"
            "  - gone: shape=[4], dtype=f32, params=4\n"
            "  + new: shape=[], dtype=i64, params=1\n"
            "  ~ odd: shape=[2, 3] -> [7]\n"
            "  ~ off: mean=0.5000->0.7500, std=0.7500->0.8750\n");
}

TEST(StatsText, IndentsByTheDotsOfAName) {
  Report report;
  report.pairs = {sample_pair(0, "x", Status::different), sample_pair(1, "x.w", Status::different),
                  sample_pair(2, "x.y.z.w", Status::different)};
  const std::string tail = ": mean=0.5000->0.7500, std=0.7500->0.8750\n";
  EXPECT_EQ(renderers::stats.render(report, {}),
            "  ~ x" + tail + "  ~ x.w" + tail + "      ~ x.y.z.w" + tail);
}

TEST(ChangesJson, HasOneKeyForEachChange) {
  const Result<Json> parsed = Json::parse(renderers::json.render(sample_report(), {}));
  ASSERT_TRUE(parsed.ok());
  const Json& json = parsed.value();
  ASSERT_EQ(json.array().size(), 5U);
  EXPECT_EQ(json[0]["TensorUnreadable"][1].string(), "B: deflate stream ends early");
  EXPECT_EQ(json[1]["TensorRemoved"][0].string(), "gone");
  EXPECT_EQ(json[2]["TensorAdded"][1]["dtype"].string(), "i64");
  EXPECT_EQ(json[3]["TensorShapeChanged"][2][0].u64(), 7U);
  const Json& off = json[4]["TensorStatsChanged"];
  EXPECT_EQ(off[0].string(), "off");
  EXPECT_EQ(off[1]["mean"].number(), 0.5);
  EXPECT_EQ(off[2]["max"].number(), 2.5);
  EXPECT_EQ(off[1]["total_params"].u64(), 6U);
  std::string keys;
  for (const Json::Member& member : off[1].object()) keys += member.key + " ";
  EXPECT_EQ(keys, "mean std min max shape dtype total_params ");
}

TEST(ChangesJson, IsAnEmptyArrayWhenNothingDiffers) {
  Report report;
  report.pairs = {sample_pair(0, "w", Status::close)};
  EXPECT_EQ(renderers::json.render(report, {}), "[]\n");
  EXPECT_EQ(renderers::yaml.render(report, {}), "[]\n");
}

TEST(Yaml, IsTheSameListInBlockStyle) {
  Report report;
  report.pairs = {sample_pair(0, "w", Status::different)};
  report.pairs[0].comparison.a.mean = 1e-20;
  report.pairs[0].comparison.b.mean.reset();
  report.pairs[0].comparison.b.std = std::numeric_limits<double>::infinity();
  EXPECT_EQ(renderers::yaml.render(report, {}),
            "- TensorStatsChanged:\n"
            "    - w\n"
            "    - mean: 1.0e-20\n"
            "      std: 0.75\n"
            "      min: -1\n"
            "      max: 2\n"
            "      shape:\n"
            "        - 2\n"
            "        - 3\n"
            "      dtype: f32\n"
            "      total_params: 6\n"
            "    - mean: null\n"
            "      std: \"inf\"\n"
            "      min: -1\n"
            "      max: 2.5\n"
            "      shape:\n"
            "        - 2\n"
            "        - 3\n"
            "      dtype: bf16\n"
            "      total_params: 6\n");
}

TEST(Yaml, QuotesNamesThatWouldMeanSomethingElse) {
  for (const std::string name :
       {"no", "Null", "0", "1e5", "- x", "a: b", "#x", "{", "", "\x1b[1m"}) {
    Report report;
    report.only_a = {{{name, DType::f32, {1}, ""}, false, {}}};
    const std::string text = renderers::yaml.render(report, {});
    EXPECT_TRUE(text.starts_with("- TensorRemoved:\n    - \"")) << text;
  }
}

}  // namespace
}  // namespace tensordiff
