// Each mistake, made in a small transformer of random shape: is it found where it was made, and
// called by its name and by no other?

#include "diagnose/diagnosis.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include <algorithm>
#include <set>

#include "diagnose/diagnose.h"
#include "diagnose/toy_model.h"

namespace tensordiff {
namespace {

struct Example {
  std::string_view code;
  std::string stage;
  std::function<void(ToyMistakes&, const ToyShape&, std::mt19937&)> make;
};

uint64_t below(uint64_t end, std::mt19937& random) {
  return std::uniform_int_distribution<uint64_t>(0, end - 1)(random);
}

// Changes each value by its row and column.
auto each(uint64_t width, std::function<double(double, uint64_t, uint64_t)> change) {
  return [width, change](Values& values) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = change(values[i], i / width, i % width);
  };
}

// Puts another element in each place of a matrix of this width.
auto moved(uint64_t width, std::function<std::size_t(uint64_t, uint64_t)> source) {
  return [width, source](Values& values) {
    const Values old = values;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = old[source(i / width, i % width)];
  };
}

// One or more ways to make each mistake.
std::vector<Example> examples() {
  using Mistakes = ToyMistakes&;
  using Of = const ToyShape&;
  using Random = std::mt19937&;
  return {
      {"scale", "query",
       [](Mistakes m, Of s, Random r) {
         const double factor = std::vector<double>{-1, 2, 0.25, 3.7}[below(4, r)];
         m.after["query"] = each(s.width(), [=](double x, auto, auto) { return factor * x; });
       }},
      {"scale", "post_mlp",
       [](Mistakes m, Of s, Random) {
         m.after["post_mlp"] = each(
             s.width(), [](double x, uint64_t row, auto) { return x * (1.5 + 0.1 * double(row)); });
       }},
      {"scale", "value",
       [](Mistakes m, Of s, Random) {
         m.after["value"] = each(s.kv_heads * s.dim, [](double x, auto, uint64_t i) {
           return x * (2 + std::sin(double(i)));
         });
       }},
      {"offset", "key",
       [](Mistakes m, Of s, Random) {
         m.after["key"] = each(s.kv_heads * s.dim,
                               [](double x, auto, uint64_t i) { return x + std::cos(double(i)); });
       }},
      {"axis_permutation", "post_attn_pre_resid",
       [](Mistakes m, Of s, Random) {
         m.after["post_attn_pre_resid"] = moved(s.width(), [=](uint64_t row, uint64_t i) {
           const uint64_t at = row * s.width() + i;
           return at % s.tokens * s.width() + at / s.tokens;
         });
       }},
      {"interleave", "value",
       [](Mistakes m, Of s, Random) {
         const uint64_t width = s.kv_heads * s.dim;
         m.after["value"] = moved(width, [=](uint64_t row, uint64_t i) {
           const uint64_t at = i % s.dim;
           return row * width + i / s.dim * s.dim + at / 2 + at % 2 * (s.dim / 2);
         });
       }},
      {"reduction", "post_attn",
       [](Mistakes m, Of s, Random) {
         const uint64_t half = s.width() / 2;
         m.after["post_attn"] =
             moved(s.width(), [=](uint64_t row, uint64_t i) { return row * s.width() + i % half; });
       }},
      {"block_permutation", "query",
       [](Mistakes m, Of s, Random r) {
         const uint64_t one = below(s.heads - 1, r), two = s.heads - 1;
         m.after["query"] = moved(s.width(), [=](uint64_t row, uint64_t i) {
           const uint64_t head = i / s.dim;
           const uint64_t from = head == one ? two : head == two ? one : head;
           return row * s.width() + from * s.dim + i % s.dim;
         });
       }},
      {"token_shift", "post_attn",
       [](Mistakes m, Of s, Random r) {
         const uint64_t shift = 1 + below(3, r);
         m.after["post_attn"] = moved(s.width(), [=](uint64_t row, uint64_t i) {
           return (row + s.tokens - shift) % s.tokens * s.width() + i;
         });
       }},
      {"row_permutation", "post_mlp",
       [](Mistakes m, Of s, Random) {
         m.after["post_mlp"] = moved(s.width(), [=](uint64_t row, uint64_t i) {
           return (s.tokens - 1 - row) * s.width() + i;
         });
       }},
      {"region", "post_attn",
       [](Mistakes m, Of s, Random r) {
         const uint64_t first = s.tokens - 1 - below(4, r);
         m.after["post_attn"] =
             each(s.width(), [=](double x, uint64_t row, auto) { return row >= first ? 0 : x; });
       }},
      {"region", "query",
       [](Mistakes m, Of s, Random r) {
         const uint64_t head = below(s.heads, r);
         m.after["query"] = each(s.width(), [=](double x, uint64_t row, uint64_t i) {
           return i / s.dim == head ? x + std::sin(double(7 * row + i * i)) : x;
         });
       }},
      {"nonfinite", "post_mlp",
       [](Mistakes m, Of s, Random r) {
         const uint64_t bad = below(s.tokens, r);
         m.after["post_mlp"] =
             each(s.width(), [=](double x, uint64_t row, auto) { return row == bad ? NAN : x; });
       }},
      {"rope_pairing", "query_final", [](Mistakes m, Of, Random) { m.neighbours = true; }},
      {"rope_frequency", "query_final",
       [](Mistakes m, Of, Random r) { m.base = below(2, r) ? 5e5 : 100; }},
      {"rope_position", "query_final",
       [](Mistakes m, Of, Random r) { m.position = 1 + static_cast<int>(below(5, r)); }},
      {"head_mapping", "post_attn", [](Mistakes m, Of, Random) { m.tiled = true; }},
      {"attention_scale", "post_attn",
       [](Mistakes m, Of, Random r) { m.score = below(2, r) ? 3 : 0.2; }},
      {"attention_mask", "post_attn", [](Mistakes m, Of, Random) { m.masked = false; }},
      {"attention_mask", "post_attn", [](Mistakes m, Of, Random) { m.diagonal = 1; }},
      {"attention_mask", "post_attn", [](Mistakes m, Of, Random) { m.window = 4; }},
      {"norm_weight", "post_ln_pre_attn", [](Mistakes m, Of, Random) { m.plus = 1; }},
      {"norm_weight", "post_ln_pre_attn", [](Mistakes m, Of, Random) { m.weighted = false; }},
      {"norm_epsilon", "post_ln_pre_attn", [](Mistakes m, Of, Random) { m.epsilon = 1; }},
      {"residual_missing", "output",
       [](Mistakes m, Of s, Random) {
         // The sum with the output of the MLP, which is dumped, is left out.
         auto mlp = std::make_shared<Values>();
         m.after["post_mlp"] = [mlp](Values& values) { *mlp = values; };
         m.after["output"] = [mlp, s](Values& values) {
           for (std::size_t i = 0; i < values.size(); ++i) values[i] -= (*mlp)[i];
         };
       }},
      {"operator", "query", [](Mistakes m, Of, Random) { m.transposed = true; }},
  };
}

ToyShape random_shape(std::mt19937& random) {
  ToyShape shape;
  shape.tokens = 13 + below(9, random);
  shape.kv_heads = 2 + below(2, random);
  shape.heads = shape.kv_heads * (2 + below(2, random));
  shape.dim = 8 + 8 * below(2, random);
  shape.head_norm = below(3, random) == 0;
  shape.turned = below(3, random) == 0 ? shape.dim / 2 : 0;
  return shape;
}

const Site* site_of(const std::vector<Site>& sites, std::size_t pair) { return &sites.at(pair); }

std::string describe(const Insight& insight, const std::vector<Site>& sites) {
  std::string out = insight.first ? "first " + site_of(sites, insight.first->pair)->name_a : "none";
  for (const Finding& finding : insight.findings)
    out += fmt::format("; {} at {}: {}, {} -> {}", finding.code, sites[finding.pair].name_a,
                       finding.explanation, finding.residual_before.value_or(-1),
                       finding.residual_after.value_or(-1));
  return out;
}

void expect_found(const Example& example, DType dtype, unsigned seed) {
  std::mt19937 random(seed);
  const ToyShape shape = random_shape(random);
  ToyModel model(shape, seed);
  ToyMistakes mistakes;
  mistakes.layer = below(shape.layers, random);
  example.make(mistakes, shape, random);
  const auto a = model.run(DType::f32, false, {});
  const auto b = model.run(dtype, true, {mistakes});
  const std::vector<Site> sites = sites_of(a, DType::f32, b, dtype);
  const Insight insight = diagnose(sites, {});
  SCOPED_TRACE(fmt::format("{} in {}, layer {}, seed {}: {}", example.code, name_of(dtype),
                           mistakes.layer, seed, describe(insight, sites)));
  // Nothing feeds the very first step, so nothing can be said of it.
  if (mistakes.layer == 0 && example.stage == "post_ln_pre_attn") return;
  ASSERT_TRUE(insight.first.has_value());
  const Site* first = site_of(sites, insight.first->pair);
  EXPECT_EQ(first->stage, example.stage);
  EXPECT_EQ(first->layer, static_cast<int64_t>(mistakes.layer));
  EXPECT_TRUE(insight.first->created);
  const auto found = std::ranges::find(insight.findings, first->pair, &Finding::pair);
  ASSERT_NE(found, insight.findings.end());
  EXPECT_EQ(found->code, example.code);
  EXPECT_TRUE(found->evidence.has_value());
  // What carries the error is no mistake of its own; RoPE was wrong for the keys of the layer, too.
  for (const Divergence& next : insight.next) {
    EXPECT_EQ(sites[next.pair].layer, first->layer) << sites[next.pair].name_a;
    const auto of_next = std::ranges::find(insight.findings, next.pair, &Finding::pair);
    EXPECT_TRUE(of_next != insight.findings.end() && of_next->code == example.code);
  }
}

// How many random models each mistake is tried on: TENSORDIFF_SEEDS, or one, to be quick.
unsigned seeds() {
  const char* wanted = std::getenv("TENSORDIFF_SEEDS");
  return wanted ? static_cast<unsigned>(std::strtoul(wanted, nullptr, 10)) : 1;
}

TEST(Diagnosis, NamesEveryMistakeInFloat32) {
  for (const Example& example : examples())
    for (unsigned seed = 1; seed <= seeds(); ++seed) expect_found(example, DType::f32, seed);
}

TEST(Diagnosis, NamesEveryMistakeUnderTheNoiseOfFloat16) {
  for (const Example& example : examples())
    for (unsigned seed = 11; seed <= 10 + seeds(); ++seed) expect_found(example, DType::f16, seed);
}

TEST(Diagnosis, NamesEveryMistakeUnderTheNoiseOfBfloat16) {
  for (const Example& example : examples())
    for (unsigned seed = 21; seed <= 20 + seeds(); ++seed) expect_found(example, DType::bf16, seed);
}

TEST(Diagnosis, FindsTwoMistakesInDifferentLayers) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    ToyShape shape;
    shape.layers = 4;
    ToyModel model(shape, seed);
    ToyMistakes one, two;
    one.layer = 1;
    one.after["query"] = each(shape.width(), [](double x, auto, auto) { return 1.5 * x; });
    two.layer = 3;
    two.masked = false;
    const auto a = model.run(DType::f32, false, {});
    const auto b = model.run(DType::f32, true, {one, two});
    const std::vector<Site> sites = sites_of(a, DType::f32, b, DType::f32);
    const Insight insight = diagnose(sites, {});
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, describe(insight, sites)));
    ASSERT_TRUE(insight.first);
    EXPECT_EQ(sites[insight.first->pair].name_a, "1_query");
    ASSERT_EQ(insight.next.size(), 1U);
    EXPECT_EQ(sites[insight.next[0].pair].name_a, "3_post_attn");
  }
}

TEST(Diagnosis, CallsALayoutThatCancelsAConvention) {
  ToyShape shape;
  ToyModel model(shape, 5);
  ToyMistakes same;
  same.layer = 1;
  // Both q and k of each head with halves in place of pairs: their products are the same.
  const auto pairs = [=](Values& values) {
    const Values old = values;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const uint64_t at = i % shape.dim;
      values[i] = old[i - at + at / 2 + at % 2 * (shape.dim / 2)];
    }
  };
  same.after["query_final"] = pairs;
  same.after["key_final"] = pairs;
  const auto a = model.run(DType::f32, false, {});
  const auto b = model.run(DType::f32, true, {same});
  const std::vector<Site> sites = sites_of(a, DType::f32, b, DType::f32);
  const Insight insight = diagnose(sites, {});
  SCOPED_TRACE(describe(insight, sites));
  EXPECT_FALSE(insight.first.has_value());
  ASSERT_EQ(insight.findings.size(), 2U);
  for (const Finding& finding : insight.findings) {
    EXPECT_EQ(finding.code, "interleave");
    EXPECT_TRUE(finding.convention);
  }
}

// What rounding leaves over many layers exceeds the tolerance somewhere, and is said to be noise.
TEST(Diagnosis, CallsRoundingRounding) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (unsigned seed = 1; seed <= 3; ++seed) {
      std::mt19937 random(seed);
      ToyShape shape = random_shape(random);
      shape.layers = 6;
      ToyModel model(shape, seed);
      const auto a = model.run(DType::f32, false, {}), b = model.run(dtype, true, {});
      const Insight insight = diagnose(sites_of(a, DType::f32, b, dtype), {});
      EXPECT_FALSE(insight.first);
      ASSERT_EQ(insight.findings.size(), 1U) << name_of(dtype) << " seed " << seed;
      EXPECT_EQ(insight.findings[0].code, "precision_noise");
    }
  }
}

// Names that say nothing: the order is all there is to go by.
TEST(Diagnosis, FollowsAnOrderThatIsGiven) {
  const auto site = [](std::string name, double factor) {
    Values a, b;
    for (int i = 0; i < 64; ++i) a.push_back(std::sin(i * 1.7)), b.push_back(factor * a.back());
    Site made;
    made.name_a = made.name_b = std::move(name);
    made.views.a = view_of({8, 8}, a, DType::f32);
    made.views.b = view_of({8, 8}, b, DType::f32);
    made.comparison = compare(made.views).value();
    return made;
  };
  std::vector<Site> sites = {site("left", 3), site("middle", 3), site("right", 1)};
  for (std::size_t i = 0; i < sites.size(); ++i) sites[i].pair = sites[i].capture = i;
  DiagnoseOptions options;
  options.order = {"right", "middle", "left"};
  const Insight insight = diagnose(sites, options);
  ASSERT_TRUE(insight.first);
  EXPECT_EQ(insight.first->pair, 1U);
  EXPECT_TRUE(insight.first->created);
}

TEST(Diagnosis, KnowsAnotherTensor) {
  unsigned seed = 6;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    std::mt19937 random(++seed);
    ToyModel model(random_shape(random), seed);
    const auto a = model.run(DType::f32, false, {});
    const auto wanted = std::ranges::find_if(
        a, [](const auto& dump) { return dump.layer == 0 && dump.stage == "post_mlp"; });
    ToyMistakes stale;
    stale.layer = 2;
    stale.after["post_mlp"] = [&](Values& values) { values = wanted->values; };
    const auto b = model.run(dtype, true, {stale});
    const std::vector<Site> sites = sites_of(a, DType::f32, b, dtype);
    const Insight insight = diagnose(sites, {});
    SCOPED_TRACE(describe(insight, sites));
    ASSERT_TRUE(insight.first);
    EXPECT_EQ(sites[insight.first->pair].name_a, "2_post_mlp");
    EXPECT_EQ(insight.findings.at(0).code, "other_tensor");
    EXPECT_EQ(std::get<std::string>(insight.findings[0].parameters[0].value), "0_post_mlp");
  }
}

TEST(Diagnosis, EveryRowHasAnExample) {
  // These have tests of their own, here and in checkpoint_test.cpp.
  std::set<std::string_view> covered = {"cast", "quantization", "other_tensor", "precision_noise"};
  for (const Example& example : examples()) covered.insert(example.code);
  for (const Diagnosis* diagnosis : diagnoses::kAll)
    EXPECT_TRUE(covered.contains(diagnosis->code)) << diagnosis->code;
}

TEST(Diagnosis, RowsAreUniqueAndSayWhatTheyAre) {
  std::set<std::string_view> codes;
  for (const Diagnosis* diagnosis : diagnoses::kAll) {
    EXPECT_TRUE(codes.insert(diagnosis->code).second) << diagnosis->code;
    EXPECT_TRUE(diagnosis->question.ends_with("?")) << diagnosis->code;
    EXPECT_FALSE(diagnosis->explains.empty()) << diagnosis->code;
  }
}

}  // namespace
}  // namespace tensordiff
