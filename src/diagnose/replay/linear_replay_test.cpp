// With the weights at hand, mistakes inside projections and MLPs are called by their names.

#include "diagnose/replay/linear_replay.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/diagnose.h"
#include "diagnose/toys/toy_mistakes.h"

namespace tensordiff {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

ToyShape random_shape(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](uint64_t end) { return random() % end; };
  ToyShape shape;
  shape.tokens = 12 + below(9);
  shape.kv_heads = 1 + below(3);
  shape.heads = shape.kv_heads * 2;
  shape.dim = 8 + 8 * below(2);
  shape.inner = 32 + 8 * below(5);
  return shape;
}

std::string text_of(const Finding& finding, std::string_view name) {
  for (const Parameter& parameter : finding.parameters)
    if (parameter.name == name && std::holds_alternative<std::string>(parameter.value))
      return std::get<std::string>(parameter.value);
  return "";
}

struct Told {
  std::string stage, code, cause, text;
  std::optional<EvidenceSlice> evidence;
};

// What is said of a mistake in one layer, with the weights and without.
Told told(const ToyMistakes& mistakes, DType dtype, unsigned seed, bool with_weights = true) {
  ToyModel model(random_shape(seed), seed);
  const auto a = model.run(DType::f32, false, {});
  const auto b = model.run(dtype, true, {mistakes});
  DiagnoseOptions options;
  if (with_weights) options.weights = Weights(model.weights());
  const std::vector<Site> sites = sites_of(a, DType::f32, b, dtype);
  const Insight insight = diagnose(sites, options);
  if (!insight.first || insight.findings.empty()) return {};
  const Finding& finding = insight.findings[0];
  return {sites[insight.first->pair].a.name, finding.code, text_of(finding, "cause"),
          finding.explanation, finding.evidence};
}

TEST(LinearReplay, NamesATransposedWeight) {
  ToyMistakes mistakes;
  mistakes.transposed = true;
  for (const DType dtype : kTypes) {
    for (unsigned seed = 1; seed <= 3; ++seed) {
      const Told found = told(mistakes, dtype, seed);
      SCOPED_TRACE(fmt::format("{} seed {}: {}", name_of(dtype), seed, found.text));
      EXPECT_EQ(found.stage, "1_query");
      EXPECT_EQ(found.code, "operator");
      EXPECT_EQ(found.cause, "transposed_weight");
    }
  }
  EXPECT_EQ(told(mistakes, DType::f32, 1, false).cause, "");
}

TEST(LinearReplay, NamesGateAndUpSwapped) {
  ToyMistakes mistakes;
  mistakes.swapped = true;
  for (const DType dtype : kTypes) {
    for (unsigned seed = 4; seed <= 6; ++seed) {
      const Told found = told(mistakes, dtype, seed);
      SCOPED_TRACE(fmt::format("{} seed {}: {}", name_of(dtype), seed, found.text));
      EXPECT_EQ(found.stage, "1_post_mlp");
      EXPECT_EQ(found.code, "operator");
      EXPECT_EQ(found.cause, "gate_up_swapped");
    }
  }
}

TEST(LinearReplay, NamesASecondMistakeBehindAnother) {
  for (const DType dtype : kTypes) {
    for (const bool swapped : {false, true}) {
      ToyMistakes first, second;
      first.layer = 0, first.score = 3;
      second.layer = 2, (swapped ? second.swapped : second.transposed) = true;
      ToyModel model(random_shape(5), 5);
      DiagnoseOptions options;
      options.weights = Weights(model.weights());
      const std::vector<Site> sites = sites_of(model.run(DType::f32, false, {}), DType::f32,
                                               model.run(dtype, true, {first, second}), dtype);
      const Insight insight = diagnose(sites, options);
      SCOPED_TRACE(fmt::format("{}, swapped: {}", name_of(dtype), swapped));
      ASSERT_EQ(insight.next.size(), 1U);
      EXPECT_EQ(sites[insight.next[0].pair].a.name, swapped ? "2_post_mlp" : "2_query");
      const auto found = std::ranges::find(insight.findings, insight.next[0].pair, &Finding::pair);
      ASSERT_NE(found, insight.findings.end());
      EXPECT_EQ(text_of(*found, "cause"), swapped ? "gate_up_swapped" : "transposed_weight");
    }
  }
}

// What weights make of b's own input tells of any mistake behind another, not only of other
// weights.
TEST(LinearReplay, FindsAnyMistakeBehindAnother) {
  const auto next = [](const std::string& stage, std::function<void(Values&)> change, DType dtype) {
    ToyMistakes first, second;
    first.layer = 0, first.masked = false;
    second.layer = 2, second.after[stage] = std::move(change);
    ToyModel model({}, 5);
    DiagnoseOptions options;
    options.weights = Weights(model.weights());
    const std::vector<Site> sites = sites_of(model.run(DType::f32, false, {}), DType::f32,
                                             model.run(dtype, true, {first, second}), dtype);
    const Insight insight = diagnose(sites, options);
    std::string text;
    for (const Divergence& each : insight.next) {
      const auto found = std::ranges::find(insight.findings, each.pair, &Finding::pair);
      text += sites[each.pair].a.name + " " + (found == insight.findings.end() ? "" : found->code);
    }
    return text;
  };
  const uint64_t width = ToyShape{}.width(), kv = ToyShape{}.kv_heads * ToyShape{}.dim;
  for (const DType dtype : kTypes) {
    const auto swap = [](uint64_t columns) {
      return moved(columns, [=](uint64_t row, uint64_t i) {
        return (row == 3 ? 9 : row == 9 ? 3 : row) * columns + i;
      });
    };
    EXPECT_EQ(next("query", swap(width), dtype), "2_query row_permutation");
    EXPECT_EQ(next("post_mlp", swap(width), dtype), "2_post_mlp row_permutation");
    const auto larger = each(kv, [](double x, auto, auto) { return 1.2 * x; });
    EXPECT_EQ(next("value", larger, dtype), "2_value scale");
    EXPECT_EQ(next(
                  "query", [](Values&) {}, dtype),
              "");
  }
}

TEST(LinearReplay, NamesAnotherActivation) {
  ToyMistakes mistakes;
  mistakes.gelu = true;
  for (const DType dtype : kTypes) {
    const Told found = told(mistakes, dtype, 7);
    SCOPED_TRACE(fmt::format("{}: {}", name_of(dtype), found.text));
    EXPECT_EQ(found.stage, "1_post_mlp");
    EXPECT_EQ(found.cause, "activation");
    // Rounding to bf16 hides which GELU it is.
    EXPECT_TRUE(found.text.starts_with("the activation is GELU")) << found.text;
    if (dtype == DType::f32) {
      EXPECT_EQ(found.text, "the activation is GELU (erf) in B and SiLU in A");
    }
  }
}

TEST(LinearReplay, NamesAMissingSumOverRanks) {
  ToyMistakes mistakes;
  for (const uint64_t ranks : {2, 4}) {
    mistakes.ranks = ranks;
    for (const DType dtype : kTypes) {
      const Told found = told(mistakes, dtype, 8);
      SCOPED_TRACE(fmt::format("{}: {}", name_of(dtype), found.text));
      EXPECT_EQ(found.stage, "1_post_attn_pre_resid");
      EXPECT_EQ(found.code, "reduction");
      EXPECT_EQ(found.cause, "missing_all_reduce");
      EXPECT_EQ(found.text, fmt::format("B is the part of rank 0 of {}: the sum over ranks is "
                                        "missing",
                                        ranks));
    }
  }
}

// The bias of the queries, added twice or not at all.
TEST(LinearReplay, NamesTheBias) {
  const ToyShape shape = random_shape(9);
  const Weights weights(ToyModel(shape, 9).weights());
  const std::vector<double> bias = weights.bias(1, Projection::query, shape.width());
  ASSERT_EQ(bias.size(), shape.width());
  for (const double times : {-1.0, 1.0}) {
    ToyMistakes mistakes;
    mistakes.after["query"] = [&](Values& values) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += times * bias[i % bias.size()];
    };
    for (const DType dtype : kTypes) {
      const Told found = told(mistakes, dtype, 9);
      EXPECT_EQ(found.code, "offset") << name_of(dtype);
      EXPECT_EQ(found.text, times < 0 ? "B omits the bias of this projection"
                                      : "B adds the bias of this projection 2 times");
    }
  }
}

TEST(LinearReplay, ShowsWhatItComputed) {
  ToyMistakes mistakes;
  mistakes.transposed = true;
  const Told found = told(mistakes, DType::f32, 2);
  ASSERT_TRUE(found.evidence);
  bool shown = false;
  for (std::size_t i = 0; i < found.evidence->model.size(); ++i) {
    if (std::isnan(found.evidence->model[i])) continue;
    EXPECT_NEAR(found.evidence->model[i], found.evidence->b[i], 1e-4);
    shown = true;
  }
  EXPECT_TRUE(shown);
}

// A tensor parallel run of two ranks: what its dumps were put together from is all that is known.
std::vector<Site> on_two_ranks(const ToyMistakes& mistakes, std::string_view summed, DType dtype) {
  ToyModel model({}, 3);
  const auto a = model.run(DType::f32, false, {});
  auto b = model.run(dtype, true, {mistakes});
  std::vector<Site> sites = sites_of(a, DType::f32, b, dtype);
  for (Site& site : sites) {
    if (site.stage == "query") site.views.steps.push_back({'b', Op::concat, {1, 2, 1}});
    if (site.stage == summed) site.views.steps.push_back({'b', Op::sum, {2}});
  }
  return sites;
}

TEST(Reduction, KnowsASumDoneTwice) {
  for (const DType dtype : kTypes) {
    ToyMistakes mistakes;
    mistakes.after["post_mlp"] = [](Values& values) {
      for (double& value : values) value *= 2;
    };
    const std::vector<Site> sites = on_two_ranks(mistakes, "", dtype);
    const Insight insight = diagnose(sites, {});
    ASSERT_FALSE(insight.findings.empty());
    EXPECT_EQ(insight.findings[0].code, "reduction") << insight.findings[0].explanation;
    EXPECT_EQ(text_of(insight.findings[0], "cause"), "double_all_reduce");
    // On one rank it is a factor like any other.
    std::vector<Site> alone = sites;
    for (Site& site : alone) site.views.steps.clear();
    const Insight without = diagnose(alone, {});
    ASSERT_FALSE(without.findings.empty());
    EXPECT_EQ(without.findings[0].code, "scale");
  }
}

// The ranks add up to a, so that their sum was compared; what follows shows that nobody summed.
TEST(Reduction, KnowsASumThatNobodyMade) {
  for (const DType dtype : kTypes) {
    ToyMistakes mistakes;
    mistakes.after["pre_mlp"] = [](Values& values) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] *= 0.3 + 0.4 * std::sin(double(i));
    };
    const std::vector<Site> sites = on_two_ranks(mistakes, "post_attn_pre_resid", dtype);
    const Insight insight = diagnose(sites, {});
    ASSERT_TRUE(insight.first);
    EXPECT_EQ(sites[insight.first->pair].a.name, "1_post_attn_pre_resid");
    ASSERT_FALSE(insight.findings.empty());
    EXPECT_EQ(insight.findings[0].code, "reduction");
    EXPECT_EQ(text_of(insight.findings[0], "cause"), "missing_all_reduce");
  }
}

// Where not even their sum is A, the step itself is wrong: experts that were exchanged, say.
TEST(Reduction, AWrongSumIsNoMissingSum) {
  for (const DType dtype : kTypes) {
    ToyMistakes mistakes;
    mistakes.after["post_attn_pre_resid"] = [](Values& values) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] *= 0.3 + 0.4 * std::sin(double(i));
    };
    const Insight insight = diagnose(on_two_ranks(mistakes, "post_attn_pre_resid", dtype), {});
    ASSERT_TRUE(insight.first);
    for (const Finding& finding : insight.findings)
      EXPECT_NE(finding.code == "reduction" ? text_of(finding, "cause") : "", "missing_all_reduce");
  }
}

// Of more tokens than can be computed again, those that are the farthest off are.
TEST(LinearReplay, SamplesTheTokensThatAreFarthestOff) {
  constexpr uint64_t kTokens = 400, kWidth = 8;
  const Shape shape = {kTokens, kWidth};
  const Values right(kTokens * kWidth, 1);
  Values wrong = right;
  for (const uint64_t row : {101, 103})
    for (uint64_t i = 0; i < kWidth; ++i) wrong[row * kWidth + i] = 2;
  const tensordiff::Run run = make_run(
      sites_of({{"query", 0, shape, right}}, DType::f32, {{"query", 0, shape, wrong}}, DType::f32),
      {});
  const Site& site = run.sites[0];
  const Case it(run, site, read_matrix(site.views.a, run.extent).value(),
                read_matrix(site.views.b, run.extent).value());
  const std::optional<Samples> samples = samples_of(it, site, 1e6);
  ASSERT_TRUE(samples);
  EXPECT_LE(samples->rows.size(), 24U);
  for (const uint64_t row : {101, 103})
    EXPECT_TRUE(std::ranges::binary_search(samples->rows, row)) << row;
}

}  // namespace
}  // namespace tensordiff
