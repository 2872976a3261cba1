#include "diagnose/replay/attention_forms.h"

#include <algorithm>
#include <cmath>

#include "diagnose/graph/heads.h"
#include "diagnose/limits.h"
#include "diagnose/noise/roundoff.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

constexpr double kWorthTrying = 0.03;  // A form that leaves more will not be mended by a cap.
// Nearer than so many unit roundoffs needs no other form.
constexpr double kExact = 4;
// A form with more to it must leave less than this share of what a simpler one leaves.
constexpr double kClearlyBetter = 0.8;
constexpr std::size_t kFewRows = 3;  // Enough to tell most forms off.
constexpr double kCaps[] = {50, 30, 20};
constexpr double kBases[] = {1e4, 5e5, 1e6, 1e5, 1e3, 5e6, 1e7};
constexpr uint64_t kFirstTokens = 32;
constexpr uint64_t kBeforeWindow = 4;  // Tokens that any window holds.
constexpr int kBaseTurns = 24;
constexpr double kBaseNear = 0.3;  // A base this near leaves less than a form without RoPE.

// Numbers of heads to try: as the tensors or the configuration say, else every divisor.
std::vector<uint64_t> head_counts(const Case& it, const AttentionInputs& in) {
  if (in.query.heads > 0) return {in.query.heads};
  for (const uint64_t dim : known_head_dims(it.run, it.site))
    if (in.query.features % dim == 0) return {in.query.features / dim};
  std::vector<uint64_t> dims, counts;
  for (uint64_t dim = in.query.features; dim >= 2; --dim)
    if (in.query.features % dim == 0) dims.push_back(dim);
  usual_first(dims);
  for (const uint64_t dim : dims) counts.push_back(in.query.features / dim);
  return counts;
}

// Numbers of the configuration that were dumped beside this layer: floats are scales, integers
// windows.
std::vector<double> dumped_numbers(const Case& it, bool floats) {
  std::vector<double> numbers;
  for (const Site* site : sites_of(it.run, Role::setting, it.site.block)) {
    const auto& there = site->comparison.diff.a_there;
    if (there && is_float(site->views.a.dtype) == floats) numbers.push_back(*there);
  }
  return numbers;
}

// Scales to try: as dumped or configured, else the usual ones.
std::vector<double> plausible_scales(const Case& it, uint64_t dim) {
  std::vector<double> scales = dumped_numbers(it, true);
  if (it.run.facts.score_scale) scales.push_back(*it.run.facts.score_scale);
  scales.push_back(1 / std::sqrt(static_cast<double>(dim)));
  scales.push_back(1);
  return scales;
}

// Heads that the sizes of the inputs allow, with the first scale that is plausible.
std::vector<AttentionForm> plausible_heads(const Case& it, const AttentionInputs& in) {
  std::vector<AttentionForm> forms;
  for (const uint64_t heads : head_counts(it, in)) {
    const uint64_t dim = in.query.features / heads;
    if (dim == 0 || dim * heads != in.query.features) continue;
    if (in.key.features == 0 || in.key.features % dim != 0) continue;
    AttentionForm form;
    form.heads = heads;
    form.kv_heads = in.key.features / dim;
    form.scale = plausible_scales(it, dim)[0];
    if (heads % form.kv_heads == 0 && in.value.features % form.kv_heads == 0) forms.push_back(form);
  }
  return forms;
}

std::vector<AttentionForm> plausible_forms(const Case& it, const AttentionInputs& in) {
  std::vector<AttentionForm> forms;
  for (AttentionForm form : plausible_heads(it, in)) {
    const bool grouped = form.kv_heads > 1 && form.kv_heads < form.heads;
    for (const double scale : plausible_scales(it, in.query.features / form.heads)) {
      for (const bool masked : {true, false}) {
        for (const bool tiled : {false, true}) {
          if (tiled && !grouped) continue;
          for (const uint64_t window : plausible_windows(it, in)) {
            form.scale = scale, form.masked = masked, form.tiled = tiled, form.window = window;
            forms.push_back(form);
          }
        }
      }
    }
  }
  return forms;
}

std::vector<AttentionForm> with_caps(const Case& it, const AttentionForm& form) {
  std::vector<double> caps(std::begin(kCaps), std::end(kCaps));
  if (it.run.facts.score_cap) caps = {*it.run.facts.score_cap};
  std::vector<AttentionForm> forms(caps.size(), form);
  for (std::size_t i = 0; i < caps.size(); ++i) forms[i].cap = caps[i];
  return forms;
}

// The best form so far.
struct Search {
  const AttentionInputs& in;  // Before RoPE.
  const Matrix& out;
  LearntAttention best = {};

  // Takes another form where it is clearly better. A few rows tell most off.
  void consider(const AttentionForm& form) {
    const AttentionInputs source = form.turned > 0 ? turned(in, form) : AttentionInputs();
    const AttentionInputs& from = form.turned > 0 ? source : in;
    std::vector<uint64_t> all = rows_to_replay(from, form.heads);
    std::vector<uint64_t> few;
    for (std::size_t k = 0; k < std::min(kFewRows, all.size()); ++k)
      few.push_back(all[all.size() - 1 - k * all.size() / kFewRows]);
    if (replay_error(from, form, out, few) > 2 * best.left) return;
    const double here = replay_error(from, form, out, all);
    if (here >= kClearlyBetter * best.left) return;
    best = {form, std::move(all), here};
  }
};

// Tries the plausible forms that mask what comes later, or those that do not.
LearntAttention without_rope(const Case& it, Search search, bool masked) {
  const double exact = kExact * roundoff_of(it.site.views.a);
  search.best.left = kWorthTrying;
  for (const AttentionForm& form : plausible_forms(it, search.in)) {
    if (form.masked == masked) search.consider(form);
    if (search.best.left <= exact) return search.best;
  }
  if (search.best.rows.empty()) return search.best;
  for (const AttentionForm& form : with_caps(it, search.best.form)) search.consider(form);
  return search.best;
}

// Whether queries and keys are said to be as attention reads them.
bool after_rope(const Case& it) {
  const Site* query = find_role(it.run, it.site, Role::query_final);
  return query && query->a.place.step == Role::query_final;
}

// RoPE in all its usual forms, and ALiBi. Heads of queries and keys have `dim` features.
std::vector<AttentionForm> with_positions(const Case& it, const AttentionForm& plain,
                                          uint64_t dim) {
  std::vector<AttentionForm> forms;
  AttentionForm form = plain;
  form.alibi = true;
  forms.push_back(form);
  if (after_rope(it)) return forms;
  form.alibi = false;
  std::vector<double> bases(std::begin(kBases), std::end(kBases));
  if (it.run.facts.rope_theta) bases = {*it.run.facts.rope_theta};
  for (const uint64_t part : {dim, dim / 2, dim / 4}) {
    for (const RopePairing pairing : {RopePairing::halves, RopePairing::neighbours}) {
      for (const double base : bases) {
        form.turned = part, form.pairing = pairing, form.base = base;
        if (part >= 2 && part % 2 == 0) forms.push_back(form);
      }
    }
  }
  return forms;
}

// The base by golden section, around the best of those that were tried.
void refine_base(Search& search) {
  AttentionForm form = search.best.form;
  const double centre = std::log(form.base);
  double low = centre - 2.5, high = centre + 2.5;
  const auto error_at = [&](double logarithm) {
    form.base = std::exp(logarithm);
    return replay_error(turned(search.in, form), form, search.out, search.best.rows);
  };
  double left = high - limits::kGolden * (high - low), right = low + limits::kGolden * (high - low);
  double at_left = error_at(left), at_right = error_at(right);
  for (int turn = 0; turn < kBaseTurns; ++turn) {
    if (at_left < at_right) {
      high = right, right = left, at_right = at_left;
      left = high - limits::kGolden * (high - low), at_left = error_at(left);
    } else {
      low = left, left = right, at_left = at_right;
      right = low + limits::kGolden * (high - low), at_right = error_at(right);
    }
  }
  form.base = std::exp((low + high) / 2);
  search.consider(form);
}

// Positions are told from queries and keys by attention itself, where both were dumped before it.
LearntAttention with_rope(const Case& it, Search search) {
  search.best.left = kBaseNear;
  for (const AttentionForm& plain : plausible_heads(it, search.in))
    for (const AttentionForm& form :
         with_positions(it, plain, search.in.query.features / plain.heads))
      search.consider(form);
  if (search.best.rows.empty()) return search.best;
  for (const AttentionForm& form : with_caps(it, search.best.form)) search.consider(form);
  if (search.best.left > own_fit(roundoff_of(it.site.views.a)) && search.best.form.turned > 0)
    refine_base(search);
  return search.best;
}

// A form that was found on the first tokens, on all of them. A window shows on later ones only.
LearntAttention on_all_tokens(const Case& it, const AttentionInputs& in, LearntAttention form) {
  form.rows = rows_to_replay(in, form.form.heads);
  form.left = replay_error(turned(in, form.form), form.form, it.a, form.rows);
  Search search{in, it.a, form};
  for (const uint64_t window : plausible_windows(it, in)) {
    form.form.window = window;
    search.consider(form.form);
  }
  return search.best;
}

LearntAttention without_mask(const Case& it, Search search) {
  return without_rope(it, std::move(search), false);
}

// The same under a window that nobody told of: the first tokens do not see its end.
LearntAttention with_rope_in_window(const Case& it, Search search) {
  const uint64_t tokens = std::min(kBeforeWindow, search.in.query.tokens);
  const AttentionInputs first = {first_tokens(search.in.query, tokens),
                                 first_tokens(search.in.key, tokens),
                                 first_tokens(search.in.value, tokens)};
  const Matrix out = first_tokens(search.out, tokens);
  LearntAttention learnt = with_rope(it, {first, out});
  if (learnt.rows.empty() || learnt.form.turned == 0) return {};
  const AttentionInputs whole = turned(search.in, learnt.form);
  learnt.form.window = nearest_window(whole, learnt.form, search.out);
  learnt.rows = rows_to_replay(whole, learnt.form.heads);
  learnt.left = replay_error(whole, learnt.form, search.out, learnt.rows);
  search.best = std::move(learnt);
  if (search.best.left > own_fit(roundoff_of(it.site.views.a))) refine_base(search);
  return search.best;
}

// A window that nobody told of.
LearntAttention with_window(const Case& it, Search search) {
  search.best.left = kWorthTrying;
  for (AttentionForm form : plausible_heads(it, search.in)) {
    form.window = nearest_window(search.in, form, search.out);
    if (form.window > 0) search.consider(form);
  }
  return search.best;
}

}  // namespace

// What a's own form may leave of a's output: f32 dumps leave a few roundoffs, bf16 ones a percent
// or two, since probabilities were rounded in between. A form that leaves more is another: a replay
// without the rotation, say, of queries that were dumped before it.
double own_fit(double roundoff) { return std::clamp(8 * roundoff, 1e-4, 0.03); }

std::vector<uint64_t> plausible_windows(const Case& it, const AttentionInputs& in) {
  std::vector<uint64_t> windows = {0};
  std::vector<double> numbers = dumped_numbers(it, false);
  if (it.run.facts.window) numbers.push_back(static_cast<double>(*it.run.facts.window));
  for (const double number : numbers) {
    if (number < 1 || number >= static_cast<double>(in.key.tokens)) continue;
    windows.push_back(static_cast<uint64_t>(number));
    windows.push_back(static_cast<uint64_t>(number) + 1);  // Some count the token itself extra.
  }
  return windows;
}

AttentionInputs turned(const AttentionInputs& in, const AttentionForm& form) {
  if (form.turned == 0) return in;
  Rotation rotation;
  rotation.form = {in.query.features / form.heads, form.turned, form.pairing, false};
  rotation.weight.assign(rotation.form.head_dim, 1);
  const uint64_t pairs = rotation.form.pairs();
  for (uint64_t token = 0; token < in.query.tokens; ++token)
    for (uint64_t pair = 0; pair < pairs; ++pair)
      rotation.angles.push_back(static_cast<double>(token) *
                                std::pow(form.base, -static_cast<double>(pair) / double(pairs)));
  return {rotate(in.query, rotation), rotate(in.key, rotation), in.value};
}

std::optional<LearntAttention> learn_form(const Case& it, const AttentionInputs& in) {
  const double roundoff = roundoff_of(it.site.views.a);
  // The first tokens see no later ones, and cost little.
  const uint64_t tokens = std::min(kFirstTokens, in.query.tokens);
  const AttentionInputs first = {first_tokens(in.query, tokens), first_tokens(in.key, tokens),
                                 first_tokens(in.value, tokens)};
  const Matrix out = first_tokens(it.a, tokens);
  LearntAttention learnt = without_rope(it, {first, out}, true);
  if (learnt.left > (after_rope(it) ? own_fit(roundoff) : kExact * roundoff)) {
    LearntAttention other = with_rope(it, {first, out});
    if (learnt.rows.empty() || other.left < kClearlyBetter * learnt.left) learnt = std::move(other);
  }
  if (!learnt.rows.empty()) learnt = on_all_tokens(it, in, std::move(learnt));
  for (const auto& other : {with_window, without_mask, with_rope_in_window})
    if (learnt.rows.empty() || learnt.left > own_fit(roundoff)) learnt = other(it, {in, it.a});
  if (learnt.rows.empty() || learnt.left > own_fit(roundoff)) return std::nullopt;
  return learnt;
}

}  // namespace tensordiff
