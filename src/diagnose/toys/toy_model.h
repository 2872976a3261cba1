// A small transformer for the tests, written to be broken: every step is dumped, in any float type,
// and each kind of mistake can be made in one layer.

#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>

#include "compare/comparison.h"
#include "diagnose/site.h"
#include "naming/naming.h"
#include "tensor/catalog.h"
#include "tensor/test_views.h"

namespace tensordiff {

struct ToyShape {
  uint64_t layers = 3, tokens = 17, heads = 6, kv_heads = 2, dim = 8, inner = 40;
  bool head_norm = false;  // Heads of queries and keys are normalised before RoPE.
  uint64_t turned = 0;     // Features of each head that RoPE turns; 0: all.
  double sharpness = 1;    // Of attention: what the weights of the queries are multiplied by.
  uint64_t width() const { return heads * dim; }
};

using Values = std::vector<double>;

// What one side does otherwise than it should, in one layer.
struct ToyMistakes {
  uint64_t layer = 1;
  bool neighbours = false;  // RoPE turns pairs (2i, 2i + 1).
  double base = 1e4;
  int position = 0;
  double score = 1;  // Times 1/√d.
  bool masked = true;
  int diagonal = 0;
  uint64_t window = 0;
  bool tiled = false;
  double epsilon = 1e-5;
  double plus = 0;       // Added to the weight of the norm.
  bool weighted = true;  // Whether the norm has a weight.
  bool residual = true;
  bool transposed = false;  // The weight of the queries.
  bool swapped = false;     // up where gate should be, and the reverse.
  bool gelu = false;        // In place of SiLU.
  uint64_t ranks = 1;       // Only the first of so many adds its part to the attention output.
  bool head_weight = true;  // Of the norm of heads.
  // Changes what a stage gives, before the next reads it.
  std::map<std::string, std::function<void(Values&)>> after;
};

// A value as a type holds it.
inline double as_stored(double value, DType dtype) {
  std::byte stored[sizeof(double)];
  encode(dtype, &value, 1, stored);
  return decode_one(dtype, stored);
}

inline View view_of(const Shape& shape, const Values& values, DType dtype) {
  std::string bytes(stored_bytes(dtype, values.size()), '\0');
  encode(dtype, values.data(), values.size(), reinterpret_cast<std::byte*>(bytes.data()));
  return contiguous_view(dtype, shape, ByteSource(bytes_of(bytes))).value();
}

class ToyModel {
 public:
  ToyModel(ToyShape shape, unsigned seed) : shape_(shape), generator_(seed) {
    for (uint64_t layer = 0; layer < shape.layers; ++layer) layers_.push_back(make_layer());
    input_ = normal(shape.tokens * shape.width(), 1);
  }

  // The weights as a checkpoint has them; matrices are [in, out].
  Catalog weights() const {
    Catalog catalog;
    const uint64_t width = shape_.width(), kv = shape_.kv_heads * shape_.dim;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const auto add = [&](std::string_view name, const Shape& shape, const Values& values) {
        catalog.tensors.push_back(
            {fmt::format("model.layers.{}.{}", i, name), view_of(shape, values, DType::f32), ""});
      };
      const Layer& layer = layers_[i];
      add("input_layernorm.weight", {width}, layer.norm1);
      add("post_attention_layernorm.weight", {width}, layer.norm2);
      add("self_attn.q_proj.weight", {width, width}, layer.q);
      add("self_attn.q_proj.bias", {width}, layer.bias);
      add("self_attn.k_proj.weight", {width, kv}, layer.k);
      add("self_attn.v_proj.weight", {width, kv}, layer.v);
      add("self_attn.o_proj.weight", {width, width}, layer.o);
      add("mlp.gate_proj.weight", {width, shape_.inner}, layer.gate);
      add("mlp.up_proj.weight", {width, shape_.inner}, layer.up);
      add("mlp.down_proj.weight", {shape_.inner, width}, layer.down);
    }
    read_places(catalog);
    return catalog;
  }

  struct Dump {
    std::string stage;
    uint64_t layer;
    Shape shape;
    Values values;
  };

  // All steps as a side of this type computes them. `backwards` sums in the other order.
  std::vector<Dump> run(DType dtype, bool backwards, const std::vector<ToyMistakes>& mistakes) {
    dtype_ = dtype;
    backwards_ = backwards;
    dumps_.clear();
    Values x = input_;
    for (uint64_t layer = 0; layer < shape_.layers; ++layer) {
      mistakes_ = {};
      mistakes_.layer = layer;
      for (const ToyMistakes& each : mistakes)
        if (each.layer == layer) mistakes_ = each;
      x = block(layers_[layer], std::move(x));
    }
    return dumps_;
  }

 private:
  struct Layer {
    Values norm1, norm2, q, k, v, o, gate, up, down, bias, head_norm;
  };

  Values normal(uint64_t count, double size) {
    std::normal_distribution<double> distribution(0, size);
    Values values(count);
    for (double& value : values) value = distribution(generator_);
    return values;
  }

  Layer make_layer() {
    const uint64_t width = shape_.width(), kv = shape_.kv_heads * shape_.dim;
    const double scale = 1 / std::sqrt(static_cast<double>(width));
    Layer layer{normal(width, 0.3),
                normal(width, 0.3),
                normal(width * width, scale * shape_.sharpness),
                normal(width * kv, scale),
                normal(width * kv, scale),
                normal(width * width, scale),
                normal(width * shape_.inner, scale),
                normal(width * shape_.inner, scale),
                normal(width * shape_.inner, 1 / std::sqrt(static_cast<double>(shape_.inner))),
                normal(width, 0.2),
                normal(shape_.dim, 0.3)};
    for (double& value : layer.head_norm) value = 1 + std::abs(value);
    for (double& value : layer.norm1) value += 1;
    for (double& value : layer.norm2) value += 1;
    return layer;
  }

  // Rounds, lets the mistake of this stage happen, and keeps a copy.
  Values dump(const std::string& stage, Shape shape, Values values) {
    for (double& value : values) value = as_stored(value, dtype_);
    if (const auto found = mistakes_.after.find(stage); found != mistakes_.after.end()) {
      found->second(values);
      for (double& value : values) value = as_stored(value, dtype_);
    }
    dumps_.push_back({stage, mistakes_.layer, std::move(shape), values});
    return values;
  }

  // x [tokens, in] times w [in, out], in float32 sums.
  Values project(const Values& x, const Values& w, uint64_t in, bool transposed = false) const {
    const uint64_t out = w.size() / in, rows = x.size() / in;
    Values y(rows * out), stored = w;
    for (double& weight : stored) weight = as_stored(weight, dtype_);
    for (uint64_t row = 0; row < rows; ++row) {
      for (uint64_t j = 0; j < out; ++j) {
        float sum = 0;
        for (uint64_t step = 0; step < in; ++step) {
          const uint64_t i = backwards_ ? in - 1 - step : step;
          const double weight = transposed ? stored[j * in + i] : stored[i * out + j];
          sum += static_cast<float>(x[row * in + i] * weight);
        }
        y[row * out + j] = sum;
      }
    }
    return y;
  }

  Values normed(const Values& x, const Values& weight) const {
    const uint64_t width = shape_.width();
    Values y(x.size());
    for (uint64_t row = 0; row < shape_.tokens; ++row) {
      double sum = 0;
      for (uint64_t i = 0; i < width; ++i) sum += x[row * width + i] * x[row * width + i];
      const double size = std::sqrt(sum / static_cast<double>(width) + mistakes_.epsilon);
      for (uint64_t i = 0; i < width; ++i)
        y[row * width + i] =
            x[row * width + i] / size * (mistakes_.weighted ? weight[i] + mistakes_.plus : 1);
    }
    return y;
  }

  // Every head with root mean square 1, times its weight.
  Values head_normed(Values x, const Values& weight) const {
    if (!shape_.head_norm) return x;
    for (std::size_t at = 0; at < x.size(); at += shape_.dim) {
      double sum = 0;
      for (uint64_t i = 0; i < shape_.dim; ++i) sum += x[at + i] * x[at + i];
      const double size = std::sqrt(sum / static_cast<double>(shape_.dim) + 1e-6);
      for (uint64_t i = 0; i < shape_.dim; ++i)
        x[at + i] = as_stored(x[at + i] / size * (mistakes_.head_weight ? weight[i] : 1), dtype_);
    }
    return x;
  }

  // To [heads, tokens, dim], turned by position.
  Values rotated(const Values& x, uint64_t heads) const {
    Values y = by_heads(x, heads);
    const uint64_t dim = shape_.dim, tokens = shape_.tokens;
    const uint64_t turned = shape_.turned ? shape_.turned : dim, half = turned / 2;
    for (uint64_t head = 0; head < heads; ++head) {
      for (uint64_t token = 0; token < tokens; ++token) {
        const double* from = x.data() + (token * heads + head) * dim;
        double* to = y.data() + (head * tokens + token) * dim;
        for (uint64_t pair = 0; pair < half; ++pair) {
          const double frequency = std::pow(mistakes_.base, -2.0 * double(pair) / double(turned));
          const double angle = (double(token) + mistakes_.position) * frequency;
          const uint64_t i = mistakes_.neighbours ? 2 * pair : pair;
          const uint64_t j = mistakes_.neighbours ? 2 * pair + 1 : pair + half;
          to[i] = from[i] * std::cos(angle) - from[j] * std::sin(angle);
          to[j] = from[i] * std::sin(angle) + from[j] * std::cos(angle);
        }
      }
    }
    return y;
  }

  Values by_heads(const Values& x, uint64_t heads) const {
    Values y(x.size());
    for (uint64_t head = 0; head < heads; ++head)
      for (uint64_t token = 0; token < shape_.tokens; ++token)
        for (uint64_t i = 0; i < shape_.dim; ++i)
          y[(head * shape_.tokens + token) * shape_.dim + i] =
              x[(token * heads + head) * shape_.dim + i];
    return y;
  }

  bool sees(uint64_t token, uint64_t other) const {
    const auto from = static_cast<int64_t>(token), to = static_cast<int64_t>(other);
    if (mistakes_.masked && to > std::max<int64_t>(0, from + mistakes_.diagonal)) return false;
    return mistakes_.window == 0 || from - to < static_cast<int64_t>(mistakes_.window);
  }

  Values attended(const Values& q, const Values& k, const Values& v) const {
    constexpr double kUnseen = -std::numeric_limits<double>::infinity();
    const uint64_t dim = shape_.dim, tokens = shape_.tokens;
    Values y(tokens * shape_.width());
    for (uint64_t head = 0; head < shape_.heads; ++head) {
      const uint64_t group = shape_.heads / shape_.kv_heads;
      const uint64_t kv = mistakes_.tiled ? head % shape_.kv_heads : head / group;
      for (uint64_t token = 0; token < tokens; ++token) {
        Values weight(tokens, kUnseen);
        double sum = 0, most = kUnseen;
        for (uint64_t other = 0; other < tokens; ++other) {
          if (!sees(token, other)) continue;
          double dot = 0;
          for (uint64_t i = 0; i < dim; ++i)
            dot += q[(head * tokens + token) * dim + i] * k[(kv * tokens + other) * dim + i];
          weight[other] = dot * mistakes_.score / std::sqrt(double(dim));
          most = std::max(most, weight[other]);
        }
        for (double& score : weight) sum += score = std::exp(score - most);
        for (uint64_t other = 0; other < tokens; ++other)
          for (uint64_t i = 0; i < dim && weight[other] != 0; ++i)  // Else NaN reaches all tokens.
            y[token * shape_.width() + head * dim + i] +=
                as_stored(weight[other] / sum, dtype_) * v[(kv * tokens + other) * dim + i];
      }
    }
    return y;
  }

  double activated(double x) const {
    if (mistakes_.gelu) return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    return x / (1 + std::exp(-x));
  }

  // What the first rank has of the features; nothing of the others.
  Values of_first_rank(Values x) const {
    const uint64_t width = shape_.width();
    for (std::size_t i = 0; i < x.size(); ++i)
      if (i % width >= width / mistakes_.ranks) x[i] = 0;
    return x;
  }

  Values with_bias(Values x, const Values& bias) const {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += bias[i % bias.size()];
    return x;
  }

  Values block(const Layer& layer, Values x) {
    const uint64_t tokens = shape_.tokens, width = shape_.width();
    const uint64_t kv = shape_.kv_heads * shape_.dim;
    const Shape flat = {tokens, width}, flat_kv = {tokens, kv};
    const Values h = dump("post_ln_pre_attn", flat, normed(x, layer.norm1));
    const Values q = dump("query", flat,
                          with_bias(project(h, layer.q, width, mistakes_.transposed), layer.bias));
    const Values qf = dump("query_final", {shape_.heads, tokens, shape_.dim},
                           rotated(head_normed(q, layer.head_norm), shape_.heads));
    const Values k = dump("key", flat_kv, project(h, layer.k, width));
    const Values kf = dump("key_final", {shape_.kv_heads, tokens, shape_.dim},
                           rotated(head_normed(k, layer.head_norm), shape_.kv_heads));
    const Values v = dump("value", flat_kv, project(h, layer.v, width));
    const Values vf =
        dump("value_final", {shape_.kv_heads, tokens, shape_.dim}, by_heads(v, shape_.kv_heads));
    const Values heads = dump("post_attn", flat, attended(qf, kf, vf));
    const Values o =
        dump("post_attn_pre_resid", flat, project(of_first_rank(heads), layer.o, width));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = as_stored(x[i] + o[i], dtype_);
    const ToyMistakes kept = mistakes_;
    mistakes_.epsilon = 1e-5, mistakes_.plus = 0, mistakes_.weighted = true;  // The first norm's.
    const Values n = dump("pre_mlp", flat, normed(x, layer.norm2));
    mistakes_ = kept;
    Values gate = project(n, layer.gate, width), up = project(n, layer.up, width);
    if (mistakes_.swapped) std::swap(gate, up);
    for (std::size_t i = 0; i < gate.size(); ++i)
      gate[i] = as_stored(activated(gate[i]) * up[i], dtype_);
    const Values y = dump("post_mlp", flat, project(gate, layer.down, shape_.inner));
    Values sum(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) sum[i] = (mistakes_.residual ? x[i] : 0) + y[i];
    return dump("output", flat, std::move(sum));
  }

  ToyShape shape_;
  std::mt19937 generator_;
  std::vector<Layer> layers_;
  Values input_;
  DType dtype_ = DType::f32;
  bool backwards_ = false;
  ToyMistakes mistakes_;
  std::vector<Dump> dumps_;
};

// Two dumps as diagnose() gets them.
inline std::vector<Site> sites_of(const std::vector<ToyModel::Dump>& a, DType dtype_a,
                                  const std::vector<ToyModel::Dump>& b, DType dtype_b) {
  std::vector<Site> sites;
  for (std::size_t i = 0; i < a.size(); ++i) {
    Site site;
    site.index = site.capture = i;
    site.a.name = site.b.name = fmt::format("{}_{}", a[i].layer, a[i].stage);
    site.a.place = site.b.place = read_place(site.a.name);
    site.layer = static_cast<int64_t>(a[i].layer);
    site.stage = a[i].stage;
    site.views.a = view_of(a[i].shape, a[i].values, dtype_a);
    site.views.b = view_of(b[i].shape, b[i].values, dtype_b);
    site.comparison = compare(site.views).value();
    sites.push_back(std::move(site));
  }
  return sites;
}

}  // namespace tensordiff
