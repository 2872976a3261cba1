// Dumps as nobody should make them: steps that are missing or of sizes that do not belong together,
// layouts that change from step to step, empty tensors, tokens too few, numbers that are none.
// Explaining them may find nothing. What was planted is measured as it is, every tensor is in the
// report once, and all that the report refers to is there.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "pipeline.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

constexpr unsigned kDumps = 120;

class OddDump {
 public:
  explicit OddDump(unsigned seed) : generator_(seed) {
    heads_ = pick({1, 2, 3, 4, 8}), dim_ = pick({1, 2, 3, 4, 6, 8, 16});
    kv_heads_ = pick({1, heads_}), batch_ = pick({1, 1, 2}), tokens_ = 1 + below(12);
    inner_ = pick({heads_ * dim_, 2 * heads_ * dim_, 3 * heads_ * dim_ + 1});
    const uint64_t layers = 1 + below(3);
    for (const std::string_view step : kSteps) {
      if (below(10) < 3) continue;
      for (uint64_t layer = 0; layer < layers; ++layer)
        add(fmt::format("{}_{}", layer, step), step);
    }
  }

  Catalog a, b;
  // What was done to tensors of b that kept their shape.
  enum class Planted { nothing, scale, nan, zeros };
  std::map<std::string, Planted> planted;

 private:
  static constexpr std::string_view kSteps[] = {"hidden_states", "post_ln_pre_attn",
                                                "query",         "key",
                                                "value",         "query_final",
                                                "key_final",     "value_final",
                                                "post_attn",     "attn_out",
                                                "pre_mlp",       "post_attn_pre_resid",
                                                "gate",          "up",
                                                "act",           "post_mlp",
                                                "scaling",       "mlp_out",
                                                "residual",      "attn_weights"};

  uint64_t below(uint64_t end) { return generator_() % end; }
  uint64_t pick(const std::vector<uint64_t>& of) { return of[below(of.size())]; }

  Shape shape_of(std::string_view step) {
    if (below(30) == 0) {
      Shape any(below(4));
      for (uint64_t& size : any) size = below(5);
      return any;
    }
    const uint64_t heads =
        step.starts_with("key") || step.starts_with("value") ? kv_heads_ : heads_;
    if (step == "scaling") return {};
    if (step == "gate" || step == "up" || step == "act") return {batch_, tokens_, inner_};
    if (step == "attn_weights") return {batch_, heads_, tokens_, tokens_};
    const uint64_t width = heads * dim_;
    const Shape apart[] = {{batch_, heads, tokens_, dim_}, {batch_, tokens_, heads, dim_}};
    const Shape together[] = {{batch_, tokens_, width}, {tokens_, batch_, width}};
    const bool of_heads = step.starts_with("query") || heads != heads_ || step.starts_with("key");
    return of_heads && below(2) == 0 ? apart[below(2)] : together[below(2)];
  }

  void add(const std::string& name, std::string_view step) {
    const Shape shape = shape_of(step);
    std::vector<float> values =
        noise(element_count(shape).value(), static_cast<unsigned>(below(1000)));
    a.tensors.push_back({name, f32_view(shape, values), ""});
    Shape other = shape;
    Planted what = Planted::nothing;
    switch (below(6)) {
      case 0:
        for (float& value : values) value *= 0.125F;
        what = Planted::scale;
        break;
      case 1:
        if (!values.empty()) values[below(values.size())] = std::numeric_limits<float>::quiet_NaN();
        what = Planted::nan;
        break;
      case 2:
        if (other.empty() || other[0] < 2) break;
        values.resize(values.size() / other[0] * (other[0] - 1));
        --other[0];
        break;
      case 3:
        if (other.size() > 1) std::swap(other[0], other[1]);
        break;
      case 4:
        values.assign(values.size(), 0);
        what = Planted::zeros;
        break;
      default:
        break;
    }
    if (below(30) == 0) return;
    b.tensors.push_back({name, f32_view(other, values), ""});
    if (other == shape && !values.empty()) planted[name] = what;
  }

  std::mt19937 generator_;
  uint64_t heads_, dim_, kv_heads_, batch_, tokens_, inner_;
};

// Every tensor of a side once: in a pair or alone.
void expect_all(const Catalog& catalog, const Report& report, TensorId PairRow::*side,
                const std::vector<Report::Unpaired>& alone) {
  std::multiset<std::string> expected, found;
  for (const Tensor& tensor : catalog.tensors) expected.insert(tensor.name);
  for (const PairRow& row : report.pairs) found.insert((row.*side).name);
  for (const Report::Unpaired& tensor : alone) found.insert(tensor.id.name);
  EXPECT_EQ(found, expected);
}

void expect_measured(const PairRow& row, OddDump::Planted what) {
  SCOPED_TRACE(row.a.name + " " + row.message);
  const Diff& diff = row.comparison.diff;
  EXPECT_EQ(row.a.name, row.b.name);
  EXPECT_EQ(diff.compared + diff.nonfinite_mismatch, element_count(row.shape));
  switch (what) {
    case OddDump::Planted::nothing:
      EXPECT_EQ(diff.equal, diff.compared);
      EXPECT_EQ(diff.nonfinite_mismatch, 0U);
      EXPECT_LE(row.comparison.status, Status::equal);
      break;
    case OddDump::Planted::nan:
      EXPECT_EQ(diff.nonfinite_mismatch, 1U);
      EXPECT_EQ(row.comparison.b.nan, 1U);
      EXPECT_EQ(row.comparison.status, Status::different);
      break;
    case OddDump::Planted::scale:
      EXPECT_NEAR(diff.norm_ratio.value(), 0.125, 1e-6);
      EXPECT_EQ(row.comparison.status, Status::different);
      break;
    case OddDump::Planted::zeros:
      EXPECT_EQ(row.comparison.b.zeros, element_count(row.shape));
      EXPECT_EQ(row.comparison.status, Status::different);
      break;
  }
}

// What a report says of a pair is of one that is there, and that differs.
void expect_sound(const Report& report) {
  const auto differs = [&](std::size_t pair) {
    return report.pairs.at(pair).comparison.status >= Status::different;
  };
  for (const Finding& finding : report.findings) {
    EXPECT_FALSE(finding.code.empty() || finding.explanation.empty());
    EXPECT_TRUE(finding.confidence >= 0 && finding.confidence <= 1) << finding.confidence;
    EXPECT_TRUE(differs(finding.pair) || finding.convention) << finding.code;
  }
  for (const Trial& trial : report.trials) EXPECT_LT(trial.pair, report.pairs.size());
  for (const Divergence& next : report.next_divergences) EXPECT_TRUE(differs(next.pair));
  bool any = false;
  for (const PairRow& row : report.pairs) any = any || differs(row.index);
  EXPECT_EQ(report.first_divergence.has_value(), any);
  EXPECT_TRUE(!report.first_divergence || differs(report.first_divergence->pair));
}

TEST(OddDumps, AreMeasuredAndExplainedOrNot) {
  std::map<OddDump::Planted, unsigned> seen;
  for (unsigned seed = 0; seed < kDumps; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    OddDump dump(seed);
    Request request;
    request.diagnose.explain = true;
    const Result<Pairing> pairing = pair_up(std::move(dump.a), std::move(dump.b), request);
    ASSERT_TRUE(pairing.ok()) << pairing.error().message();
    const Result<Report> report = compare_pairs(pairing.value(), pairing.value().report, request);
    ASSERT_TRUE(report.ok()) << report.error().message();
    expect_all(pairing.value().a, report.value(), &PairRow::a, report.value().only_a);
    expect_all(pairing.value().b, report.value(), &PairRow::b, report.value().only_b);
    expect_sound(report.value());
    for (const PairRow& row : report.value().pairs) {
      const auto planted = dump.planted.find(row.a.name);
      if (planted == dump.planted.end()) continue;
      expect_measured(row, planted->second);
      ++seen[planted->second];
    }
  }
  EXPECT_EQ(seen.size(), 4U);  // The dumps hold some of each.
}

}  // namespace
}  // namespace tensordiff
