// Single steps that are told, and named, by one rule each.

#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/toys/toy_mistakes.h"
#include "diagnose/toys/toy_values.h"

namespace tensordiff {
namespace {

// So many times as far off as the values are large.
Values off_by(Values values, double error, unsigned seed) {
  const Values apart = random_values(values.size(), seed);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += error * apart[i];
  return values;
}

std::string first_code(const std::vector<ToyModel::Dump>& a, const std::vector<ToyModel::Dump>& b,
                       const std::string& name, DType dtype = DType::f32) {
  const std::vector<Site> sites = sites_of(a, dtype, b, dtype);
  const Insight insight = diagnose(sites, {});
  SCOPED_TRACE(describe(insight, sites));
  EXPECT_TRUE(insight.first);
  if (!insight.first) return "";
  EXPECT_EQ(sites[insight.first->pair].a.name, name) << describe(insight, sites);
  const auto found = std::ranges::find(insight.findings, insight.first->pair, &Finding::pair);
  return found == insight.findings.end() ? "" : found->code;
}

// Two halves of one head that became pairs are also a transposed [2, d / 2].
TEST(OneStep, PairsInOneHeadAreInterleaved) {
  constexpr uint64_t kTokens = 13, kWidth = 32;
  const Values in = random_values(kTokens * 48, 1), key = random_values(kTokens * kWidth, 2);
  Values wrong = key;
  moved(kWidth, [](uint64_t row, uint64_t i) {
    return row * kWidth + i / 2 + i % 2 * (kWidth / 2);
  })(wrong);
  const ToyModel::Dump before = {"post_ln_pre_attn", 0, {kTokens, 48}, in};
  EXPECT_EQ(first_code({before, {"key", 0, {kTokens, kWidth}, key}},
                       {before, {"key", 0, {kTokens, kWidth}, wrong}}, "0_key"),
            "interleave");
}

// Where all tokens are alike, a vector that is added to each explains as much.
TEST(OneStep, AFactorOfTokensThatAreAlike) {
  constexpr uint64_t kTokens = 13, kWidth = 32;
  const Values in = random_values(kTokens * kWidth, 1), noise = random_values(kTokens * kWidth, 3);
  Values value = random_values(kTokens * kWidth, 2);
  for (uint64_t i = 0; i < value.size(); ++i) value[i] = value[i % kWidth] + 1e-8 * noise[i];
  Values wrong = value;
  for (double& x : wrong) x *= 1.7;
  const ToyModel::Dump before = {"post_ln_pre_attn", 0, {kTokens, kWidth}, in};
  EXPECT_EQ(first_code({before, {"value", 0, {kTokens, kWidth}, value}},
                       {before, {"value", 0, {kTokens, kWidth}, wrong}}, "0_value"),
            "scale");
}

// [sequence, channel, height, width]: the bias of a convolution is one number for each channel.
TEST(OneStep, ABiasOfChannelsIsAnOffset) {
  const Values in = random_values(2 * 4 * 10 * 14, 1), map = random_values(2 * 6 * 5 * 7, 2);
  const Values bias = random_values(6, 3);
  Values wrong = map;
  for (std::size_t i = 0; i < wrong.size(); ++i) wrong[i] -= bias[i / 35 % 6];
  const ToyModel::Dump before = {"post_ln_pre_attn", 0, {2, 4, 10, 14}, in};
  EXPECT_EQ(first_code({before, {"value", 0, {2, 6, 5, 7}, map}},
                       {before, {"value", 0, {2, 6, 5, 7}, wrong}}, "0_value"),
            "offset");
}

// In memory as [heads, tokens, dim] on both sides, though it was computed token by token.
TEST(OneStep, HeadsThatWereNotTransposedBackInADumpOfHeads) {
  constexpr uint64_t kTokens = 13, kHeads = 4, kDim = 8, kWidth = kHeads * kDim;
  const Values in = random_values(kTokens * kWidth, 1);
  const Values right = random_values(kTokens * kWidth, 2);
  Values wrong = right;
  moved(kWidth, [](uint64_t row, uint64_t i) {
    const uint64_t at = row * kWidth + i;
    return at / kDim % kTokens * kWidth + at / (kDim * kTokens) * kDim + at % kDim;
  })(wrong);
  const auto by_heads = [](const Values& flat) {
    Values heads = flat;
    for (uint64_t at = 0; at < flat.size(); ++at)
      heads[(at % kWidth / kDim * kTokens + at / kWidth) * kDim + at % kDim] = flat[at];
    return heads;
  };
  const Shape shape = {kHeads, kTokens, kDim};
  const ToyModel::Dump before = {"post_ln_pre_attn", 0, {kTokens, kWidth}, in};
  const ToyModel::Dump behind = {"post_attn_pre_resid", 0, {kTokens, kWidth}, in};
  EXPECT_EQ(first_code({before, {"post_attn", 0, shape, by_heads(right)}, behind},
                       {before, {"post_attn", 0, shape, by_heads(wrong)}, behind}, "0_post_attn"),
            "axis_permutation");
}

// Heads are not told by the shapes, and neighbours turn alike in heads of twice the size.
TEST(OneStep, RopeOfNeighboursInHeadsOfUnknownSize) {
  ToyShape shape;
  shape.layers = 1, shape.heads = 4, shape.kv_heads = 4, shape.dim = 16;
  ToyModel model(shape, 3);
  ToyMistakes neighbours;
  neighbours.layer = 0, neighbours.neighbours = true;
  const auto flat = [&](std::vector<ToyModel::Dump> dumps) {
    std::erase_if(dumps, [](const ToyModel::Dump& dump) {
      return dump.stage != "post_ln_pre_attn" && !dump.stage.starts_with("query");
    });
    const Values heads = dumps[2].values;
    for (uint64_t at = 0; at < heads.size(); ++at) {
      const uint64_t head = at / (shape.dim * shape.tokens), token = at / shape.dim % shape.tokens;
      dumps[2].values[token * shape.width() + head * shape.dim + at % shape.dim] = heads[at];
    }
    dumps[2].shape = {shape.tokens, shape.width()};
    return dumps;
  };
  EXPECT_EQ(first_code(flat(model.run(DType::f32, false, {neighbours})),
                       flat(model.run(DType::f32, true, {})), "0_query_final"),
            "rope_pairing");
}

// The activation is that of the gate alone: it agrees whatever is wrong with the other projection.
TEST(OneStep, AnActivationOfTheGateForgivesNothingOfTheOther) {
  constexpr uint64_t kTokens = 13, kWidth = 32;
  const Shape shape = {kTokens, kWidth};
  const auto made = [&](bool wrong) {
    std::vector<ToyModel::Dump> dumps = {
        {"pre_mlp", 0, shape, random_values(kTokens * kWidth, 1)},
        {"mlp_gate", 0, shape, random_values(kTokens * kWidth, 2)},
        {"mlp_act", 0, shape, random_values(kTokens * kWidth, 2)},
        {"mlp_up", 0, shape, random_values(kTokens * kWidth, 3)},
        {"mlp_out", 0, shape, random_values(kTokens * kWidth, wrong ? 5 : 4)}};
    for (double& x : dumps[2].values) x = x / (1 + std::exp(-x));
    if (wrong)
      moved(kWidth, [&](uint64_t row, uint64_t i) {
        return (row + kTokens - 1) % kTokens * kWidth + i;
      })(dumps[3].values);
    return dumps;
  };
  EXPECT_EQ(first_code(made(false), made(true), "0_mlp_up"), "token_shift");
}

// Within what rounding would leave, and no farther off than what comes in makes likely.
TEST(OneStep, ATokenThatIsEmptyInLoudNoise) {
  const Shape shape = {48, 32};
  const Values in = random_values(48 * 32, 1), out = random_values(48 * 32, 2);
  Values wrong = off_by(out, 0.06, 4);
  std::fill(wrong.end() - 32, wrong.end(), 0);
  EXPECT_EQ(first_code({{"pre_mlp", 0, shape, in}, {"post_mlp", 0, shape, out}},
                       {{"pre_mlp", 0, shape, off_by(in, 0.06, 3)}, {"post_mlp", 0, shape, wrong}},
                       "0_post_mlp", DType::bf16),
            "region");
}

// Two heads that are nearly the same changed places: what reads them is hardly off, but by more
// than a tenth of what they are.
TEST(OneStep, ALayoutThatIsHardlySeenBehindItIsNoConvention) {
  constexpr uint64_t kTokens = 40, kDim = 16, kWidth = 2 * kDim;
  const Shape shape = {kTokens, kWidth};
  const Values in = random_values(kTokens * kWidth, 1), heads = random_values(kTokens * kWidth, 2);
  Values query = random_values(kTokens * kWidth, 3);
  const Values apart = random_values(kTokens * kWidth, 4);
  for (uint64_t i = 0; i < query.size(); ++i)
    if (i % kWidth >= kDim) query[i] = query[i - kDim] + 0.013 * apart[i];
  Values wrong = query;
  moved(kWidth, [](uint64_t row, uint64_t i) { return row * kWidth + (i + kDim) % kWidth; })(wrong);
  const auto code = [&](double behind) {
    return first_code({{"post_ln_pre_attn", 0, shape, in},
                       {"query", 0, shape, query},
                       {"post_attn", 0, shape, heads}},
                      {{"post_ln_pre_attn", 0, shape, off_by(in, 2e-4, 5)},
                       {"query", 0, shape, wrong},
                       {"post_attn", 0, shape, off_by(heads, behind, 6)}},
                      "0_query", DType::f16);
  };
  EXPECT_EQ(code(1.5e-3), "block_permutation");
}

// On the grid of the narrower type all the same, which other layers are not.
TEST(OneStep, ACastMayHoldAFewOtherValues) {
  const Shape shape = {20, 32};
  std::vector<ToyModel::Dump> a, b;
  for (unsigned layer = 0; layer < 3; ++layer) {
    const ToyModel::Dump in = {"pre_mlp", layer, shape, random_values(20 * 32, 2 * layer)};
    const Values out = random_values(20 * 32, 2 * layer + 1);
    Values wrong = out;
    if (layer == 2) {
      for (double& value : wrong) value = as_stored(value, DType::bf16);
      for (const std::size_t i : {7, 300}) wrong[i] = 2;
    }
    a.insert(a.end(), {in, {"post_mlp", layer, shape, out}});
    b.insert(b.end(), {in, {"post_mlp", layer, shape, wrong}});
  }
  EXPECT_EQ(first_code(a, b, "2_post_mlp"), "cast");
}

}  // namespace
}  // namespace tensordiff
