// A small model, stored as a port might store it: the names of another convention, projections
// fused or apart, axes moved and split, shards on ranks, files in any order. It is found to be the
// same model, and one wrong element is found where it is. Mistakes of layout stay mistakes.

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

#include "align/view.h"
#include "compare/comparison.h"
#include "match/matcher.h"
#include "match/ranks.h"
#include "naming/naming.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

// No weight is square: of those, a transpose stays a difference.
constexpr uint64_t kHeadSize = 4, kHidden = 44;

// What the parts of a model are called. "" where a convention has no such part; {} is the layer.
struct Convention {
  std::string_view name;
  std::map<std::string_view, std::string_view> names;
};

const std::vector<Convention>& conventions() {
  static const std::vector<Convention> kConventions = {
      {"Hugging Face",
       {{"tokens", "model.embed_tokens.weight"},
        {"norm1", "model.layers.{}.input_layernorm.weight"},
        {"q", "model.layers.{}.self_attn.q_proj.weight"},
        {"k", "model.layers.{}.self_attn.k_proj.weight"},
        {"v", "model.layers.{}.self_attn.v_proj.weight"},
        {"o", "model.layers.{}.self_attn.o_proj.weight"},
        {"norm2", "model.layers.{}.post_attention_layernorm.weight"},
        {"gate", "model.layers.{}.mlp.gate_proj.weight"},
        {"up", "model.layers.{}.mlp.up_proj.weight"},
        {"down", "model.layers.{}.mlp.down_proj.weight"},
        {"norm", "model.norm.weight"},
        {"head", "lm_head.weight"}}},
      {"GGUF",
       {{"tokens", "token_embd.weight"},
        {"norm1", "blk.{}.attn_norm.weight"},
        {"q", "blk.{}.attn_q.weight"},
        {"k", "blk.{}.attn_k.weight"},
        {"v", "blk.{}.attn_v.weight"},
        {"o", "blk.{}.attn_output.weight"},
        {"norm2", "blk.{}.ffn_norm.weight"},
        {"gate", "blk.{}.ffn_gate.weight"},
        {"up", "blk.{}.ffn_up.weight"},
        {"down", "blk.{}.ffn_down.weight"},
        {"norm", "output_norm.weight"},
        {"head", "output.weight"}}},
      {"Llama",
       {{"tokens", "tok_embeddings.weight"},
        {"norm1", "layers.{}.attention_norm.weight"},
        {"q", "layers.{}.attention.wq.weight"},
        {"k", "layers.{}.attention.wk.weight"},
        {"v", "layers.{}.attention.wv.weight"},
        {"o", "layers.{}.attention.wo.weight"},
        {"norm2", "layers.{}.ffn_norm.weight"},
        {"gate", "layers.{}.feed_forward.w1.weight"},
        {"up", "layers.{}.feed_forward.w3.weight"},
        {"down", "layers.{}.feed_forward.w2.weight"},
        {"norm", "norm.weight"},
        {"head", "output.weight"}}},
      {"Megatron",
       {{"tokens", "embedding.word_embeddings.weight"},
        {"norm1", "decoder.layers.{}.input_layernorm.weight"},
        {"qkv", "decoder.layers.{}.self_attention.linear_qkv.weight"},
        {"o", "decoder.layers.{}.self_attention.linear_proj.weight"},
        {"norm2", "decoder.layers.{}.pre_mlp_layernorm.weight"},
        {"gate_up", "decoder.layers.{}.mlp.linear_fc1.weight"},
        {"down", "decoder.layers.{}.mlp.linear_fc2.weight"},
        {"norm", "decoder.final_layernorm.weight"},
        {"head", "output_layer.weight"}}},
      {"vLLM, wrapped",
       {{"tokens", "module._orig_mod.model.embed_tokens.weight"},
        {"norm1", "module._orig_mod.model.layers.{}.input_layernorm.weight"},
        {"qkv", "module._orig_mod.model.layers.{}.self_attn.qkv_proj.weight"},
        {"o", "module._orig_mod.model.layers.{}.self_attn.o_proj.weight"},
        {"norm2", "module._orig_mod.model.layers.{}.post_attention_layernorm.weight"},
        {"gate_up", "module._orig_mod.model.layers.{}.mlp.gate_up_proj.weight"},
        {"down", "module._orig_mod.model.layers.{}.mlp.down_proj.weight"},
        {"norm", "module._orig_mod.model.norm.weight"},
        {"head", "module._orig_mod.lm_head.weight"}}},
  };
  return kConventions;
}

std::string named(std::string_view pattern, int layer) {
  std::string name(pattern);
  if (const std::size_t at = name.find("{}"); at != std::string::npos)
    name.replace(at, 2, std::to_string(layer));
  return name;
}

// What a port chooses for itself.
struct Choice {
  std::size_t convention = 0;
  uint64_t ranks = 1;
  uint64_t heads = 8;      // A multiple of the ranks,
  uint64_t key_heads = 8;  // and these, or the ranks are one of them.
  bool moved = false;      // Axes swapped, split and padded with ones, tensor by tensor.
  bool by_head = false;    // Query, key and value are fused head by head.
  unsigned seed = 0;
};

// A tensor before it is stored: what it is, in which layer, its values.
struct Piece {
  std::string_view role;
  int layer;
  View view;
};
using Model = std::vector<Piece>;

Model model(const Choice& choice) {
  Model result;
  unsigned seed = choice.seed * 100;
  const uint64_t inner = 10 * choice.heads, vocabulary = 7 * choice.heads;
  const auto add = [&](std::string_view role, int layer, const Shape& shape) {
    result.push_back({role, layer, noise_view(shape, seed++)});
  };
  add("tokens", -1, {vocabulary, kHidden});
  for (int layer = 0; layer < 2; ++layer) {
    add("norm1", layer, {kHidden});
    add("q", layer, {choice.heads * kHeadSize, kHidden});
    add("k", layer, {choice.key_heads * kHeadSize, kHidden});
    add("v", layer, {choice.key_heads * kHeadSize, kHidden});
    add("o", layer, {kHidden, choice.heads * kHeadSize});
    add("norm2", layer, {kHidden});
    add("gate", layer, {inner, kHidden});
    add("up", layer, {inner, kHidden});
    add("down", layer, {kHidden, inner});
  }
  add("norm", -1, {kHidden});
  add("head", -1, {vocabulary, kHidden});
  return result;
}

// The model as its author keeps it: the names of the first convention.
Catalog original(const Model& pieces) {
  Catalog catalog;
  for (const Piece& piece : pieces)
    catalog.tensors.push_back(
        {named(conventions()[0].names.at(piece.role), piece.layer), piece.view, ""});
  return catalog;
}

View stored(const View& view) { return stored_as(view, view.shape); }

class Port {
 public:
  explicit Port(const Choice& choice) : choice_(choice), generator_(choice.seed) {}

  Catalog of(const Model& pieces) {
    for (const Piece& piece : pieces) {
      const auto& names = conventions()[choice_.convention].names;
      if (names.contains(piece.role)) {
        add(names.at(piece.role), piece.layer, sharded(piece));
      } else if (piece.role == "q" || piece.role == "gate") {
        // The first of those that are fused here; the others follow it in the model.
        const std::size_t count = piece.role == "q" ? 3 : 2;
        add(names.at(piece.role == "q" ? "qkv" : "gate_up"), piece.layer,
            fused({&piece, &piece + count}));
      }
    }
    std::shuffle(catalog_.tensors.begin(), catalog_.tensors.end(), generator_);
    return std::move(catalog_);
  }

 private:
  // What each rank holds: pieces along the axis on which the layer is split, or copies of norms,
  // and of keys and values where there are fewer heads than ranks.
  std::vector<View> sharded(const Piece& piece) const {
    const bool heads = piece.role == "k" || piece.role == "v";
    const std::size_t axis = piece.role == "o" || piece.role == "down" ? 1 : 0;
    const uint64_t pieces =
        piece.view.shape.size() == 1
            ? 1
            : std::min(choice_.ranks, heads ? choice_.key_heads : choice_.heads);
    const uint64_t size = piece.view.shape[axis < piece.view.shape.size() ? axis : 0] / pieces;
    std::vector<View> shards;
    for (uint64_t rank = 0; rank < choice_.ranks; ++rank) {
      const uint64_t which = rank * pieces / choice_.ranks;
      shards.push_back(
          stored(pieces == 1 ? piece.view : narrowed(piece.view, axis, which * size, size)));
    }
    return shards;
  }

  std::vector<View> fused(std::span<const Piece> parts) const {
    std::vector<View> whole;
    for (uint64_t rank = 0; rank < choice_.ranks; ++rank) {
      std::vector<View> shards;
      for (const Piece& part : parts) shards.push_back(sharded(part)[rank]);
      if (choice_.by_head && parts.size() == 3) {
        // As Megatron has it: a head of keys with the queries that it serves, then its value.
        const uint64_t groups = shards[1].shape[0] / kHeadSize;
        for (View& shard : shards)
          shard = split(shard, 0, std::vector<uint64_t>{groups, shard.shape[0] / groups});
        const View joined = concatenated(shards, 1);
        whole.push_back(stored_as(joined, {groups * joined.shape[1], kHidden}));
      } else {
        whole.push_back(stored(concatenated(shards, 0)));
      }
    }
    return whole;
  }

  void add(std::string_view pattern, int layer, std::vector<View> shards) {
    if (choice_.moved) move(shards);
    const std::string name = named(pattern, layer);
    for (uint64_t rank = 0; rank < shards.size(); ++rank)
      catalog_.tensors.push_back(
          {shards.size() == 1 ? name : fmt::format("tp_rank_{:02}/{}", rank, name), shards[rank],
           ""});
  }

  // Another layout, the same for all ranks.
  void move(std::vector<View>& shards) {
    const unsigned how = generator_() % 4;
    for (View& view : shards) {
      if (view.shape.size() != 2) continue;
      const uint64_t rows = view.shape[0], columns = view.shape[1];
      if (how == 1) view = stored(permuted(view, std::vector<uint64_t>{1, 0}));
      if (how == 2 && rows % 2 == 0) view = stored_as(view, {rows / 2, 2, columns});
      if (how == 3) view = stored_as(view, {1, rows, 1, columns});
    }
  }

  Choice choice_;
  std::mt19937 generator_;
  Catalog catalog_;
};

struct Row {
  std::string name;
  Comparison comparison;
  uint64_t worst = 0;  // Where in the tensor of a, as it is stored, the largest difference lies.
  std::vector<Step> steps;
};

uint64_t stored_position(const View& view, const std::vector<uint64_t>& index) {
  uint64_t position = view.parts[0].offset;
  for (std::size_t axis = 0; axis < index.size(); ++axis)
    position += index[axis] * static_cast<uint64_t>(view.parts[0].strides[axis]);
  return position;
}

std::vector<Row> compare_all(Catalog a, Catalog b) {
  read_places(a);
  read_places(b);
  group_ranks(b, 'b');
  const Result<Matching> matching = match(a, b);
  EXPECT_TRUE(matching.ok());
  EXPECT_EQ(matching.value().pairs.size(), a.tensors.size());
  EXPECT_TRUE(matching.value().only_a.empty() && matching.value().only_b.empty());
  std::vector<Row> rows;
  for (const Pair& pair : matching.value().pairs) {
    const std::string& name = a.tensors[pair.a].name;
    const Tensor& other = b.tensors[pair.b];
    const Operand operand{other.shards.empty() ? std::vector{other.view} : other.shards,
                          pair.section_b};
    const Result<AlignedPair> aligned =
        align(Operand{{a.tensors[pair.a].view}, pair.section_a}, operand);
    EXPECT_TRUE(aligned.ok()) << name << ": " << (aligned.ok() ? "" : aligned.error().message());
    if (!aligned.ok()) continue;
    Row row{name, compare(aligned.value()).value(), 0, aligned.value().steps};
    for (const Copy& copy : aligned.value().copies)
      EXPECT_LE(compare({copy.like_view, copy.view, {}}).value().status, Status::equal) << name;
    if (!row.comparison.diff.max_abs_at.empty())
      row.worst = stored_position(aligned.value().a, row.comparison.diff.max_abs_at);
    rows.push_back(std::move(row));
  }
  return rows;
}

// Every convention on every number of ranks; the rest by turns, and other ones in each round. More
// rounds with TENSORDIFF_SEEDS.
std::vector<Choice> choices() {
  const char* const seeds = std::getenv("TENSORDIFF_SEEDS");
  const std::size_t rounds = seeds ? std::max(1, std::atoi(seeds)) : 1;
  std::vector<Choice> result;
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t convention = 0; convention < conventions().size(); ++convention) {
      for (uint64_t ranks = 1; ranks <= 8; ++ranks) {
        const unsigned seed = static_cast<unsigned>(result.size() + round);
        const uint64_t heads = ranks * ((7 + ranks) / ranks);
        const uint64_t key_heads[] = {1, ranks % 2 == 0 ? uint64_t{2} : uint64_t{1}, ranks, heads};
        Choice choice{convention, ranks, heads, key_heads[seed % 4], seed % 2 == 1, false, seed};
        // Ranks that share a head of keys do not fuse by head: whose queries would they be?
        choice.by_head = seed % 3 == 0 && choice.key_heads % ranks == 0 && !choice.moved;
        result.push_back(choice);
      }
    }
  }
  return result;
}

std::string text_of(const Choice& choice) {
  return fmt::format("{}, {} ranks, {} heads of keys for {}, {}{}, seed {}",
                     conventions()[choice.convention].name, choice.ranks, choice.key_heads,
                     choice.heads, choice.moved ? "moved" : "as stored",
                     choice.by_head ? ", fused by head" : "", choice.seed);
}

TEST(Ports, AreFoundToBeTheSameModel) {
  for (const Choice& choice : choices()) {
    SCOPED_TRACE(text_of(choice));
    const Model pieces = model(choice);
    for (const Row& row : compare_all(original(pieces), Port(choice).of(pieces)))
      EXPECT_LE(row.comparison.status, Status::equal) << row.name;
  }
}

TEST(Ports, ShowOneWrongElementWhereItIs) {
  for (const Choice& choice : choices()) {
    SCOPED_TRACE(text_of(choice));
    const Model pieces = model(choice);
    const Catalog a = original(pieces);
    Model wrong = pieces;
    const std::size_t chosen = choice.seed % pieces.size();
    std::vector<float> values = values_of(pieces[chosen].view);
    const uint64_t position = choice.seed * 7919 % values.size();
    values[position] += 10;
    wrong[chosen].view = f32_view(pieces[chosen].view.shape, values);
    for (const Row& row : compare_all(a, Port(choice).of(wrong))) {
      if (row.name != a.tensors[chosen].name) {
        EXPECT_LE(row.comparison.status, Status::equal) << row.name;
        continue;
      }
      EXPECT_EQ(row.comparison.status, Status::different) << row.name;
      EXPECT_EQ(row.comparison.diff.exceeding, 1U) << row.name;
      EXPECT_EQ(row.worst, position) << row.name;
    }
  }
}

TEST(Ports, WithRanksInTheWrongOrderDiffer) {
  for (const std::size_t convention : {0, 1, 3}) {
    const Choice choice{convention, 2, 8, 8, false, false, 1};
    const Model pieces = model(choice);
    Catalog b = Port(choice).of(pieces);
    for (Tensor& each : b.tensors) each.name[9] = each.name[9] == '0' ? '1' : '0';
    for (const Row& row : compare_all(original(pieces), b)) {
      const bool norm = row.name.find("norm") != std::string::npos;
      EXPECT_EQ(row.comparison.status == Status::different, !norm) << row.name;
    }
  }
}

// Mistakes that a layout could undo, and that must not be undone.
TEST(Ports, WithPlantedMistakesDiffer) {
  const View square = noise_view({12, 12}, 1);
  const View tokens = noise_view({6, 4, 5}, 2);  // Tokens, heads, features.
  const std::vector<uint64_t> swapped = {1, 0};
  const auto blocks = [](const View& view, std::size_t axis, const std::vector<uint64_t>& order) {
    std::vector<View> parts;
    for (const uint64_t i : order) parts.push_back(narrowed(view, axis, i, 1));
    return stored(concatenated(parts, axis));
  };
  const View flipped = blocks(tokens, 1, {3, 2, 1, 0});
  const View shifted = blocks(tokens, 0, {5, 0, 1, 2, 3, 4});
  const std::tuple<std::string_view, View, View> cases[] = {
      {"transposed square", square, stored(permuted(square, swapped))},
      {"transposed square with a unit axis", square,
       stored_as(permuted(square, swapped), {1, 12, 12})},
      {"flipped heads", tokens, flipped},
      {"flipped heads, heads first", tokens,
       stored(permuted(flipped, std::vector<uint64_t>{1, 0, 2}))},
      {"flipped heads, merged", tokens, stored_as(flipped, {6, 20})},
      {"shifted tokens", tokens, shifted},
      {"shifted tokens, merged", tokens, stored_as(shifted, {1, 6, 20})},
      {"shifted tokens, heads first", tokens,
       stored(permuted(shifted, std::vector<uint64_t>{1, 0, 2}))},
  };
  for (const auto& [name, a, b] : cases) {
    const Result<AlignedPair> pair = align(a, b);
    ASSERT_TRUE(pair.ok()) << name << pair.error().message();
    EXPECT_EQ(compare(pair.value()).value().status, Status::different) << name;
  }
}

}  // namespace
}  // namespace tensordiff
