// The mistakes that the toy transformer can make, each with the code that names it.

#pragma once

#include <cstdlib>

#include "diagnose/diagnose.h"
#include "diagnose/toys/toy_model.h"

namespace tensordiff {

struct ToyExample {
  std::string_view code;
  std::string stage;
  std::function<void(ToyMistakes&, const ToyShape&, std::mt19937&)> make;
};

inline uint64_t below(uint64_t end, std::mt19937& random) {
  return std::uniform_int_distribution<uint64_t>(0, end - 1)(random);
}

// Changes each value by its row and column.
inline auto each(uint64_t width, std::function<double(double, uint64_t, uint64_t)> change) {
  return [width, change = std::move(change)](Values& values) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = change(values[i], i / width, i % width);
  };
}

// Puts another element in each place of a matrix of this width.
inline auto moved(uint64_t width, std::function<std::size_t(uint64_t, uint64_t)> source) {
  return [width, source = std::move(source)](Values& values) {
    const Values old = values;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = old[source(i / width, i % width)];
  };
}

using Mistakes = ToyMistakes&;
using Of = const ToyShape&;
using Random = std::mt19937&;

// Values that a stage gives, changed.
inline std::vector<ToyExample> value_mistakes() {
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
      {"cast", "value",
       [](Mistakes m, Of s, Random) {
         // To an 8-bit float: 3 bits of fraction, and none below 2^-6.
         m.after["value"] = each(s.kv_heads * s.dim, [](double x, auto, auto) {
           const double step = std::ldexp(1.0, std::max(x == 0 ? -6 : std::ilogb(x), -6) - 3);
           return std::nearbyint(x / step) * step;
         });
       }},
      {"offset", "key",
       [](Mistakes m, Of s, Random) {
         m.after["key"] = each(s.kv_heads * s.dim,
                               [](double x, auto, uint64_t i) { return x + std::cos(double(i)); });
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
  };
}

// Values that a stage gives, in other places.
inline std::vector<ToyExample> layout_mistakes() {
  return {
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
  };
}

// Steps that compute something else.
inline std::vector<ToyExample> step_mistakes() {
  return {
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

// One or more ways to make each mistake.
inline std::vector<ToyExample> examples() {
  std::vector<ToyExample> all = value_mistakes();
  for (const auto& more : {layout_mistakes(), step_mistakes()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

inline ToyShape random_shape(std::mt19937& random) {
  ToyShape shape;
  shape.tokens = 13 + below(9, random);
  shape.kv_heads = 2 + below(2, random);
  shape.heads = shape.kv_heads * (2 + below(2, random));
  shape.dim = 8 + 8 * below(2, random);
  shape.head_norm = below(3, random) == 0;
  shape.turned = below(3, random) == 0 ? shape.dim / 2 : 0;
  return shape;
}

inline std::string describe(const Insight& insight, const std::vector<Site>& sites) {
  std::string out = insight.first ? "first " + sites.at(insight.first->pair).a.name : "none";
  for (const Finding& finding : insight.findings)
    out += fmt::format("; {} at {}: {}, {} -> {}", finding.code, sites[finding.pair].a.name,
                       finding.explanation, finding.residual_before.value_or(-1),
                       finding.residual_after.value_or(-1));
  return out;
}

// How many random models each mistake is tried on: TENSORDIFF_SEEDS, or one, to be quick.
inline unsigned seeds() {
  const char* wanted = std::getenv("TENSORDIFF_SEEDS");
  return wanted ? static_cast<unsigned>(std::strtoul(wanted, nullptr, 10)) : 1;
}

}  // namespace tensordiff
