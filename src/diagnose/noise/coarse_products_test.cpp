// Products in TF32 or bf16 inside an f32 run.

#include "diagnose/noise/coarse_products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "diagnose/toys/toy_steps.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTokens = 16, kWidth = 24;

// To so many bits of fraction.
double rounded(double value, int bits) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, bits + 1)), exponent - bits - 1);
}

Values product(const Values& x, const Values& weight, int bits) {
  Values out(kTokens * kWidth);
  for (uint64_t t = 0; t < kTokens; ++t)
    for (uint64_t i = 0; i < kWidth; ++i)
      for (uint64_t k = 0; k < kWidth; ++k)
        out[t * kWidth + i] +=
            rounded(x[t * kWidth + k], bits) * rounded(weight[i * kWidth + k], bits) / 5;
  return out;
}

Values weight_of(unsigned seed) { return random_values(kWidth * kWidth, seed); }

// Two layers of a query, a key and a value that read what comes before. `bits` of each product.
std::vector<Held> layers(const std::vector<int>& bits) {
  std::vector<Held> held;
  Values a = random_values(kTokens * kWidth, 1), b = a;
  held.push_back({"model.embed_tokens", a, b});
  unsigned seed = 2;
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    Values next_a = a, next_b = b;
    for (const std::string name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}) {
      const Values weight = weight_of(seed);
      const int of_this = bits[std::min<std::size_t>(seed - 2, bits.size() - 1)];
      held.push_back({layer + name, product(a, weight, 23), product(b, weight, of_this)});
      for (std::size_t i = 0; i < a.size(); ++i) {
        next_a[i] += held.back().a[i];
        next_b[i] += held.back().b[i];
      }
      ++seed;
    }
    a = next_a, b = next_b;
    held.push_back({layer.substr(0, layer.size() - 1), a, b});
  }
  return held;
}

std::string told_of(const std::vector<int>& bits) {
  for (const Finding& finding : diagnose(sites_of(layers(bits)), {}).findings)
    if (finding.code == "precision_noise") return finding.explanation;
  return "";
}

TEST(CoarseProducts, AreToldOnceAndAreNoMistake) {
  EXPECT_EQ(alarms(layers({10})), "");
  EXPECT_EQ(alarms(layers({7})), "");
  EXPECT_TRUE(told_of({10}).starts_with("B's products (matmuls, convolutions) round like TF32"))
      << told_of({10});
  EXPECT_TRUE(told_of({7}).starts_with("B's products (matmuls, convolutions) round like bf16"));
  EXPECT_EQ(told_of({23}).find("round like"), std::string::npos);
}

// Another base of RoPE changes all tokens but the first, by what bf16 might.
TEST(CoarseProducts, RoundEachToken) {
  std::vector<Held> held = layers({7});
  for (Held& each : held)
    for (uint64_t i = 0; i < kWidth; ++i) each.b[i] = each.a[i] * (1 + 1e-8);
  EXPECT_NE(alarms(held), "");
}

TEST(CoarseProducts, AreAMistakeInOneStepAlone) {
  EXPECT_TRUE(alarms(layers({10, 23})).starts_with("model.layers.0.self_attn.q_proj"))
      << alarms(layers({10, 23}));
  EXPECT_TRUE(alarms(layers({23, 23, 23, 7, 23})).starts_with("model.layers.1.self_attn.q_proj"));
}

TEST(CoarseProducts, AreACastInOneStepAlone) {
  for (const auto& [bits, name] : {std::pair(10, "TF32"), {7, "bf16"}}) {
    const Insight told = diagnose(sites_of(layers({23, bits, 23})), {});
    ASSERT_FALSE(told.findings.empty());
    EXPECT_EQ(told.findings[0].code, "cast");
    EXPECT_TRUE(
        told.findings[0].explanation.starts_with("B's product rounds like " + std::string(name)))
        << told.findings[0].explanation;
  }
}

// A container that adds far more than its products is no product that is exact.
TEST(CoarseProducts, AreNotDeniedByAContainer) {
  std::vector<Held> held = layers({10});
  const Values large = random_values(kTokens * kWidth, 77, 100);
  Values b = large;
  b[0] *= 1 + 1e-6;
  held.push_back({"model.layers.1.mlp.router.layer", held[5].a, held[5].b});
  held.push_back({"model.layers.1.mlp", large, b});
  EXPECT_EQ(alarms(held), "");
}

TEST(CoarseProducts, HideNoMistakeBehindThem) {
  std::vector<Held> held = layers({10});
  for (double& value : held[5].b) value *= 0.5;
  EXPECT_TRUE(alarms(held).starts_with("model.layers.1.self_attn.q_proj"));
}

// A mistake in another tower, computed first: the products of this one still show their rounding.
TEST(CoarseProducts, AreKnownBehindAMistakeElsewhere) {
  std::vector<Held> held = layers({10});
  const Held first = held[0], second = held[4];
  held.insert(held.begin() + 5, {"model.layers.1.input_layernorm", second.a, second.b});
  held.insert(held.begin() + 1, {"model.layers.0.input_layernorm", first.a, first.b});
  const Values image = random_values(kTokens * kWidth, 91);
  held.insert(held.begin(), {"vision.patch_embedding", image, random_values(image.size(), 92)});
  EXPECT_EQ(alarms(held), "vision.patch_embedding ");
}

// What the names of the first layer's projections are told as, where B's embedding is another one
// and its products have so many bits of fraction.
std::string told_behind_mistake(const std::vector<int>& bits) {
  const std::string layer = "model.layers.0.";
  const Values a = random_values(kTokens * kWidth, 1), b = random_values(kTokens * kWidth, 91);
  std::vector<Held> held = {{"model.embed_tokens", a, b}, {layer + "input_layernorm", a, b}};
  Catalog weights;
  unsigned seed = 2;
  for (const std::string name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}) {
    Values weight = random_values(kWidth * kWidth, seed);
    const int of_this = bits[std::min<std::size_t>(seed++ - 2, bits.size() - 1)];
    held.push_back({layer + name, product(a, weight, 23), product(b, weight, of_this)});
    for (double& value : weight) value /= 5;
    weights.tensors.push_back(
        {layer + name + ".weight", view_of({kWidth, kWidth}, weight, DType::f32), ""});
  }
  read_places(weights);
  DiagnoseOptions options;
  options.weights = Weights(weights);
  const Insight insight = diagnose(sites_of(held), options);
  std::string told;
  for (const Divergence& next : insight.next) told += held[next.pair].name + " ";
  return told;
}

// A mistake before the first product: what the weights make of B's own inputs shows the rounding.
TEST(CoarseProducts, AreKnownByTheWeightsBehindAMistake) {
  EXPECT_EQ(told_behind_mistake({10}), "");
  EXPECT_EQ(told_behind_mistake({7}), "");
  EXPECT_EQ(told_behind_mistake({23}), "");
  EXPECT_EQ(told_behind_mistake({23, 7, 23}), "model.layers.0.self_attn.k_proj ");
}

// A sum of one product needs twice the bits of its operands: few, where they are few.
TEST(CoarseProducts, OfOneTermAreNoCast) {
  const auto told = [](int bits) {
    std::vector<Held> held = layers({bits});
    held.pop_back();
    const Values weight = random_values(kTokens * kWidth, 55);
    for (std::size_t i = 0; i < weight.size(); ++i) {
      held.back().a[i] = held[4].a[i] * weight[i];
      held.back().b[i] = rounded(held[4].b[i], 7) * rounded(weight[i], 7);
    }
    return alarms(held);
  };
  EXPECT_EQ(told(7), "");
  EXPECT_EQ(told(23), "model.layers.1.self_attn.v_proj ");
}

TEST(CoarseProducts, AConvolutionMultipliesAndATableDoesNot) {
  Site site;
  site.role = Role::embedding;
  site.views.a.shape = {2, 16, 24};
  EXPECT_FALSE(may_multiply(site));
  site.views.a.shape = {2, 24, 4, 4};
  EXPECT_TRUE(may_multiply(site));
}

// Convolutions have no role: that others of the same kind of name are exact shows a cast.
TEST(CoarseProducts, AreAMistakeWhereOthersOfThatNameAreExact) {
  const Values x = random_values(kTokens * kWidth, 1), in = random_values(kWidth * kWidth, 2),
               out = random_values(kWidth * kWidth, 3);
  const Values exact = product(x, in, 23);
  const Values a = product(exact, out, 23), b = product(exact, out, 10);
  const std::vector<Held> held = {{"embed", x, x},
                                  {"down.in_mix", exact, exact},
                                  {"middle.out_mix", a, b},
                                  {"head", product(a, in, 23), product(b, in, 23)}};
  EXPECT_TRUE(alarms(held).starts_with("middle.out_mix")) << alarms(held);
}

// Tables come of weights that are kept in the type of the run, whatever type they are computed in.
TEST(Roundoff, OfAStepThatNothingFeedsIsThatOfTheRun) {
  std::vector<Held> held = layers({23});
  for (Held& each : held)
    for (double& value : each.b) value = rounded(value, 7);
  Values table = random_values(kTokens * kWidth, 77), near = table;
  for (double& value : near) value *= 1 + 4e-4;
  held.insert(held.begin(), {"model.rotary_emb", table, near});
  EXPECT_EQ(alarms(held), "");
  for (double& value : held[0].b) value = -value;
  EXPECT_TRUE(alarms(held).starts_with("model.rotary_emb ")) << alarms(held);
}

// A few numbers that stand for a tensor are off by any amount.
TEST(CoarseProducts, AreNotToldByStatistics) {
  const std::vector<Held> held = layers({23, 23, 23, 10});
  std::vector<Site> sites = sites_of(held);
  const auto first = [](const Values& values) {
    return view_of({5}, Values(values.begin(), values.begin() + 5), DType::f32);
  };
  for (std::size_t i = 0; i < sites.size(); ++i) {
    sites[i].views.a = first(held[i].a), sites[i].views.b = first(held[i].b);
    sites[i].comparison = compare(sites[i].views, {}).value();
  }
  for (const Finding& finding : diagnose(sites, {}).findings) {
    EXPECT_NE(finding.code, "precision_noise") << finding.explanation;
    EXPECT_NE(finding.code, "cast") << finding.explanation;
  }
}

// Programs choose the rounding of matmuls and of recurrent cells each by itself.
TEST(CoarseProducts, OfOneKindMayBeOneAlone) {
  const Values x = random_values(kTokens * kWidth, 1), out = random_values(kTokens * kWidth, 2);
  Values near = out;
  for (std::size_t i = 0; i < near.size(); ++i) near[i] *= 1 + 3e-8 * std::sin(double(i));
  const auto told = [&](int bits) {
    return alarms({{"embed", x, x},
                   {"cells.0", out, near},
                   {"head", product(out, weight_of(3), 23), product(near, weight_of(3), bits)}});
  };
  EXPECT_EQ(told(10), "");
  EXPECT_EQ(told(7), "");
  EXPECT_EQ(told(4), "head ");
}

// What is the same for all positions came of no values of the run.
TEST(CoarseProducts, AreNotDeniedByATable) {
  std::vector<Held> held = layers({10});
  Values table = random_values(kWidth, 77);
  for (std::size_t i = kWidth; i < kTokens * kWidth; ++i) table.push_back(table[i % kWidth]);
  held.insert(held.begin() + 1, {"model.layers.0.positions.k_proj", table, table});
  EXPECT_EQ(alarms(held), "");
  for (std::size_t i = 0; i < table.size(); ++i) table[i] *= 1 + std::sin(double(i));
  held[1] = {"model.layers.0.positions.k_proj", table, table};
  EXPECT_NE(alarms(held), "");
}

}  // namespace
}  // namespace tensordiff
