// What people get wrong in attention.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/operators/attention.h"
#include "diagnose/operators/combine.h"
#include "diagnose/operators/unmerged.h"
#include "diagnose/sample/fit.h"

namespace tensordiff::operators {
namespace {

constexpr uint64_t kWindowsMax = 512;

}  // namespace

std::vector<double> rope_bases(const Context& context) {
  std::vector<double> bases = {1e4, 1e6, 5e5, 1e5, 1e3, 1e7, 2e6, 1.5e5};
  if (const auto& stated = context.run().facts.rope_theta) bases.insert(bases.begin(), *stated);
  return bases;
}

void Attention::change_mask(std::vector<Change>& changes) const {
  const auto add = [&](const AttentionForm& form, std::string text, std::string cause,
                       double bits) {
    changes.push_back(
        {with(form), "attention_mask", std::move(text), std::move(cause), Family::parameter, bits});
  };
  AttentionForm other = form_;
  other.causal = !form_.causal;
  add(other,
      form_.causal ? "B sees later tokens: no causal mask"
                   : "B sees no later tokens: a causal mask that A does not have",
      "causal", 2);
  other = form_;
  if (form_.causal) {
    for (const int64_t late : {1, -1}) {
      other.late = late;
      add(other,
          late > 0 ? "B sees one token too many: the mask is late by one"
                   : "B does not see its own token: the mask is early by one",
          "mask_off_by_one", 2);
    }
  }
  const uint64_t most = std::min(keys_, kWindowsMax);
  if (form_.window > 0) {
    other = form_;
    other.window = 0;
    add(other, fmt::format("B sees all tokens where A sees the last {}", form_.window), "window",
        2);
  }
  for (uint64_t window = 1; window < most; ++window) {
    if (window == form_.window) continue;
    // Of long sequences only round numbers, and those next to them.
    const bool round = (window & (window - 1)) == 0 || ((window + 1) & window) == 0;
    if (keys_ > 64 && !round && window != form_.window + 1 && window + 1 != form_.window) continue;
    other = form_;
    other.window = window;
    add(other, fmt::format("B sees only the last {} tokens", window), "window",
        2 + std::log2(static_cast<double>(most)));
  }
  change_padding(changes);
}

// Which keys of a padded sequence are seen.
void Attention::change_padding(std::vector<Change>& changes) const {
  const auto add = [&](const AttentionForm& form, std::string text, double bits) {
    changes.push_back(
        {with(form), "attention_mask", std::move(text), "padding", Family::parameter, bits});
  };
  AttentionForm other = form_;
  if (!form_.seen.empty()) {
    other = form_;
    other.seen.clear();
    add(other, "B attends to padding that A masks", 1);
    for (const auto& [first, last] : form_.seen) other.uncounted.push_back(first);
    // Positions are counted from the first token that is seen. Where padding gets none of its own,
    // transformers' generate() gives it 1, and engines that clamp the count give it 0.
    for (const double at : {0.0, 1.0}) {
      other.padding_at = at;
      if (form_.rope.base > 0) add(other, "B attends to padding that A masks", 2);
    }
  } else {
    const uint64_t batch = extents_.rows() / queries_;
    for (uint64_t sequence = 0; sequence < batch && keys_ <= kWindowsMax; ++sequence)
      for (uint64_t pad = 1; pad < keys_; ++pad)
        for (const bool left : {true, false}) {
          other = form_;
          other.seen.assign(batch, {0, keys_});
          other.seen[sequence] = left ? std::pair{pad, keys_} : std::pair{uint64_t{0}, keys_ - pad};
          add(other,
              fmt::format("B does not see the {} {} tokens of sequence {}", left ? "first" : "last",
                          pad, sequence),
              3 + std::log2(static_cast<double>(batch * keys_)));
        }
  }
}

void Attention::change_scale(std::vector<Change>& changes) const {
  const auto dim = static_cast<double>(inputs_.query->extents().features / form_.heads);
  const auto hidden = static_cast<double>(inputs_.query->extents().features);
  const auto kv = static_cast<double>(inputs_.key->extents().features);
  std::vector<double> scales = {1.0,
                                1 / std::sqrt(dim),
                                1 / dim,
                                1 / std::sqrt(hidden),
                                std::sqrt(dim),
                                1 / std::sqrt(kv),
                                1 / std::sqrt(2 * dim),
                                1 / hidden};
  // And A's own, done twice, halved or doubled.
  scales.insert(scales.end(), {form_.scale * form_.scale, form_.scale / 2, form_.scale * 2,
                               form_.scale / std::sqrt(2.0), form_.scale * std::sqrt(2.0)});
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const double scale = scales[i];
    if (near(scale, form_.scale, 1e-6)) continue;
    if (std::any_of(scales.begin(), scales.begin() + static_cast<std::ptrdiff_t>(i),
                    [&](double earlier) { return near(scale, earlier, 1e-6); }))
      continue;
    AttentionForm other = form_;
    other.scale = scale;
    const uint64_t sizes[] = {static_cast<uint64_t>(dim), static_cast<uint64_t>(hidden)};
    changes.push_back(
        {with(other),
         "attention_scale",
         fmt::format("B scales attention scores by {}, A by {}", factor_text(scale, sizes, 1e-6),
                     factor_text(form_.scale, sizes, 1e-6)),
         "scale",
         Family::parameter,
         4,
         0,
         {{"scale_a", form_.scale}, {"scale_b", scale}}});
  }
}

void Attention::change_rope(std::vector<Change>& changes) const {
  const auto add = [&](const Rope& rope, std::string code, std::string text, std::string cause) {
    AttentionForm other = form_;
    other.rope = rope;
    changes.push_back(
        {with(other), std::move(code), std::move(text), std::move(cause), Family::parameter, 4});
  };
  const Rope& own = form_.rope;
  if (own.base == 0) return;
  Rope rope = own;
  rope.pairs = !own.pairs;
  const std::string_view pairs = "pairs (2i, 2i + 1)", halves = "(i, i + d/2)";
  add(rope, "rope_pairing",
      fmt::format("RoPE turns {} in B and {} in A", own.pairs ? halves : pairs,
                  own.pairs ? pairs : halves),
      "pairing");
  for (const double base : {1e4, 1e6, 5e5, 1e5, 1e3, 1e7, 2e6, 1.5e5}) {
    rope = own;
    rope.base = base;
    if (base != own.base)
      add(rope, "rope_frequency",
          fmt::format("RoPE has base {} in B and {} in A", human_number(base),
                      human_number(own.base)),
          "base");
  }
  for (const double stretch : {0.5, 0.25, 0.125, 2.0, 4.0, 8.0}) {
    rope = own;
    rope.stretch *= stretch;
    add(rope, "rope_frequency",
        fmt::format("RoPE multiplies positions by {} in B", human_number(stretch)), "stretch");
  }
  for (const uint64_t dims : {own.dims / 4, own.dims / 2, own.dims * 2, own.dims * 4}) {
    rope = own;
    rope.dims = dims;
    if (dims >= 2 && dims <= inputs_.query->extents().features / form_.heads)
      add(rope, "rope_frequency",
          fmt::format("RoPE turns {} features of each head in B and {} in A", dims, own.dims),
          "dims");
  }
  add({}, "rope_frequency", "B omits RoPE", "none");
  rope = own;
  rope.of_keys = false;
  add(rope, "rope_frequency", "B rotates queries but not keys", "keys_not_turned");
  rope = own;
  rope.of_queries = false;
  add(rope, "rope_frequency", "B rotates keys but not queries", "queries_not_turned");
  for (const double ahead : {1.0, -1.0, 2.0, -2.0}) {
    rope = own;
    rope.ahead += ahead;
    add(rope, "rope_position",
        fmt::format("RoPE of B's queries is {} {} of its keys", std::abs(ahead),
                    ahead > 0 ? "ahead" : "behind"),
        "offset");
  }
  rope = own;
  rope.stretch = -own.stretch;
  add(rope, "rope_position", "B's RoPE turns the other way", "direction");
}

void Attention::change_heads(std::vector<Change>& changes) const {
  AttentionForm other = form_;
  if (form_.kv_heads > 1 && form_.kv_heads < form_.heads) {
    other.tiled = !form_.tiled;
    changes.push_back({with(other), "head_mapping",
                       fmt::format("B {} the {} key heads over {} query heads, A {} them",
                                   other.tiled ? "tiles" : "repeats", form_.kv_heads, form_.heads,
                                   form_.tiled ? "tiles" : "repeats"),
                       "tiled", Family::parameter, 1});
  }
  for (const bool more : {true, false}) {
    other = form_;
    other.heads = more ? form_.heads * 2 : form_.heads / 2;
    other.kv_heads = more ? form_.kv_heads * 2 : form_.kv_heads / 2;
    if (other.kv_heads == 0 || other.heads == 0 || form_.rope.base > 0 || inputs_.bias) continue;
    if (inputs_.query->extents().features % other.heads != 0 ||
        inputs_.key->extents().features % other.kv_heads != 0)
      continue;
    changes.push_back({with(other), "operator",
                       fmt::format("B has {} heads where A has {}", other.heads, form_.heads),
                       "heads", Family::parameter, 2});
  }
  if (form_.heads > 1)
    changes.push_back({std::make_shared<Unmerged>(with(form_), form_.heads, queries_),
                       "axis_permutation",
                       "B merges heads without transposing tokens to the front first",
                       "heads_not_merged", Family::index, 2});
}

void Attention::change_inputs(const Context& context, std::vector<Change>& changes) const {
  const auto around = [&](Inputs inputs) { return std::make_shared<Attention>(form_, inputs); };
  if (inputs_.query->extents() == inputs_.key->extents()) {
    Inputs other = inputs_;
    std::swap(other.query, other.key);
    changes.push_back({around(other), "other_tensor",
                       fmt::format("B has queries {} and keys {} swapped", inputs_.query->text(),
                                   inputs_.key->text()),
                       "query_key_swapped", Family::substitution, 2});
    other = inputs_;
    std::swap(other.value, other.key);
    changes.push_back({around(other), "other_tensor",
                       fmt::format("B has keys {} and values {} swapped", inputs_.key->text(),
                                   inputs_.value->text()),
                       "key_value_swapped", Family::substitution, 2});
  }
  if (inputs_.bias) {
    Inputs other = inputs_;
    other.bias = nullptr;
    changes.push_back({around(other), "operator", "B omits the position bias",
                       "position_bias_missing", Family::term, 2});
  }
  for (const auto input : {&Inputs::query, &Inputs::key, &Inputs::value})
    lift((inputs_.*input)->changes(context),
         [&](const OperatorPtr& made) {
           Inputs other = inputs_;
           other.*input = made;
           return around(other);
         },
         changes);
}

// Queries, keys and values in one tensor that is cut otherwise than it was put together.
void Attention::change_cut(std::vector<Change>& changes) const {
  const uint64_t width = inputs_.query->extents().features, dim = width / form_.heads;
  const uint64_t keys = inputs_.key->extents().features;
  if (inputs_.query->extents().rows_by_axis != inputs_.key->extents().rows_by_axis ||
      inputs_.value->extents().features != keys || form_.heads % form_.kv_heads != 0)
    return;
  const auto all =
      std::make_shared<Joined>(std::vector<OperatorPtr>{inputs_.query, inputs_.key, inputs_.value});
  const FusedPlaces by_head = places_by_head(form_.heads, form_.kv_heads, dim);
  std::vector<uint64_t> put = by_head.query;
  put.insert(put.end(), by_head.key.begin(), by_head.key.end());
  put.insert(put.end(), by_head.value.begin(), by_head.value.end());
  std::vector<uint64_t> back(put.size());
  for (std::size_t i = 0; i < put.size(); ++i) back[put[i]] = i;
  for (const bool blocks : {true, false}) {
    const std::vector<uint64_t>& order = blocks ? put : back;
    const auto part = [&](uint64_t first, uint64_t count) {
      const auto from = order.begin() + static_cast<std::ptrdiff_t>(first);
      return std::make_shared<Columns>(
          all, std::vector<uint64_t>(from, from + static_cast<std::ptrdiff_t>(count)));
    };
    Inputs other = inputs_;
    other.query = part(0, width);
    other.key = part(width, keys);
    other.value = part(width + keys, keys);
    changes.push_back(
        {std::make_shared<Attention>(form_, other), "block_permutation",
         blocks ? "B cuts queries, keys and values by heads out of one tensor that holds them as "
                  "three blocks"
                : "B cuts queries, keys and values as three blocks out of one tensor that holds "
                  "them by heads",
         "fused_cut", Family::index, 2});
  }
}

std::vector<Change> Attention::changes(const Context& context) const {
  std::vector<Change> changes;
  change_scale(changes);
  change_mask(changes);
  change_heads(changes);
  change_rope(changes);
  change_inputs(context, changes);
  change_cut(changes);
  if (form_.alibi) {
    AttentionForm other = form_;
    other.alibi = false;
    changes.push_back(
        {with(other), "operator", "B omits ALiBi", "position_bias_missing", Family::parameter, 2});
  }
  return changes;
}

}  // namespace tensordiff::operators
