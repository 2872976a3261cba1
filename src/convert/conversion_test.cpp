#include "convert/conversion.h"

#include <gtest/gtest.h>

#include <set>

#include "align/view.h"
#include "convert/candidates.h"
#include "convert/fits.h"
#include "convert/form.h"
#include "convert/function.h"
#include "convert/misfit.h"
#include "naming/naming.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

View stored(const View& view) { return stored_as(view, view.shape); }

View transposed(const View& view) {
  const uint64_t order[] = {1, 0};
  return stored(permuted(view, order));
}

View plus_one(const View& view) {
  std::vector<float> values = values_of(view);
  for (float& value : values) value += 1;
  return f32_view(view.shape, values);
}

PairOperands operands(const View& a, const View& b) { return {Operand{{a}}, Operand{{b}}}; }

Fits fits(const View& a, const View& b) {
  return fits_of(operands(a, b), {"a", a, ""}, {"b", b, ""});
}

TEST(Misfit, SeesScaleAndOffset) {
  const View a = noise_view({16, 16}, 1);
  EXPECT_EQ(misfit({a, a, {}}), 0);
  EXPECT_GT(misfit({a, plus_one(a), {}}), 0.5);
  EXPECT_GT(misfit({a, noise_view({16, 16}, 2), {}}), 1);
  EXPECT_LT(misfit_max(8, 1), 0.05);  // Few numbers agree by chance.
  EXPECT_GE(misfit_max(1 << 20, 1), 0.5);
}

TEST(Misfit, IsNotANumberWhereBIsOneValueAllOver) {
  const View ones = f32_view({4}, {1, 1, 1, 1});
  EXPECT_TRUE(std::isnan(misfit({ones, ones, {}})));
}

TEST(Function, IsComputedWhenItIsRead) {
  const View a = f32_view({3}, {0, 1, -2});
  EXPECT_EQ(values_of(with_function(Function::plus_one, a)), (std::vector<float>{1, 2, -1}));
  EXPECT_EQ(values_of(with_function(Function::negated, a)), (std::vector<float>{0, -1, 2}));
  EXPECT_FLOAT_EQ(values_of(with_function(Function::negative_exp, a))[1], -std::exp(1.0F));
  EXPECT_EQ(text_of(Function::plus_one), "A + 1");
}

// Parts with names may be stored in any order; layers that are stacked are counted.
TEST(Candidates, OfStackedLayersKeepTheirOrder) {
  const View layer = noise_view({4, 4}, 1), stack = noise_view({3, 4, 4}, 2);
  const auto orders = [&](const std::string& label) {
    std::set<std::vector<std::size_t>> found;
    for (const Candidate& each :
         plain_candidates({{layer}}, {{stack}, Section{label, {16, 16, 16}, 0}}))
      found.insert(each.form.parts);
    return found.size();
  };
  EXPECT_GT(orders("q"), 1U);
  EXPECT_EQ(orders("0"), 1U);
}

TEST(Candidates, OfASquareMatrixAreBothOrientations) {
  const View square = noise_view({8, 8}, 1);
  EXPECT_EQ(plain_candidates({{square}}, {{square}}).size(), 2U);
  EXPECT_EQ(plain_candidates({{noise_view({8, 4}, 1)}}, {{noise_view({4, 8}, 1)}}).size(), 1U);
}

struct FormCase {
  std::string_view text;
  View a, b;
};

TEST(Fits, NamesWhatAConverterDid) {
  const View square = noise_view({32, 32}, 1), wide = noise_view({32, 16}, 2),
             norm = noise_view({64}, 3), kernel = noise_view({8, 3, 5, 5}, 4);
  const uint64_t last_first[] = {2, 3, 1, 0};
  const uint64_t halves[] = {4, 2, 4}, swap[] = {0, 2, 1, 3};
  const View rope = stored_as(permuted(split(square, 0, halves), swap), {32, 32});
  const View exchanged[] = {narrowed(wide, 0, 16, 16), narrowed(wide, 0, 0, 16)};
  const FormCase cases[] = {
      {"as it is", wide, wide},
      {"transposed", square, transposed(square)},
      {"transposed", wide, transposed(wide)},
      {"axes in the order [2, 3, 1, 0]", kernel, stored(permuted(kernel, last_first))},
      {"rows in the other RoPE order (heads of 8, halves in A)", square, rope},
      {"halves exchanged", wide, stored(concatenated(exchanged, 0))},
      {"B = A + 1", norm, plus_one(norm)},
  };
  for (const FormCase& each : cases) {
    const Fits found = fits(each.a, each.b);
    ASSERT_FALSE(found.forms.empty()) << each.text;
    EXPECT_EQ(text_of(found.forms[0]), each.text);
    // And the form can be carried out again, to the same values.
    const auto pair = carried_out(found.forms[0], operands(each.a, each.b));
    ASSERT_TRUE(pair) << each.text;
    EXPECT_EQ(values_of(pair->a), values_of(pair->b)) << each.text;
  }
}

TEST(Fits, FindsNoFormForOtherValues) {
  EXPECT_TRUE(fits(noise_view({32, 32}, 1), noise_view({32, 32}, 2)).forms.empty());
}

TEST(Fits, TellsNothingFromOneValueAllOver) {
  const View ones = f32_view({2, 2}, {1, 1, 1, 1});
  EXPECT_FALSE(fits(ones, ones).tells);
}

// Two catalogs whose tensors are paired in order.
struct Model {
  Catalog a, b;
  std::vector<Pair> pairs;

  void add(const std::string& name, const View& of_a, const View& of_b) {
    pairs.push_back({.a = a.tensors.size(), .b = b.tensors.size(), .layer = {}, .stage = {}});
    a.tensors.push_back({name, of_a, ""});
    b.tensors.push_back({name, of_b, ""});
  }
  Conversion infer() {
    read_places(a);
    read_places(b);
    return infer_conversion(a, b, pairs, [&](const Pair& pair) {
      return operands(a.tensors[pair.a].view, b.tensors[pair.b].view);
    });
  }
};

// Four ranks that all hold the bias: copies, or shares of a sum.
TEST(Conversion, AddsRanksUpWhereTwoPairsSaySo) {
  const auto infer = [](std::size_t pairs) {
    Model model;
    std::vector<std::vector<View>> ranks;
    for (unsigned layer = 0; layer < pairs; ++layer) {
      const View share = noise_view({64}, layer);
      std::vector<float> sum = values_of(share);
      for (float& value : sum) value *= 4;
      model.add(fmt::format("layers.{}.dense.bias", layer), share, f32_view({64}, sum));
      ranks.emplace_back(4, share);
    }
    read_places(model.a);
    read_places(model.b);
    return infer_conversion(model.a, model.b, model.pairs, [&](const Pair& pair) {
      return PairOperands{Operand{ranks[pair.a]}, Operand{{model.b.tensors[pair.b].view}}};
    });
  };
  const Conversion two = infer(2);
  ASSERT_EQ(two.rules.size(), 1U);
  EXPECT_EQ(text_of(two.rules[0].form), "summed over the ranks");
  EXPECT_TRUE(two.exceptions.empty());
  // What one pair alone does is no convention.
  const Conversion one = infer(1);
  ASSERT_EQ(one.rules.size(), 1U);
  EXPECT_EQ(text_of(one.rules[0].form), "put together from shards or parts");
}

TEST(Conversion, JudgesASquareMatrixByTheOthersOfItsName) {
  Model model;
  for (unsigned layer = 0; layer < 2; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    const View up = noise_view({24, 16}, 10 * layer), down = noise_view({16, 24}, 10 * layer + 1),
               out = noise_view({16, 16}, 10 * layer + 2);
    model.add(prefix + "mlp.up_proj.weight", up, transposed(up));
    model.add(prefix + "mlp.down_proj.weight", down, transposed(down));
    // One of two square ones was left as it is.
    model.add(prefix + "self_attn.o_proj.weight", out, layer == 0 ? transposed(out) : out);
  }
  const Conversion conversion = model.infer();
  ASSERT_EQ(conversion.exceptions.size(), 1U);
  EXPECT_EQ(conversion.exceptions[0].pair, 5U);
  EXPECT_EQ(text_of(conversion.exceptions[0].rule), "transposed");
  EXPECT_EQ(text_of(conversion.exceptions[0].fits), "as it is");
  ASSERT_FALSE(summary_of(conversion).empty());
  EXPECT_TRUE(summary_of(conversion)[0].starts_with("conversion: transposed: 5 tensors"));
}

TEST(Conversion, TakesWhatOnePairAloneDoesForNoConvention) {
  Model model;
  const View out = noise_view({16, 16}, 1), wide = noise_view({16, 8}, 2);
  model.add("layers.0.o_proj.weight", out, transposed(out));
  model.add("layers.0.up_proj.weight", wide, wide);
  const Conversion conversion = model.infer();
  ASSERT_EQ(conversion.exceptions.size(), 1U);
  EXPECT_EQ(conversion.exceptions[0].pair, 0U);
}

TEST(Conversion, GivesANormOutsideOfLayersTheFunctionOfTheOthers) {
  Model model;
  for (unsigned layer = 0; layer < 2; ++layer)
    for (const unsigned norm : {0U, 1U}) {
      const View weight = noise_view({64}, 2 * layer + norm);
      model.add(fmt::format("model.layers.{}.{}.weight", layer,
                            norm ? "input_layernorm" : "post_attention_layernorm"),
                weight, plus_one(weight));
    }
  const View last = noise_view({64}, 9);
  model.add("model.norm.weight", last, last);
  const Conversion conversion = model.infer();
  ASSERT_EQ(conversion.exceptions.size(), 1U);
  EXPECT_EQ(conversion.exceptions[0].pair, 4U);
  EXPECT_EQ(text_of(conversion.exceptions[0].rule), "B = A + 1");
}

TEST(Conversion, GivesAKindOfWhichNothingFitsTheFormOfTheOthers) {
  Model model;
  for (unsigned layer = 0; layer < 2; ++layer)
    for (const unsigned part : {0U, 1U, 2U}) {
      const View weight = noise_view({24, 16}, 10 * layer + part);
      // The two layers of the last one changed places.
      const View held = part == 2 ? noise_view({24, 16}, 10 * (1 - layer) + part) : weight;
      const char* names[] = {"gate_proj", "up_proj", "other_proj"};
      model.add(fmt::format("layers.{}.{}.weight", layer, names[part]), weight, transposed(held));
    }
  const Conversion conversion = model.infer();
  ASSERT_NE(conversion.form_of(5), nullptr);
  EXPECT_EQ(text_of(*conversion.form_of(5)), "transposed");
}

TEST(Conversion, LeavesUnrelatedTensorsToAlignment) {
  Model model;
  model.add("layers.0.w.weight", noise_view({16, 16}, 1), noise_view({16, 16}, 2));
  const Conversion conversion = model.infer();
  EXPECT_EQ(conversion.form_of(0), nullptr);
  EXPECT_TRUE(conversion.exceptions.empty());
}

}  // namespace
}  // namespace tensordiff
