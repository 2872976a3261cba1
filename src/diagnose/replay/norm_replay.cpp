#include "diagnose/replay/norm_replay.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "diagnose/noise/norms.h"
#include "diagnose/replay/norm_factors.h"
#include "diagnose/replay/norm_gain.h"
#include "diagnose/replay/norm_lines.h"
#include "diagnose/sample/fit.h"
#include "diagnose/verdict/carried.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTokensMin = 6;
constexpr uint64_t kTokensMinCentred = 8;
// What a's own norm may leave of a: a few roundoffs of the three tensors.
constexpr double kOwnRoundoffs = 8;
constexpr double kOwnFitMin = 1e-4;
constexpr double kClearlyBetter = 0.5;
constexpr double kSmallWeight = 0.05;  // Of the typical one: below it a feature shows only noise.
constexpr double kSizesApart = 0.02;
constexpr double kFactorsApart = 3;  // Standard deviations.
// Where the biases of two norms are told from each other only by how tokens differ in size.
constexpr double kSizeLeftCentred = 1e-2;
constexpr double kShareMin = 0.01;  // Of the stream and of the branch in a's output.
constexpr double kAlike = 0.1;      // How far tokens are from their mean.
constexpr double kNoStream = 0.02;  // Share of the output that is no stream at all.

double own_fit(double roundoff) { return std::max(kOwnFitMin, kOwnRoundoffs * roundoff); }

const Site* in_layer(const Run& run, std::optional<int64_t> layer, Role role) {
  for (const Site* site : sites_of(run, role, layer))
    if (site->compared() && !site->aside) return site;
  return nullptr;
}

// The steps whose outputs make up what a norm reads.
struct NormSources {
  const Site *stream = nullptr, *branch = nullptr, *before = nullptr;
};

NormSources sources_of(const Run& run, const Site& site) {
  if (site.role == Role::mlp_norm) {
    const auto last = site.block ? std::optional(*site.block - 1) : std::nullopt;
    return {find_role(run, site, Role::attention_norm),
            find_role(run, site, Role::attention_output), in_layer(run, last, Role::layer_output)};
  }
  std::optional<int64_t> last;
  for (const Site& other : run.sites)
    if (other.block && (!site.block || *other.block < *site.block))
      last = std::max(last.value_or(*other.block), *other.block);
  if (!last || (site.block && *last + 1 != *site.block)) return {};
  return {in_layer(run, last, Role::mlp_norm), in_layer(run, last, Role::mlp_output),
          in_layer(run, last, Role::layer_output)};
}

double typical(const std::vector<double>& values) {
  return norm(values) / std::sqrt(static_cast<double>(std::max<std::size_t>(1, values.size())));
}

// Tokens that hardly differ tell nothing of the weights that made them.
bool are_alike(const Matrix& tokens) {
  std::vector<double> mean(tokens.features);
  for (uint64_t row = 0; row < tokens.rows(); ++row)
    for (uint64_t i = 0; i < tokens.features; ++i)
      mean[i] += tokens.row(row)[i] / static_cast<double>(tokens.rows());
  const double shared = norm(mean) * std::sqrt(static_cast<double>(tokens.rows()));
  const double all = norm(tokens.values);
  return all * all - shared * shared < kAlike * kAlike * all * all;
}

// The factor that a's weights have over b's: of all features the one in the middle.
double middle_ratio(const std::vector<double>& top, const std::vector<double>& bottom) {
  std::vector<double> ratios;
  const double least = kSmallWeight * typical(bottom);
  for (std::size_t i = 0; i < top.size(); ++i)
    if (std::abs(bottom[i]) > least) ratios.push_back(top[i] / bottom[i]);
  if (ratios.empty()) return 1;
  std::ranges::nth_element(ratios, ratios.begin() + std::ssize(ratios) / 2);
  return ratios[ratios.size() / 2];
}

// Each token as large as those of a are, before the weight. Where those differ in size, the weight
// of the branch is not that of the norm, and sizes tell nothing.
void normalise_like(const Matrix& a, const NormFactors& of_a, Matrix& made) {
  std::vector<double> sizes;
  for (uint64_t row = 0; row < a.rows(); ++row) sizes.push_back(size_of(a.row(row), of_a));
  const auto [least, most] = std::ranges::minmax(sizes);
  if (most - least > kSizesApart * most) return;
  for (uint64_t row = 0; row < made.rows(); ++row) {
    const double here = size_of(made.row(row), of_a);
    for (uint64_t i = 0; here > 0 && i < made.features; ++i) {
      double& value = made.row(row)[i];
      value = (value - of_a.start[i]) * (sizes[row] / here) + of_a.start[i];
    }
  }
}

// By which factors b's weights differ from a's, told by those of the stream or of the branch.
std::vector<double> weight_ratios(const std::vector<double>& b, const std::vector<double>& a) {
  const double middle = std::abs(middle_ratio(b, a));
  std::vector<double> ratios(b.size(), 1);
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double ratio = b[i] / a[i] / middle;
    if (std::isfinite(ratio) && ratio != 0) ratios[i] = ratio;
  }
  return ratios;
}

// What a's norm makes of what b's own factors say went into b's.
Matrix with_weights_of_a(const NormParts& a, const NormFactors& of_a, Matrix own,
                         const std::vector<double>& ratios) {
  for (uint64_t row = 0; row < own.rows(); ++row)
    for (uint64_t i = 0; i < own.features; ++i)
      own.row(row)[i] = (own.row(row)[i] - of_a.start[i]) / ratios[i] + of_a.start[i];
  normalise_like(a.out, of_a, own);
  return own;
}

// What should have come out where b read the branch alone: with as much of the stream as in a.
Matrix with_stream_of_a(const NormParts& a, const NormFactors& of_a, const NormParts& b) {
  Matrix made = made_by(b, of_a);
  normalise_like(a.out, of_a, made);
  return made;
}

// A norm turns no token round.
void keep_signs(const NormFactors& of_a, NormFactors& of_b) {
  for (std::size_t i = 0; i < of_b.of_stream.size(); ++i) {
    if (of_a.of_stream[i] * of_b.of_stream[i] >= 0 || of_a.of_branch[i] * of_b.of_branch[i] >= 0)
      continue;
    of_b.of_stream[i] *= -1;
    of_b.of_branch[i] *= -1;
  }
}

// What a's weights make of b's inputs: b's output in the usual case.
NormReplay by_weights_of_a(const NormParts& a, const NormFactors& of_a, const NormParts& b) {
  NormReplay replay;
  replay.own = of_a.left;
  NormFactors of_b = of_a;
  fit_tokens(b, of_b);
  keep_signs(of_a, of_b);
  replay.branch_left = left_of(branch_part(b, of_b), b.out);
  replay.made = made_by(b, of_b);
  normalise_like(a.out, of_a, replay.made);
  replay.left = left_of(replay.made, b.out);
  replay.b = b.out;
  return replay;
}

// Whether b's tokens have factors unlike those of a. The two biases of a LayerNorm are told from
// each other by how the factors differ among a's tokens, and less surely the farther from these.
bool far_from(const NormFactors& of_a, const NormParts& b) {
  NormFactors of_b = of_a;
  fit_tokens(b, of_b);
  const auto mean = [](const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  const double middle = mean(of_a.of_stream);
  std::vector<double> apart = of_a.of_stream;
  for (double& factor : apart) factor -= middle;
  return std::abs(mean(of_b.of_stream) - middle) > kFactorsApart * typical(apart);
}

std::optional<NormReplay> replayed(const NormParts& a, const NormParts& b, bool centred,
                                   double roundoff) {
  const double exact = 0.25 * roundoff;
  const NormFactors of_a = factors_of(a, centred, exact);
  if (of_a.left > own_fit(roundoff)) return std::nullopt;
  // Both must show in a, or their weights are not known.
  const double branch_of_a = left_of(branch_part(a, of_a), a.out);
  if (branch_of_a < kShareMin || branch_of_a > 1 - kShareMin) return std::nullopt;
  NormReplay replay = by_weights_of_a(a, of_a, b);
  const double noise = std::max(4 * replay.own, 16 * roundoff);
  if (replay.left <= noise && replay.branch_left >= std::max(kNoStream, noise)) return replay;
  const NormParts lone = {like(b.stream), b.branch, b.out};
  const NormFactors of_lone = factors_of(lone, centred, exact);
  replay.branch_made = made_by(lone, of_lone);
  replay.branch_left = of_lone.left;
  replay.alone = replay.branch_left < std::max(kNoStream, 16 * roundoff);
  if (centred && !replay.alone && far_from(of_a, b)) return std::nullopt;
  // Where b's is a norm of its inputs, only its weights may be wrong. They show in the branch, and
  // in the stream, too, unless the norm before this one had others.
  const NormFactors of_b = factors_of(b, centred, exact);
  const Matrix own = made_by(b, of_b);
  replay.told = of_b.left <= noise;
  std::vector<Matrix> made;
  if (replay.alone) {
    made.push_back(with_stream_of_a(a, of_a, b));
  } else {
    made.push_back(with_weights_of_a(a, of_a, own, weight_ratios(of_b.w_branch, of_a.w_branch)));
    made.push_back(with_weights_of_a(a, of_a, own, weight_ratios(of_b.w_stream, of_a.w_stream)));
  }
  replay.left = INFINITY;
  for (Matrix& each : made) {
    const double left = left_of(each, b.out);
    if (left < replay.left) replay.left = left, replay.made = std::move(each);
  }
  return replay;
}

// Each token as the norm before it and what was added since, before the weights of both norms.
struct Combined {
  Matrix made;
  double of_stream = 0;  // Share of it that is the norm before.
};

Combined combined(const NormParts& unit) {
  Combined result{like(unit.out)};
  Matrix stream = like(unit.out);
  for (uint64_t row = 0; row < stream.rows(); ++row) {
    const auto x = unit.stream.row(row), y = unit.branch.row(row), z = unit.out.row(row);
    LeastSquares sums;
    for (uint64_t i = 0; i < stream.features; ++i) sums.add(x[i], y[i], z[i]);
    double of_stream = 0, of_branch = 0;
    sums.solve(of_stream, of_branch);
    // A norm turns no token round.
    if (of_stream < 0 && of_branch < 0) of_stream *= -1, of_branch *= -1;
    for (uint64_t i = 0; i < stream.features; ++i) {
      stream.row(row)[i] = of_stream * x[i];
      result.made.row(row)[i] = of_stream * x[i] + of_branch * y[i];
    }
  }
  result.of_stream = norm(stream.values) / std::max(norm(result.made.values), 1e-300);
  return result;
}

// Both norms as a model multiplies by their weights, and whether they are centred.
struct NormForm {
  NormGain gain, gain_before;
  bool centred;
};

NormParts unit_parts(const NormParts& parts, const NormForm& form) {
  return {without_gain(parts.stream, form.gain_before),
          form.centred ? without_means(parts.branch) : parts.branch,
          without_gain(parts.out, form.gain)};
}

// With the weights of both norms at hand a token has two unknowns of its own, and there are no
// others.
std::optional<NormReplay> by_stored_weights(const Run& run, const Site& site,
                                            const NormSources& from, const NormParts (&parts)[2]) {
  const auto here = stored_gain(run, site), before = stored_gain(run, *from.stream);
  if (!here || !before) return std::nullopt;
  NormReplay replay;
  std::optional<NormForm> best;
  for (const bool centred : {false, true}) {
    for (const GainWay& way : ways_of_models()) {
      NormForm form{in_way(*here, way), in_way(*before, way), centred};
      const Matrix made = with_gain(combined(unit_parts(parts[0], form)).made, form.gain);
      const double own = left_of(made, parts[0].out);
      if (own < replay.own) replay.own = own, best = std::move(form);
    }
  }
  if (!best || replay.own > own_fit(site.roundoff)) return std::nullopt;
  Combined of_b = combined(unit_parts(parts[1], *best));
  replay.made = with_gain(std::move(of_b.made), best->gain);
  replay.b = parts[1].out;
  replay.left = left_of(replay.made, replay.b);
  replay.told = replay.left <= std::max(4 * replay.own, 16 * site.roundoff);
  if (replay.told && of_b.of_stream < kNoStream) return std::nullopt;
  return replay;
}

std::optional<NormReplay> by_norm_before(const Run& run, const Site& site, const NormSources& from,
                                         const TokenRange& at) {
  NormParts parts[2];
  int which = 0;
  if (!from.stream || !from.branch) return std::nullopt;
  for (const auto side : {&AlignedPair::a, &AlignedPair::b}) {
    auto stream = read_side(run, from.stream, side, at);
    auto branch = read_side(run, from.branch, side, at);
    auto out = read_side(run, &site, side, at);
    if (!stream || !branch || !out || !same_form(*stream, *out) || !same_form(*branch, *out) ||
        out->rows() < kTokensMin)
      return std::nullopt;
    parts[which++] = {std::move(*stream), std::move(*branch), std::move(*out)};
  }
  // Weights that are known leave less room than those that are learnt.
  std::optional<NormReplay> stored = by_stored_weights(run, site, from, parts);
  if ((stored && stored->told) || are_alike(parts[0].out)) return stored;
  std::optional<NormReplay> replay = replayed(parts[0], parts[1], false, site.roundoff);
  if (!replay && parts[0].out.rows() >= kTokensMinCentred) {
    for (NormParts& part : parts) part.branch = without_means(std::move(part.branch));
    replay = replayed(parts[0], parts[1], true, site.roundoff);
    if (replay) replay->size_left = kSizeLeftCentred;
  }
  return stored && (!replay || replay->told) ? std::move(stored) : std::move(replay);
}

// A norm that is wrong in itself does not show the stream, nor need one that leaves a sum out: that
// may be missing in the stream, too, or there alone.
bool wrong_itself(const Run& run, const Site& norm, const TokenRange& at) {
  if (!norm.bug()) return false;
  if (norm.inputs.empty() || !blank_tokens(run, norm).empty()) return true;
  const std::optional<NormReplay> replay = by_norm_before(run, norm, sources_of(run, norm), at);
  return norm.created || !replay || replay->alone || !replay->told;
}

// The stream as it was dumped, and what came to it since.
struct Stream {
  const Site *before, *added;
};

void by_stream(const Run& run, const Site& site, const Stream& from, const TokenRange& at,
               NormReplay& best) {
  Matrix x[2], out[2];
  int which = 0;
  for (const auto side : {&AlignedPair::a, &AlignedPair::b}) {
    auto stream = read_side(run, from.before, side, at), whole = read_side(run, &site, side, at);
    if (!stream || !whole || !same_form(*stream, *whole) || whole->rows() < kTokensMin) return;
    if (from.added) {
      const auto branch = read_side(run, from.added, side, at);
      if (!branch || !same_form(*branch, *whole)) return;
      for (std::size_t i = 0; i < branch->values.size(); ++i)
        stream->values[i] += branch->values[i];
    }
    x[which] = std::move(*stream);
    out[which++] = std::move(*whole);
  }
  if (are_alike(out[0])) return;
  for (const bool centred : {false, true}) {
    const Matrix unit = unit_tokens(x[0], centred);
    const NormLines lines = lines_between(unit, out[0], centred);
    const double own = left_of(on_lines(unit, lines), out[0]);
    if (own >= kClearlyBetter * best.own) continue;
    best.own = own;
    best.made = on_lines(unit_tokens(x[1], centred), lines);
    best.left = left_of(best.made, out[1]);
    best.b = out[1];
  }
}

// A norm behind a branch reads that alone, or with the norm before it, where that is the stream.
void by_branch(const Run& run, const Site& site, const TokenRange& at, NormReplay& best) {
  const Site *branch = nullptr, *before = nullptr;
  for (const Site& other : run.sites) {
    if (&other == &site) break;
    if (!other.compared()) continue;
    if (other.role == Role::branch_norm) before = &other;
    const bool gives = other.role == Role::attention_output || other.role == Role::mlp_output;
    if (gives && other.block == site.block) branch = &other;
  }
  if (!branch) return;
  branch = as_read_by(run, branch, site);
  by_stream(run, site, {branch, nullptr}, at, best);
  by_stream(run, site, {before, branch}, at, best);
}

}  // namespace

std::optional<NormReplay> replay_norm(const Run& run, const Site& site, const TokenRange& at) {
  if (!is_norm(site.role) || !site.compared()) return std::nullopt;
  if (site.role == Role::branch_norm) {
    NormReplay replay;
    by_branch(run, site, at, replay);
    return replay.own <= own_fit(site.roundoff) ? std::optional(std::move(replay)) : std::nullopt;
  }
  const NormSources from = sources_of(run, site);
  NormReplay exact;
  by_stream(run, site, {from.before, nullptr}, at, exact);
  if (site.role == Role::mlp_norm) by_stream(run, site, {from.before, from.branch}, at, exact);
  if (exact.own <= own_fit(site.roundoff)) return exact;
  std::optional<NormReplay> replay = by_norm_before(run, site, from, at);
  return replay && (replay->told || !wrong_itself(run, *from.stream, at)) ? std::move(replay)
                                                                          : std::nullopt;
}

}  // namespace tensordiff
