// Second mistakes, each of a kind that needs more than a look at the first tokens or at a's values.

#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/toys/toy_mistakes.h"
#include "diagnose/toys/toy_values.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

struct Found {
  std::vector<Site> sites;
  Insight insight;

  // "2_value: scale" of all but the first.
  std::vector<std::string> next() const {
    std::vector<std::string> all;
    for (const Divergence& each : insight.next) {
      const auto finding = std::ranges::find(insight.findings, each.pair, &Finding::pair);
      all.push_back(fmt::format("{}: {}", sites[each.pair].a.name,
                                finding == insight.findings.end() ? "nothing" : finding->code));
    }
    return all;
  }
};

Found found_of(const ToyShape& shape, ToyMistakes one, ToyMistakes two, bool with_weights = false) {
  ToyModel model(shape, 6);
  DiagnoseOptions options;
  if (with_weights) options.weights = Weights(model.weights());
  Found found;
  found.sites = sites_of(model.run(DType::f32, false, {}), DType::f32,
                         model.run(DType::f32, true, {std::move(one), std::move(two)}), DType::f32);
  found.insight = diagnose(found.sites, options);
  return found;
}

// `two` behind attention without a mask in layer 0.
Found behind_no_mask(const ToyShape& shape, ToyMistakes two, bool with_weights = false) {
  ToyMistakes one;
  one.layer = 0, one.masked = false;
  return found_of(shape, std::move(one), std::move(two), with_weights);
}

TEST(Behind, TokensThatAreEmptyBehindThoseComputedAgain) {
  ToyShape shape;
  shape.tokens = 50;
  ToyMistakes two;
  two.layer = 2;
  two.after["post_attn"] =
      each(shape.width(), [](double x, uint64_t row, auto) { return row >= 48 ? 0 : x; });
  EXPECT_EQ(behind_no_mask(shape, two).next(), std::vector<std::string>({"2_post_attn: region"}));
}

// They are a small part of the error, and a few features do not tell which token is which.
TEST(Behind, TwoTokensOfManyThatChangedPlaces) {
  ToyShape shape;
  shape.tokens = 140, shape.layers = 4;
  ToyMistakes one, two;
  one.layer = 0, one.score = 1.5;
  two.layer = 3;
  two.after["post_mlp"] = moved(shape.width(), [&](uint64_t row, uint64_t i) {
    return (row == 10 ? 70 : row == 70 ? 10 : row) * shape.width() + i;
  });
  EXPECT_EQ(found_of(shape, one, two).next(),
            std::vector<std::string>({"3_post_mlp: row_permutation"}));
}

TEST(Behind, OneTokenOfAnMlpMayBeChance) {
  ToyShape shape;
  shape.tokens = 40;
  for (const uint64_t last : {5, 6}) {
    ToyMistakes one, two;
    one.layer = 0, one.score = 1.2;
    two.layer = 2;
    two.after["post_mlp"] = moved(shape.width(), [&](uint64_t row, uint64_t i) {
      return row * shape.width() + (row == 5 || row == last ? shape.width() - 1 - i : i);
    });
    const std::vector<std::string> told = {"2_post_mlp: region"};
    EXPECT_EQ(found_of(shape, one, two).next(), last == 5 ? std::vector<std::string>() : told);
  }
}

// Both sides see the last 29 tokens, which the first 32 tell of a in hardly any and of b in more.
TEST(Behind, AWindowThatTheFirstTokensBarelyShow) {
  ToyShape shape;
  shape.tokens = 90, shape.heads = 3, shape.kv_heads = 3, shape.sharpness = 3;
  for (unsigned seed = 6; seed <= 8; ++seed) {
    ToyModel model(shape, seed);
    std::vector<ToyMistakes> of_a(shape.layers), of_b(shape.layers);
    for (uint64_t layer = 0; layer < shape.layers; ++layer) {
      of_a[layer].layer = of_b[layer].layer = layer;
      of_a[layer].window = of_b[layer].window = 29;
    }
    of_b[0].after["post_attn_pre_resid"] = moved(shape.width(), [&](uint64_t row, uint64_t i) {
      return (row + shape.tokens - 1) % shape.tokens * shape.width() + i;
    });
    Found found;
    found.sites = sites_of(model.run(DType::f16, false, of_a), DType::f16,
                           model.run(DType::f16, true, of_b), DType::f16);
    found.insight = diagnose(found.sites, {});
    EXPECT_EQ(found.next(), std::vector<std::string>()) << seed;
  }
}

TEST(Behind, HeadsThatWereNotTransposedBack) {
  const ToyShape shape;
  ToyMistakes two;
  two.layer = 2;
  two.after["post_attn"] = moved(shape.width(), [&](uint64_t row, uint64_t i) {
    const uint64_t at = row * shape.width() + i, rows = shape.tokens * shape.dim;
    return at % rows / shape.dim * shape.width() + at / rows * shape.dim + at % shape.dim;
  });
  EXPECT_EQ(behind_no_mask(shape, two).next(),
            std::vector<std::string>({"2_post_attn: axis_permutation"}));
}

TEST(Behind, ABiasIsNamedAsOne) {
  const ToyShape shape;
  ToyModel model(shape, 6);
  const Catalog weights = model.weights();
  const auto bias =
      std::ranges::find(weights.tensors, "model.layers.2.self_attn.q_proj.bias", &Tensor::name);
  const Result<Matrix> values = read_matrix(bias->view, {});
  ToyMistakes two;
  two.layer = 2;
  two.after["query"] =
      each(shape.width(), [&](double x, auto, uint64_t i) { return x - values.value().values[i]; });
  const Found found = behind_no_mask(shape, two, true);
  EXPECT_EQ(found.next(), std::vector<std::string>({"2_query: offset"}));
  const auto finding =
      std::ranges::find(found.insight.findings, found.insight.next[0].pair, &Finding::pair);
  EXPECT_EQ(finding->explanation, "B omits the bias of this projection");
}

// The norm before the MLP reads the branch alone, and the stream has the sum all the same: so the
// next norm is right.
TEST(Behind, ANormIsRightBehindOneThatReadTheBranchAlone) {
  const ToyShape shape;
  ToyModel model(shape, 6);
  const Catalog weights = model.weights();
  const auto stored = std::ranges::find(
      weights.tensors, "model.layers.0.post_attention_layernorm.weight", &Tensor::name);
  const Result<Matrix> weight = read_matrix(stored->view, {});
  ToyMistakes one;
  one.layer = 0;
  auto branch = std::make_shared<Values>();
  one.after["post_attn_pre_resid"] = [branch](Values& values) { *branch = values; };
  one.after["pre_mlp"] = [&](Values& values) {
    for (uint64_t row = 0; row < shape.tokens; ++row) {
      const std::span<double> from = std::span(*branch).subspan(row * shape.width(), shape.width());
      double sum = 0;
      for (const double x : from) sum += x * x;
      const double size = std::sqrt(sum / double(shape.width()) + 1e-5);
      for (uint64_t i = 0; i < shape.width(); ++i)
        values[row * shape.width() + i] = from[i] / size * weight.value().values[i];
    }
  };
  const auto a = without_stream(model.run(DType::f32, false, {}));
  const auto b = without_stream(model.run(DType::f32, true, {one}));
  Found found;
  found.sites = sites_of(a, DType::f32, b, DType::f32);
  found.insight = diagnose(found.sites, {});
  SCOPED_TRACE(describe(found.insight, found.sites));
  ASSERT_TRUE(found.insight.first);
  EXPECT_EQ(found.sites[found.insight.first->pair].a.name, "0_pre_mlp");
  EXPECT_EQ(found.next(), std::vector<std::string>());
}

}  // namespace
}  // namespace tensordiff
