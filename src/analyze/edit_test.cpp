// What kind of edit made B out of A: one planted case for each, and those that cannot be told.

#include "analyze/edit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "analyze/analysis.h"
#include "analyze/test_models.h"

namespace tensordiff {
namespace {

constexpr std::size_t kSize = 96;
const Shape kShape = {kSize, kSize};

using Values = std::vector<float>;

// Two layers of two matrices, all made from those of A in one way.
template <class Make>
Model edited(const Make& make) {
  Model model;
  for (unsigned i = 0; i < 4; ++i)
    model.add("layers." + std::to_string(i / 2) + (i % 2 ? ".up" : ".down"), kShape,
              make(noise(kSize * kSize, 10 + i), i));
  return model;
}
Model original() {
  return edited([](const Values& w, unsigned) { return w; });
}

std::string edit_of(const Model& b, const std::vector<Model>& bases = {}) {
  const auto all = compared(original(), b);
  for (const Model& base : bases) all->study->add_base(base.catalog);
  Answer answer;
  analyses::what_changed.examine(*all->study, answer);
  return text_of(answer, "edit");
}

// planted: identical, cast, scaled, low rank, fine-tuned and re-initialized weights
TEST(WhatChanged, NamesTheEdit) {
  EXPECT_EQ(edit_of(original()), "identical");
  EXPECT_EQ(
      edit_of(edited([](const Values& w, unsigned) { return values_of(as_bf16(w, kShape)); })),
      "cast: to bf16");
  EXPECT_EQ(edit_of(edited([](const Values& w, unsigned) { return times(w, 1.25F); })),
            "scaled: by 1.25");
  EXPECT_EQ(edit_of(edited([](Values w, unsigned) {
              for (std::size_t i = 0; i < w.size(); ++i) w[i] *= 1 + 0.01F * (i % kSize % 13);
              return w;
            })),
            "scaled: each column by itself");
  EXPECT_EQ(edit_of(edited([](const Values& w, unsigned i) {
              return plus(w, times(low_rank_noise(kSize, kSize, 8, 50 + i), 0.01F));
            })),
            "low-rank update (LoRA): rank 8");
  EXPECT_EQ(edit_of(edited([](const Values& w, unsigned i) {
              return plus(w, times(noise(w.size(), 60 + i), 0.02F));
            })),
            "fine-tuned");
  EXPECT_EQ(edit_of(edited([](const Values& w, unsigned i) { return noise(w.size(), 70 + i); })),
            "re-initialized");
  EXPECT_EQ(edit_of(edited([](const Values& w, unsigned) { return rounded(w, 32, 7); })),
            "quantized: int4, blocks of 32");
}

// planted: pruning of single weights, of 2 in 4, and of whole rows
TEST(WhatChanged, NamesThePruning) {
  EXPECT_EQ(edit_of(edited([](Values w, unsigned) {
              for (float& value : w)
                if (std::abs(value) < 0.6745F) value = 0;  // Half of a normal distribution.
              return w;
            })),
            "pruned: unstructured, 50 % zero; unstructured, 51 % zero");
  EXPECT_EQ(edit_of(edited([](Values w, unsigned) {
              // Other places in each group, so that no column is empty.
              for (std::size_t i = 0; i < w.size(); i += 4)
                w[i + i % 11 % 3] = w[i + i % 11 % 3 + 1] = 0;
              return w;
            })),
            "pruned: 2:4 pattern");
  EXPECT_EQ(edit_of(edited([](Values w, unsigned) {
              for (std::size_t i = 0; i < w.size(); i += 2) w[i + i % 7 % 2] = 0;
              return w;
            })),
            "pruned: 1:2 pattern");
  EXPECT_EQ(edit_of(edited([](Values w, unsigned) {
              for (std::size_t i = 0; i < w.size(); i += 8)
                for (std::size_t k = 0; k < 5; ++k) w[i + (i % 11 + k) % 8] = 0;
              return w;
            })),
            "pruned: 3:8 pattern");
  EXPECT_EQ(edit_of(edited([](Values w, unsigned) {
              std::fill_n(w.begin() + 5 * kSize, 24 * kSize, 0.0F);
              return w;
            })),
            "pruned: rows 5-28 of 96");
}

// planted: zeros among weights that were updated, as SparseGPT leaves them
TEST(WhatChanged, NamesPruningWithAnUpdate) {
  EXPECT_EQ(edit_of(edited([](Values w, unsigned i) {
              const Values update = times(noise(w.size(), 40 + i), 0.02F);
              for (std::size_t k = 0; k < w.size(); ++k) w[k] = k % 7 < 3 ? 0 : w[k] + update[k];
              return w;
            })),
            "pruned: unstructured, 43 % zero, the rest updated");
}

// Attention of 4 heads of 8 rows each.
Model with_heads(const std::vector<uint64_t>& kept, bool zeros) {
  constexpr std::size_t kHead = 8, kHeads = 4, kWidth = 32;
  Model model;
  const auto heads = static_cast<uint64_t>(zeros ? kHeads : kept.size());
  for (unsigned layer = 0; layer < 2; ++layer)
    for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
      const Values all = noise(kHeads * kHead * kWidth, layer * 7 + name[0]);
      Values values(heads * kHead * kWidth);
      for (std::size_t i = 0; i < kept.size(); ++i)
        std::copy_n(
            all.begin() + static_cast<std::ptrdiff_t>(kept[i] * kHead * kWidth), kHead * kWidth,
            values.begin() + static_cast<std::ptrdiff_t>((zeros ? kept[i] : i) * kHead * kWidth));
      model.add("model.layers." + std::to_string(layer) + ".self_attn." + name + ".weight",
                {heads * kHead, kWidth}, values);
    }
  return model.scalar("config.num_attention_heads", static_cast<double>(heads));
}

// planted: attention heads that were set to zero or removed, and rows that were added
TEST(WhatChanged, NamesHeadsAndRows) {
  const Model all = with_heads({0, 1, 2, 3}, false);
  const auto edit = [&](const Model& b) {
    return text_of(answer_to(analyses::what_changed, all, b), "edit");
  };
  EXPECT_EQ(edit(with_heads({0, 2, 3}, true)), "pruned: heads 1 of 4");
  EXPECT_EQ(edit(with_heads({0, 2}, false)), "pruned: heads 1, 3 of 4 removed");
  const Answer answer = answer_to(analyses::what_changed, all, with_heads({0, 2}, false));
  EXPECT_EQ(list_of(answer, "lines").rows.size(), 6U);
  Values grown = noise(40 * 16, 1);
  const Model a = Model().add("embed.weight", {36, 16}, Values(grown.begin(), grown.begin() + 576));
  EXPECT_EQ(
      text_of(answer_to(analyses::what_changed, a, Model().add("embed.weight", {40, 16}, grown)),
              "edit"),
      "resized: rows 36-39 of 40 added");
  // Rows of another model are not those of A.
  EXPECT_EQ(
      text_of(answer_to(analyses::what_changed, a, Model().noise("embed.weight", {40, 16}, 9)),
              "edit"),
      "unknown");
}

// planted: layers that were dropped, repeated or moved are named before what became of the others
TEST(WhatChanged, NamesRestackedLayers) {
  const auto stack = [](const std::vector<unsigned>& from) {
    Model model;
    for (std::size_t i = 0; i < from.size(); ++i)
      model.noise("layers." + std::to_string(i) + ".up.weight", {32, 32}, 20 + from[i]);
    return model;
  };
  const auto edit = [&](const std::vector<unsigned>& from) {
    return text_of(answer_to(analyses::what_changed, stack({0, 1, 2, 3}), stack(from)), "edit");
  };
  EXPECT_EQ(edit({0, 1, 2, 3}), "identical");
  EXPECT_EQ(edit({0, 1, 2, 1, 2, 3}), "restacked layers: A 0-2, A 1-3; repeated 1-2");
  EXPECT_EQ(edit({0, 3}), "restacked layers: A 0, A 3; dropped 1-2");
  EXPECT_EQ(edit({0, 1}), "restacked layers: A 0-1; dropped 2-3");
}

// planted: rows or columns in another order, and a rotation
TEST(WhatChanged, NamesReorderings) {
  EXPECT_EQ(edit_of(edited([](const Values& w, unsigned) {
              Values out(w.size());
              for (std::size_t i = 0; i < w.size(); ++i)
                out[(i / kSize * 35 + 7) % kSize * kSize + i % kSize] = w[i];
              return out;
            })),
            "reordered: rows");
  EXPECT_EQ(edit_of(edited([](const Values& w, unsigned) {
              Values out(w.size());
              for (std::size_t i = 0; i < w.size(); ++i)
                out[i / kSize * kSize + (i * 35 + 7) % kSize] = w[i];
              return out;
            })),
            "reordered: columns");
  EXPECT_EQ(edit_of(edited([](Values w, unsigned) {
              for (std::size_t i = 0; i < w.size(); i += 2) {  // By a right angle and a half.
                const float x = w[i], y = w[i + 1];
                w[i] = -0.7071068F * x - 0.7071068F * y;
                w[i + 1] = 0.7071068F * x - 0.7071068F * y;
              }
              return w;
            })),
            "rotated: along columns");
}

// planted: linear and SLERP merges, averages and task vectors with their coefficients (--base)
TEST(WhatChanged, FindsTheCoefficientsOfMerges) {
  const auto base_values = [](const Values& w, unsigned i) {
    return plus(w, times(noise(w.size(), 80 + i), 0.5F));
  };
  const auto other_values = [](const Values& w, unsigned i) {
    return plus(w, times(noise(w.size(), 90 + i), 0.5F));
  };
  const Model base = edited(base_values), other = edited(other_values);
  const auto merge = [&](float of_a, float of_m, float of_other) {
    return edited([&](const Values& w, unsigned i) {
      return plus(plus(times(w, of_a), times(base_values(w, i), of_m)),
                  times(other_values(w, i), of_other));
    });
  };
  EXPECT_EQ(edit_of(merge(0.3F, 0.7F, 0), {base}), "merged: linear merge: 0.3 A + 0.7 M");
  EXPECT_EQ(edit_of(merge(0.5F, 0.5F, 0), {base}), "merged: average: 0.5 A + 0.5 M");
  EXPECT_EQ(edit_of(merge(1.5F, -0.5F, 0), {base}), "merged: task vectors: 1.5 A - 0.5 M");
  EXPECT_EQ(edit_of(merge(0.2F, 0.5F, 0.3F), {base, other}),
            "merged: linear merge: 0.2 A + 0.5 M1 + 0.3 M2");
  const Model sphere = edited([&](const Values& w, unsigned i) {
    const Values m = base_values(w, i);
    double aa = 0, mm = 0, am = 0;
    for (std::size_t k = 0; k < w.size(); ++k)
      aa += w[k] * w[k], mm += m[k] * m[k], am += w[k] * m[k];
    const double angle = std::acos(am / std::sqrt(aa * mm));
    return plus(times(w, static_cast<float>(std::sin(0.4 * angle) / std::sin(angle))),
                times(m, static_cast<float>(std::sin(0.6 * angle) / std::sin(angle))));
  });
  EXPECT_EQ(edit_of(merge(0, 0.4F, 0.6F), {base, other}), "merged: linear merge: 0.4 M1 + 0.6 M2");
  // The angle of the sample is not that of the whole.
  EXPECT_EQ(edit_of(sphere, {base}).substr(0, 24), "merged: SLERP from M to ");
}

// planted: merges by layer, layers of two models, and thinned updates (DARE)
TEST(WhatChanged, FindsMergesThatAreNotUniform) {
  const auto other = [](const Values& w, unsigned i) {
    return plus(w, times(noise(w.size(), 80 + i), 0.5F));
  };
  const Model base = edited(other);
  EXPECT_EQ(edit_of(edited([&](const Values& w, unsigned i) {
                      const float t = 0.2F + 0.2F * static_cast<float>(i);
                      return plus(times(w, t), times(other(w, i), 1 - t));
                    }),
                    {base}),
            "merged: linear merge, 0.2 to 0.8 of A by tensor");
  EXPECT_EQ(
      edit_of(edited([&](const Values& w, unsigned i) { return i < 2 ? w : other(w, i); }), {base}),
      "merged: taken from M");
  EXPECT_EQ(edit_of(edited([&](const Values& w, unsigned i) {
                      Values out = other(w, i);
                      for (std::size_t k = 0; k < w.size(); ++k)
                        if (k * 7 % 10 < 4) out[k] += 2.5F * (w[k] - out[k]);
                      return out;
                    }),
                    {base}),
            "merged: M + 2.5 (A - M) at 40 % of the elements, as of DARE");
}

// unknown: without the base, a merge looks like any other fine-tuning
TEST(WhatChanged, DoesNotKnowAMergeWithoutItsBase) {
  const Model merge = edited(
      [](const Values& w, unsigned i) { return plus(w, times(noise(w.size(), 80 + i), 0.15F)); });
  EXPECT_EQ(edit_of(merge), "fine-tuned");
  // Nor with a base that it was not made of.
  const Model stranger = edited(
      [](const Values& w, unsigned i) { return plus(w, times(noise(w.size(), 33 + i), 0.5F)); });
  EXPECT_EQ(edit_of(merge, {stranger}), "fine-tuned");
  // Nor with one that is so far away that B is next to A against it.
  const Model far = edited([](const Values& w, unsigned i) { return noise(w.size(), 500 + i); });
  EXPECT_EQ(edit_of(merge, {far}), "fine-tuned");
  EXPECT_EQ(text_of(answer_to(analyses::what_changed, {}, {}), "edit"), "unknown");
}

// edge: norms of another model, which lie close to 1 as those of A do, are re-initialized
TEST(WhatChanged, SeesThatNormsAreOfAnotherModel) {
  const auto norm = [](unsigned seed) {
    return plus(Values(512, 1.0F), times(noise(512, seed), 0.05F));
  };
  const auto edit = [&](const Values& b) {
    return text_of(answer_to(analyses::what_changed, Model().add("norm.weight", {512}, norm(1)),
                             Model().add("norm.weight", {512}, b)),
                   "edit");
  };
  EXPECT_EQ(edit(norm(2)), "re-initialized");
  EXPECT_EQ(edit(plus(norm(1), times(noise(512, 3), 0.01F))), "fine-tuned");
}

// edge: a LoRA merge that rounding to bf16 has nearly covered still has its rank
TEST(WhatChanged, FindsTheRankBelowTheRounding) {
  const auto made = [](bool update) {
    Model model;
    for (unsigned i = 0; i < 3; ++i) {
      const Values w = values_of(as_bf16(noise(kSize * kSize, i), kShape));
      const Values change = times(low_rank_noise(kSize, kSize, 4, 50 + i), 0.004F);
      model.add("w" + std::to_string(i), as_bf16(update ? plus(w, change) : w, kShape));
    }
    return model;
  };
  const Answer answer = answer_to(analyses::what_changed, made(false), made(true));
  EXPECT_EQ(text_of(answer, "edit"), "low-rank update (LoRA): rank 4");
}

// edge: seven values of a bias may be of any model, where its matrix is re-initialized
TEST(WhatChanged, DoesNotJudgeAFewValues) {
  const auto head = [](unsigned seed) {
    return Model()
        .noise("classifier.weight", {7, 96}, seed)
        .noise("classifier.bias", {7}, seed + 1);
  };
  const Answer answer = answer_to(analyses::what_changed, head(1), head(5));
  EXPECT_EQ(text_of(answer, "edit"), "re-initialized");
  EXPECT_EQ(cell(list_of(answer, "edits"), 1, "edit"), "unknown");
}

TEST(WhatChanged, NamesFrozenLayersAndGroups) {
  const Model b = edited([](const Values& w, unsigned i) {
    return i < 2 ? w : plus(w, times(noise(w.size(), i), 0.1F));
  });
  const Answer answer = answer_to(analyses::what_changed, original(), b);
  EXPECT_EQ(text_of(answer, "edit"), "fine-tuned");
  EXPECT_EQ(text_of(answer, "frozen_layers"), "0");
  EXPECT_EQ(text_of(answer, "tensors_of_it"), "2");
  EXPECT_NEAR(number_of(answer, "share_of_elements"), 0.5, 1e-3);
  EXPECT_EQ(cell(list_of(answer, "groups"), 0, "state"), "partly fine-tuned");
}

TEST(Ranges, AreShort) {
  EXPECT_EQ(ranges_text({}), "");
  EXPECT_EQ(ranges_text({0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
}

}  // namespace
}  // namespace tensordiff
