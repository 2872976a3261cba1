// Random models, converted by a random converter, with up to two mistakes in single tensors: the
// mistakes and nothing else are told.
//
// TENSORDIFF_CASES sets how many models are tried.

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <set>

#include "align/view.h"
#include "report/conversion.h"
#include "tensor/test_views.h"
#include "test_compare.h"

namespace tensordiff {
namespace {

View stored(const View& view) { return stored_as(view, view.shape); }

View transposed(const View& view) {
  const uint64_t order[] = {1, 0};
  return stored(permuted(view, order));
}

// The rows of each head from halves to neighbours.
View with_neighbours(const View& view, uint64_t head) {
  const uint64_t rows = view.shape[0];
  const uint64_t sizes[] = {rows / head, 2, head / 2};
  View split_view = split(view, 0, sizes);
  std::vector<uint64_t> order = {0, 2, 1};
  for (std::size_t axis = 3; axis < split_view.shape.size(); ++axis) order.push_back(axis);
  return stored_as(permuted(split_view, order), view.shape);
}

View plus(const View& view, float offset) {
  std::vector<float> values = values_of(view);
  for (float& value : values) value += offset;
  return f32_view(view.shape, values);
}

View joined(const std::vector<View>& views) { return stored(concatenated(views, 0)); }

// [heads, 3, d] from q, k and v of [heads, d] each.
View interleaved(const std::vector<View>& views, uint64_t heads) {
  const uint64_t rows = views[0].shape[0] / heads;
  std::vector<View> pieces;
  for (uint64_t head = 0; head < heads; ++head)
    for (const View& view : views) pieces.push_back(narrowed(view, 0, head * rows, rows));
  return joined(pieces);
}

// What the converter does to every tensor of a kind.
struct Converter {
  bool transposes = false;
  bool rope = false;
  bool plus_one = false;
  int fused = 0;  // 0: not; 1: q, k, v; 2: k, v, q; 3: by head.
};

class Case {
 public:
  explicit Case(unsigned seed) : random_(seed) {
    converter_ = {flip(), flip(), flip(), pick(4)};
    // A fused tensor is one linear layer of its own; RoPE rows inside it are not inferred.
    if (converter_.fused) converter_.rope = false;
    layers_ = 3 + static_cast<uint64_t>(pick(2));  // Of two, either may be the exception.
    heads_ = 2 + 2 * static_cast<uint64_t>(pick(2));
    head_ = 8;
    hidden_ = heads_ * head_;
    build();
  }

  void run() {
    const Report report = compare_catalogs(a_, b_);
    std::set<std::string> told;
    for (const PairRow& row : report.pairs)
      if (row.comparison.status > Status::close) told.insert(row.a.name);
    EXPECT_EQ(told, planted_) << describe();
    for (const Finding& finding : report.findings)
      EXPECT_TRUE(planted_.contains(report.pairs[finding.pair].a.name)) << finding.explanation;
    EXPECT_EQ(report.findings.size(), planted_.size()) << describe();
  }

 private:
  bool flip() { return pick(2) == 1; }
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }

  View weight(const Shape& shape) { return noise_view(shape, random_()); }

  void add_a(const std::string& name, const View& view) { a_.tensors.push_back({name, view, ""}); }
  void add_b(const std::string& name, const View& view) { b_.tensors.push_back({name, view, ""}); }

  std::string leaf() const { return converter_.transposes ? ".kernel" : ".weight"; }
  View linear(const View& view) const { return converter_.transposes ? transposed(view) : view; }

  void build() {
    // Which layer has a mistake, of which kind; none in a third of the cases.
    mistakes_ = std::max(0, pick(4) - 1);
    for (uint64_t layer = 0; layer < layers_; ++layer) {
      const std::string prefix = fmt::format("model.layers.{}.", layer);
      add_attention(prefix, layer);
      add_linear(prefix + "self_attn.o_proj", {hidden_, hidden_}, wrong("o", layer));
      add_linear(prefix + "mlp.gate_proj", {3 * hidden_, hidden_}, false);
      add_linear(prefix + "mlp.up_proj", {3 * hidden_, hidden_}, false);
      add_linear(prefix + "mlp.down_proj", {hidden_, 3 * hidden_}, false);
      add_norm(prefix + "input_layernorm.weight", false);
      add_norm(prefix + "post_attention_layernorm.weight", wrong("norm", layer));
    }
    add_norm("model.norm.weight", false);
    const View embedding = weight({50, hidden_});
    add_a("model.embed_tokens.weight", embedding);
    add_b("model.embed_tokens.weight", embedding);
  }

  // Only in the last layer, and at most as many as were drawn.
  bool wrong(const std::string& what, uint64_t layer) {
    if (layer + 1 != layers_ || mistakes_ == 0 || pick(2) == 0) return false;
    if (what == "norm" && !converter_.plus_one) return false;
    if (what == "rope" && !converter_.rope) return false;
    if (what == "parts" && converter_.fused == 0) return false;
    --mistakes_;
    return true;
  }

  void add_linear(const std::string& name, const Shape& shape, bool mistake) {
    const View view = weight(shape);
    add_a(name + ".weight", view);
    // A square matrix that was turned when the others were not, or the other way round.
    add_b(name + leaf(), mistake == converter_.transposes ? view : transposed(view));
    if (mistake) planted_.insert(name + ".weight");
  }

  void add_norm(const std::string& name, bool mistake) {
    const View view = weight({hidden_});
    add_a(name, view);
    add_b(name, converter_.plus_one && !mistake ? plus(view, 1) : view);
    if (mistake) planted_.insert(name);
  }

  void add_attention(const std::string& prefix, uint64_t layer) {
    std::vector<View> parts;
    for (const char which : {'q', 'k', 'v'}) {
      const std::string name = fmt::format("{}self_attn.{}_proj", prefix, which);
      const View view = weight({hidden_, hidden_});
      add_a(name + ".weight", view);
      parts.push_back(view);
      if (converter_.fused) continue;
      const bool has_rope = converter_.rope && which != 'v';
      const bool mistake = has_rope && which == 'q' && wrong("rope", layer);
      add_b(name + leaf(), linear(has_rope && !mistake ? with_neighbours(view, head_) : view));
      if (mistake) planted_.insert(name + ".weight");
    }
    if (converter_.fused) add_fused(prefix, std::move(parts), wrong("parts", layer));
  }

  void add_fused(const std::string& prefix, std::vector<View> parts, bool mistake) {
    if (mistake) {
      std::swap(parts[1], parts[2]);
      planted_.insert(prefix + "self_attn.k_proj.weight");
      planted_.insert(prefix + "self_attn.v_proj.weight");
    }
    if (converter_.fused == 2) parts = {parts[1], parts[2], parts[0]};
    const View view = converter_.fused == 3 ? interleaved(parts, heads_) : joined(parts);
    add_b(prefix + "self_attn.qkv_proj" + leaf(), linear(view));
  }

  std::string describe() const {
    return fmt::format("{} layers, {} heads; transposes {}, rope {}, plus one {}, fused {}",
                       layers_, heads_, converter_.transposes, converter_.rope, converter_.plus_one,
                       converter_.fused);
  }

  std::mt19937 random_;
  Converter converter_;
  uint64_t layers_ = 0, heads_ = 0, head_ = 0, hidden_ = 0;
  int mistakes_ = 0;
  Catalog a_, b_;
  std::set<std::string> planted_;
};

// Meta's names say neighbours, those of Hugging Face halves: rows that were never moved are wrong.
TEST(Conversions, RowsThatTheFormatsImplyAreMissedInAllLayers) {
  for (const bool moved : {true, false}) {
    Catalog a, b;
    a.metadata.push_back({"config.json: num_attention_heads", "4"});
    a.metadata.push_back({"config.json: hidden_size", "32"});
    for (int layer = 0; layer < 2; ++layer) {
      const View q = noise_view({32, 32}, static_cast<unsigned>(layer));
      const View o = noise_view({32, 32}, 10 + static_cast<unsigned>(layer));
      a.tensors.push_back({fmt::format("model.layers.{}.self_attn.q_proj.weight", layer), q, ""});
      a.tensors.push_back({fmt::format("model.layers.{}.self_attn.o_proj.weight", layer), o, ""});
      b.tensors.push_back({fmt::format("layers.{}.attention.wq.weight", layer),
                           moved ? with_neighbours(q, 8) : q, ""});
      b.tensors.push_back({fmt::format("layers.{}.attention.wo.weight", layer), o, ""});
    }
    const Report report = compare_catalogs(std::move(a), std::move(b));
    EXPECT_EQ(report.findings.size(), moved ? 0U : 2U);
    for (const Finding& finding : report.findings) EXPECT_EQ(finding.code, "rope_rows_missing");
  }
}

TEST(Conversions, AreRecoveredAndOnlyExceptionsAreTold) {
  const char* wanted = std::getenv("TENSORDIFF_CASES");
  const unsigned cases = wanted ? static_cast<unsigned>(std::atoi(wanted)) : 60;
  for (unsigned seed = 0; seed < cases; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Case(seed).run();
  }
}

}  // namespace
}  // namespace tensordiff
