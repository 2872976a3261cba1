// A model on ranks, with a mistake that ranks make: two of them changed places, one holds what
// another should, heads were dealt out like cards, a copy fell behind, square pieces were turned.
// However the ranks are put together, and whatever the other side has, the mistake is told; and
// without it all is equal.

#include <fmt/ranges.h>

#include <array>
#include <map>
#include <random>

#include "align/view.h"
#include "tensor/test_views.h"
#include "test_compare.h"

namespace tensordiff {
namespace {

enum class Cut { rows, columns, heads, none };

struct Weight {
  std::string name;
  Cut cut;
  View view;
};

using Rank = std::map<std::string, View>;

struct Random {
  explicit Random(unsigned seed) : engine(seed) {}
  uint64_t below(uint64_t n) { return std::uniform_int_distribution<uint64_t>(0, n - 1)(engine); }
  template <class List>
  auto of(const List& list) {
    return list[below(std::size(list))];
  }
  std::mt19937 engine;
};

constexpr uint64_t kKeyHeads[] = {1, 2, 4, 8};
constexpr uint64_t kRanks[] = {2, 4, 8};
constexpr uint64_t kHidden = 32, kInner = 64, kDim = 6, kLayers = 2;

struct Model {
  uint64_t key_heads, heads;
  std::vector<Weight> weights;
};

Model make_model(Random& random) {
  Model model{random.of(kKeyHeads), 8, {}};
  unsigned seed = static_cast<unsigned>(random.below(1 << 20));
  const auto add = [&](const std::string& name, Cut cut, const Shape& shape) {
    model.weights.push_back({name, cut, noise_view(shape, ++seed)});
  };
  for (uint64_t layer = 0; layer < kLayers; ++layer) {
    const std::string at = fmt::format("model.layers.{}.", layer);
    add(at + "self_attn.q_proj.weight", Cut::rows, {model.heads * kDim, kHidden});
    add(at + "self_attn.k_proj.weight", Cut::heads, {model.key_heads * kDim, kHidden});
    add(at + "self_attn.v_proj.weight", Cut::heads, {model.key_heads * kDim, kHidden});
    add(at + "self_attn.o_proj.weight", Cut::columns, {kHidden, model.heads * kDim});
    add(at + "mlp.gate_proj.weight", Cut::rows, {kInner, kHidden});
    add(at + "mlp.up_proj.weight", Cut::rows, {kInner, kHidden});
    add(at + "mlp.down_proj.weight", Cut::columns, {kHidden, kInner});
    add(at + "input_layernorm.weight", Cut::none, {kHidden});
  }
  return model;
}

View piece_of(const View& view, std::size_t axis, uint64_t pieces, uint64_t which) {
  const uint64_t size = view.shape[axis] / pieces;
  const View piece = narrowed(view, axis, which * size, size);
  return stored_as(piece, piece.shape);
}

std::vector<Rank> dealt(const Model& model, uint64_t ranks) {
  std::vector<Rank> result(ranks);
  for (const Weight& weight : model.weights)
    for (uint64_t rank = 0; rank < ranks; ++rank) {
      const bool shared = weight.cut == Cut::heads && ranks > model.key_heads;
      const uint64_t pieces = shared ? model.key_heads : ranks;
      result[rank][weight.name] =
          weight.cut == Cut::none
              ? weight.view
              : piece_of(weight.view, weight.cut == Cut::columns ? 1 : 0, pieces,
                         shared ? rank / (ranks / model.key_heads) : rank);
    }
  return result;
}

// [q|k|v] and [gate|up] on each rank.
void fuse(std::vector<Rank>& ranks) {
  for (Rank& rank : ranks)
    for (uint64_t layer = 0; layer < kLayers; ++layer) {
      const std::string at = fmt::format("model.layers.{}.", layer);
      const auto together = [&](const std::vector<std::string>& names, const std::string& as) {
        std::vector<View> parts;
        for (const std::string& name : names) {
          parts.push_back(rank.at(at + name));
          rank.erase(at + name);
        }
        const View whole = concatenated(parts, 0);
        rank[at + as] = stored_as(whole, whole.shape);
      };
      together({"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"},
               "self_attn.qkv_proj.weight");
      together({"mlp.gate_proj.weight", "mlp.up_proj.weight"}, "mlp.gate_up_proj.weight");
    }
}

enum class Mistake { none, swap, swap_all, turn, duplicate, deal, behind, transpose };
constexpr Mistake kMistakes[] = {Mistake::none,      Mistake::swap, Mistake::swap_all,
                                 Mistake::turn,      Mistake::deal, Mistake::behind,
                                 Mistake::duplicate, Mistake::none, Mistake::transpose};

// Whether ranks hold something else afterwards.
bool plant(Mistake mistake, const Model& model, Random& random, std::vector<Rank>& ranks) {
  bool changed = false;
  const auto put = [&](std::size_t rank, const std::string& name, const View& view) {
    changed = changed || values_of(ranks[rank].at(name)) != values_of(view);
    ranks[rank][name] = view;
  };
  const std::vector<Rank> before = ranks;
  const uint64_t x = random.below(ranks.size());
  const uint64_t y = (x + 1 + random.below(ranks.size() - 1)) % ranks.size();
  const std::string chosen = random.of(model.weights).name;
  for (const Weight& weight : model.weights) {
    const std::string& name = weight.name;
    const bool is_chosen = name == chosen;
    if ((mistake == Mistake::swap && is_chosen) || mistake == Mistake::swap_all) {
      put(x, name, before[y].at(name));
      put(y, name, before[x].at(name));
    } else if (mistake == Mistake::turn && is_chosen) {
      for (uint64_t rank = 0; rank < ranks.size(); ++rank)
        put(rank, name, before[(rank + x + 1) % ranks.size()].at(name));
    } else if (mistake == Mistake::duplicate && is_chosen) {
      put(x, name, before[y].at(name));
    } else if (mistake == Mistake::deal && weight.cut == Cut::heads &&
               model.key_heads < ranks.size()) {
      for (uint64_t rank = 0; rank < ranks.size(); ++rank)
        put(rank, name, piece_of(weight.view, 0, model.key_heads, rank % model.key_heads));
    } else if (mistake == Mistake::behind && weight.cut == Cut::none && is_chosen) {
      put(x, name, noise_view(weight.view.shape, 99));
    } else if (mistake == Mistake::transpose && random.below(3) == 0) {
      const Shape shape = before[0].at(name).shape;
      if (shape.size() != 2 || shape[0] != shape[1]) continue;
      for (uint64_t rank = 0; rank < ranks.size(); ++rank)
        put(rank, name,
            stored_as(permuted(before[rank].at(name), std::array<uint64_t, 2>{1, 0}), shape));
    }
  }
  return changed;
}

Catalog catalog_of(const std::vector<Rank>& ranks, std::string_view word) {
  Catalog catalog;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for (const auto& [name, view] : ranks[rank])
      catalog.tensors.push_back(
          {ranks.size() == 1 ? name : fmt::format("{}_{}/{}", word, rank, name), view, ""});
  return catalog;
}

Catalog whole(const Model& model) {
  Catalog catalog;
  for (const Weight& weight : model.weights)
    catalog.tensors.push_back({weight.name, weight.view, ""});
  return catalog;
}

TEST(PlantedRanks, AreToldAndNothingElseIs) {
  for (unsigned seed = 0; seed < 180; ++seed) {
    Random random(seed);
    const Model model = make_model(random);
    std::vector<Rank> ranks = dealt(model, random.of(kRanks));
    const Mistake mistake = kMistakes[seed % std::size(kMistakes)];
    const bool changed = plant(mistake, model, random, ranks);
    const bool fused = random.below(2) == 0;
    const uint64_t other = random.below(3);
    std::vector<Rank> left;
    if (other > 0) left = dealt(model, other == 1 ? ranks.size() : random.of(kRanks));
    // Data parallel ranks beside tensor parallel ones. As many ranks in all as the other side has
    // in one group could as well be in a wrong order.
    const bool repeated = !changed && left.size() != 2 * ranks.size() && random.below(3) == 0;
    SCOPED_TRACE(fmt::format(
        "seed {}, mistake {}, {} ranks, {} key heads, fused {}, repeated {}, {}", seed,
        static_cast<int>(mistake), ranks.size(), model.key_heads, fused, repeated, other));
    if (fused) fuse(ranks);
    if (repeated) {
      const std::vector<Rank> again = ranks;
      ranks.insert(ranks.end(), again.begin(), again.end());
    }
    const Report report =
        compare_catalogs(left.empty() ? whole(model) : catalog_of(left, "tp_rank"),
                         catalog_of(ranks, random.below(2) == 0 ? "rank" : "mp_rank"));
    EXPECT_TRUE(report.only_a.empty() && report.only_b.empty());
    std::string told;
    for (const PairRow& row : report.pairs)
      if (row.comparison.status >= Status::different)
        told += fmt::format("{} {}: {}\n", row.a.name, fmt::join(row.shape, "×"), row.message);
    EXPECT_EQ(!told.empty(), changed) << left.size() << " ranks\n" << told;
  }
}

}  // namespace
}  // namespace tensordiff
