// A small model, stored as a port might store it: other names, moved axes, shards on ranks, files
// in any order. It is found to be the same model, and one wrong element is found where it is.

#include <algorithm>
#include <random>

#include "align/view.h"
#include "compare/comparison.h"
#include "match/matcher.h"
#include "match/ranks.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

constexpr uint64_t kHidden = 48, kHeadSize = 4, kInner = 80;

Tensor tensor(const std::string& name, const View& view) { return {name, view, ""}; }

// Two layers with the names of Hugging Face; heads of keys and values are fewer than of queries.
Catalog model(uint64_t key_heads, unsigned seed) {
  Catalog catalog;
  const auto add = [&](const std::string& name, const Shape& shape) {
    catalog.tensors.push_back(tensor(name, noise_view(shape, seed++)));
  };
  for (int layer = 0; layer < 2; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    add(prefix + "input_layernorm.weight", {kHidden});
    add(prefix + "self_attn.q_proj.weight", {8 * kHeadSize, kHidden});
    add(prefix + "self_attn.k_proj.weight", {key_heads * kHeadSize, kHidden});
    add(prefix + "mlp.up_proj.weight", {kInner, kHidden});
    add(prefix + "mlp.down_proj.weight", {kHidden, kInner});
  }
  return catalog;
}

// The names that GGUF has for them.
std::string renamed(std::string name) {
  const std::pair<std::string_view, std::string_view> kWords[] = {
      {"model.layers.", "blk."},      {"input_layernorm", "attn_norm"},
      {"self_attn.q_proj", "attn_q"}, {"self_attn.k_proj", "attn_k"},
      {"mlp.up_proj", "ffn_up"},      {"mlp.down_proj", "ffn_down"},
  };
  for (const auto& [from, to] : kWords)
    if (const std::size_t at = name.find(from); at != std::string::npos)
      name.replace(at, from.size(), to);
  return name;
}

// What each of `ranks` ranks holds: pieces along the first axis or the last, as the layer is split,
// or copies where there are not enough heads, or of norms.
std::vector<View> sharded(const std::string& name, const View& view, uint64_t ranks,
                          uint64_t key_heads) {
  std::vector<View> shards;
  const bool is_key = name.find("k_proj") != std::string::npos;
  const bool by_row = name.find("down_proj") == std::string::npos;
  const uint64_t pieces = view.shape.size() == 1 ? 1 : is_key ? std::min(ranks, key_heads) : ranks;
  const std::size_t axis = by_row ? 0 : 1;
  for (uint64_t rank = 0; rank < ranks; ++rank) {
    const uint64_t size = view.shape[pieces == 1 ? 0 : axis] / pieces;
    const uint64_t piece = rank * pieces / ranks;
    const View shard = pieces == 1 ? view : narrowed(view, axis, piece * size, size);
    shards.push_back(stored_as(shard, shard.shape));
  }
  return shards;
}

Catalog ported(const Catalog& original, uint64_t ranks, uint64_t key_heads, unsigned seed) {
  Catalog port;
  for (const Tensor& each : original.tensors) {
    const std::vector<View> shards = sharded(each.name, each.view, ranks, key_heads);
    for (uint64_t rank = 0; rank < ranks; ++rank)
      port.tensors.push_back(
          tensor(fmt::format("rank_{}/{}", rank, renamed(each.name)), shards[rank]));
  }
  std::shuffle(port.tensors.begin(), port.tensors.end(), std::mt19937(seed));
  return port;
}

struct Row {
  std::string name;
  Comparison comparison;
};

std::vector<Row> compare_all(const Catalog& a, Catalog b) {
  group_ranks(b, 'b');
  const Result<Matching> matching = match(a, b);
  EXPECT_TRUE(matching.ok());
  EXPECT_EQ(matching.value().pairs.size(), a.tensors.size());
  std::vector<Row> rows;
  for (const Pair& pair : matching.value().pairs) {
    const Tensor& other = b.tensors[pair.b];
    const Operand operand{other.shards.empty() ? std::vector{other.view} : other.shards,
                          pair.section_b};
    const Result<AlignedPair> aligned =
        align(Operand{{a.tensors[pair.a].view}, pair.section_a}, operand);
    EXPECT_TRUE(aligned.ok()) << a.tensors[pair.a].name;
    if (aligned.ok()) rows.push_back({a.tensors[pair.a].name, compare(aligned.value()).value()});
  }
  return rows;
}

TEST(Ports, AreFoundToBeTheSameModel) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const uint64_t ranks = uint64_t{1} << seed % 4;
    const uint64_t key_heads = uint64_t{1} << seed / 4 % 4;
    SCOPED_TRACE(fmt::format("seed {}: {} ranks, {} heads of keys", seed, ranks, key_heads));
    const Catalog a = model(key_heads, seed * 100);
    for (const Row& row : compare_all(a, ported(a, ranks, key_heads, seed)))
      EXPECT_LE(row.comparison.status, Status::equal) << row.name;
  }
}

TEST(Ports, ShowOneWrongElementWhereItIs) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    const uint64_t ranks = uint64_t{1} << seed % 4;
    SCOPED_TRACE(fmt::format("seed {}: {} ranks", seed, ranks));
    const Catalog a = model(2, seed * 100);
    Catalog wrong = a;
    Tensor& chosen = wrong.tensors[seed % wrong.tensors.size()];
    std::vector<float> values = values_of(chosen.view);
    const uint64_t position = seed * 7919 % values.size();
    values[position] += 10;
    chosen.view = f32_view(chosen.view.shape, values);
    for (const Row& row : compare_all(a, ported(wrong, ranks, 2, seed))) {
      if (row.name != chosen.name) {
        EXPECT_LE(row.comparison.status, Status::equal) << row.name;
        continue;
      }
      EXPECT_EQ(row.comparison.status, Status::different) << row.name;
      EXPECT_EQ(row.comparison.diff.max_abs_at, index_at(chosen.view.shape, position));
    }
  }
}

TEST(Ports, WithRanksInTheWrongOrderDiffer) {
  const Catalog a = model(8, 1);
  Catalog b = ported(a, 2, 8, 1);
  for (Tensor& each : b.tensors) each.name[5] = each.name[5] == '0' ? '1' : '0';
  for (const Row& row : compare_all(a, b)) {
    const bool norm = row.name.find("norm") != std::string::npos;
    EXPECT_EQ(row.comparison.status == Status::different, !norm) << row.name;
  }
}

}  // namespace
}  // namespace tensordiff
