#include "diagnose/norm_replay.h"

#include <algorithm>
#include <cmath>

#include "diagnose/fit.h"
#include "diagnose/norm_lines.h"
#include "diagnose/norms.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTokensMax = 32;
constexpr uint64_t kTokensMin = 6;
constexpr uint64_t kFeaturesTold = 128;  // Enough to find the factors of the tokens.
constexpr int kTurns = 100;
constexpr double kSettled = 0.98;  // A turn that leaves more than this of it is one of the last.
// What a's own norm may leave of a: a few roundoffs of the three tensors.
constexpr double kOwnRoundoffs = 8;
constexpr double kOwnFitMin = 1e-4;
constexpr double kClearlyBetter = 0.5;
constexpr double kSmallWeight = 0.05;  // Of the typical one: below it a feature shows only noise.
constexpr double kSizesApart = 0.02;
constexpr double kShareMin = 0.01;  // Of the stream and of the branch in a's output.
constexpr double kNoStream = 0.02;  // Share of the output that is no stream at all.

double own_fit(double roundoff) { return std::max(kOwnFitMin, kOwnRoundoffs * roundoff); }

// What a norm is made from and gives, on one side.
struct NormParts {
  Matrix stream, branch, out;
};

struct NormFactors {
  std::vector<double> of_stream, of_branch;  // For each token.
  std::vector<double> w_stream, w_branch;    // For each feature.
  double left = 1;
};

void fit_features(const NormParts& parts, NormFactors& fit) {
  for (uint64_t i = 0; i < parts.out.features; ++i) {
    LeastSquares sums;
    for (uint64_t row = 0; row < parts.out.rows(); ++row)
      sums.add(fit.of_stream[row] * parts.stream.row(row)[i],
               fit.of_branch[row] * parts.branch.row(row)[i], parts.out.row(row)[i]);
    sums.solve(fit.w_stream[i], fit.w_branch[i]);
  }
}

void fit_tokens(const NormParts& parts, NormFactors& fit) {
  for (uint64_t row = 0; row < parts.out.rows(); ++row) {
    LeastSquares sums;
    for (uint64_t i = 0; i < parts.out.features; ++i)
      sums.add(fit.w_stream[i] * parts.stream.row(row)[i],
               fit.w_branch[i] * parts.branch.row(row)[i], parts.out.row(row)[i]);
    sums.solve(fit.of_stream[row], fit.of_branch[row]);
  }
}

Matrix made_by(const NormParts& parts, const NormFactors& fit) {
  return filled(parts.out, [&](uint64_t row, uint64_t i) {
    return fit.of_stream[row] * fit.w_stream[i] * parts.stream.row(row)[i] +
           fit.of_branch[row] * fit.w_branch[i] * parts.branch.row(row)[i];
  });
}

Matrix branch_part(const NormParts& parts, const NormFactors& fit) {
  return filled(parts.out, [&](uint64_t row, uint64_t i) {
    return fit.of_branch[row] * fit.w_branch[i] * parts.branch.row(row)[i];
  });
}

double left_of(const Matrix& made, const Matrix& out) {
  const double size = norm(out.values);
  return size > 0 ? distance(made.values, out.values) / size : 1;
}

// Every so many features.
Matrix some_features(const Matrix& matrix) {
  const uint64_t step = std::max<uint64_t>(1, matrix.features / kFeaturesTold);
  Matrix result = matrix;
  result.features = (matrix.features + step - 1) / step;
  result.values.clear();
  for (uint64_t row = 0; row < matrix.rows(); ++row)
    for (uint64_t i = 0; i < matrix.features; i += step)
      result.values.push_back(matrix.row(row)[i]);
  return result;
}

NormFactors factors_of(const NormParts& whole, double exact) {
  const NormParts few = {some_features(whole.stream), some_features(whole.branch),
                         some_features(whole.out)};
  NormFactors fit;
  fit.of_stream.assign(few.out.rows(), 1);
  fit.of_branch.assign(few.out.rows(), 1);
  fit.w_stream.resize(few.out.features);
  fit.w_branch.resize(few.out.features);
  int idle = 0;
  for (int turn = 0; turn < kTurns && idle < 3 && fit.left > exact; ++turn) {
    fit_features(few, fit);
    fit_tokens(few, fit);
    const double left = left_of(made_by(few, fit), few.out);
    idle = left > kSettled * fit.left ? idle + 1 : 0;
    fit.left = left;
  }
  fit.w_stream.resize(whole.out.features);
  fit.w_branch.resize(whole.out.features);
  fit_features(whole, fit);
  fit.left = left_of(made_by(whole, fit), whole.out);
  return fit;
}

const Site* in_layer(const Run& run, std::optional<int64_t> layer, Role role) {
  for (const Site& site : run.sites)
    if (site.role == role && site.layer == layer && site.compared()) return &site;
  return nullptr;
}

// The steps whose outputs make up what a norm reads.
struct NormSources {
  const Site *stream = nullptr, *branch = nullptr, *before = nullptr;
};

NormSources sources_of(const Run& run, const Site& site) {
  if (site.role == Role::mlp_norm) {
    const auto last = site.layer ? std::optional(*site.layer - 1) : std::nullopt;
    return {find_role(run, site, Role::attention_norm),
            find_role(run, site, Role::attention_output), in_layer(run, last, Role::block_output)};
  }
  std::optional<int64_t> last;
  for (const Site& other : run.sites)
    if (other.layer && (!site.layer || *other.layer < *site.layer))
      last = std::max(last.value_or(*other.layer), *other.layer);
  if (!last || (site.layer && *last + 1 != *site.layer)) return {};
  return {in_layer(run, last, Role::mlp_norm), in_layer(run, last, Role::mlp_output),
          in_layer(run, last, Role::block_output)};
}

std::optional<Matrix> read(const Run& run, const Site* site, View AlignedPair::*side) {
  if (!site) return std::nullopt;
  const TokenView tokens = by_tokens(site->views.*side, run.extent);
  Result<Matrix> matrix =
      read_matrix(site->views.*side, run.extent, 0,
                  std::min(kValuesMax, kTokensMax * tokens.batch * tokens.features));
  if (!matrix.ok()) return std::nullopt;
  return std::move(matrix).value();
}

bool same_shape(const Matrix& x, const Matrix& y) {
  return x.features == y.features && x.rows() == y.rows() && x.tokens == y.tokens;
}

double typical(const std::vector<double>& values) {
  return norm(values) / std::sqrt(static_cast<double>(std::max<std::size_t>(1, values.size())));
}

// The size of a token before the weight of the norm.
double size_of(std::span<const double> token, const std::vector<double>& weight) {
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const double value = token[i] / weight[i];
    if (std::isfinite(value)) sum += value * value, count += 1;
  }
  return count > 0 ? std::sqrt(sum / count) : 0;
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
  for (uint64_t row = 0; row < a.rows(); ++row) sizes.push_back(size_of(a.row(row), of_a.w_branch));
  const auto [least, most] = std::ranges::minmax(sizes);
  if (most - least > kSizesApart * most) return;
  for (uint64_t row = 0; row < made.rows(); ++row) {
    const double here = size_of(made.row(row), of_a.w_branch);
    if (here > 0)
      for (double& value : made.row(row)) value *= sizes[row] / here;
  }
}

// By which factors b's weights differ from a's, told by those of the stream or of the branch.
std::vector<double> weight_ratios(const std::vector<double>& b, const std::vector<double>& a) {
  const double middle = middle_ratio(b, a);
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
    for (uint64_t i = 0; i < own.features; ++i) own.row(row)[i] /= ratios[i];
  normalise_like(a.out, of_a, own);
  return own;
}

// What should have come out where b read the branch alone: with as much of the stream as in a.
Matrix with_stream_of_a(const NormParts& a, const NormFactors& of_a, const NormParts& b) {
  Matrix made = made_by(b, of_a);
  normalise_like(a.out, of_a, made);
  return made;
}

// The usual case, and the quick one: a's weights make b's output of b's inputs.
std::optional<NormReplay> by_weights_of_a(const NormParts& a, const NormFactors& of_a, NormParts& b,
                                          double roundoff) {
  NormReplay replay;
  replay.own = of_a.left;
  NormFactors of_b = of_a;
  fit_tokens(b, of_b);
  replay.branch_left = left_of(branch_part(b, of_b), b.out);
  replay.made = made_by(b, of_b);
  normalise_like(a.out, of_a, replay.made);
  replay.left = left_of(replay.made, b.out);
  const double noise = std::max(4 * replay.own, 16 * roundoff);
  if (replay.left > noise || replay.branch_left < std::max(kNoStream, noise)) return std::nullopt;
  replay.b = std::move(b.out);
  return replay;
}

std::optional<NormReplay> replayed(const NormParts& a, NormParts& b, double roundoff) {
  const double exact = 0.25 * roundoff;
  const NormFactors of_a = factors_of(a, exact);
  if (of_a.left > own_fit(roundoff)) return std::nullopt;
  // Both must show in a, or their weights are not known.
  const double branch_of_a = left_of(branch_part(a, of_a), a.out);
  if (branch_of_a < kShareMin || branch_of_a > 1 - kShareMin) return std::nullopt;
  if (std::optional<NormReplay> same = by_weights_of_a(a, of_a, b, roundoff)) return same;
  const NormFactors of_b = factors_of(b, exact);
  NormReplay replay;
  replay.own = of_a.left;
  replay.branch_made = branch_part(b, of_b);
  replay.branch_left = left_of(replay.branch_made, b.out);
  const double no_stream = std::max(kNoStream, 16 * roundoff);
  replay.alone = replay.branch_left < no_stream;
  // Where b's is a norm of its inputs, only its weights may be wrong. They show in the branch, and
  // in the stream, too, unless the norm before this one had others.
  const Matrix own = made_by(b, of_b);
  replay.told = of_b.left <= std::max(4 * of_a.left, 16 * roundoff);
  std::vector<Matrix> made;
  if (replay.alone) {
    made.push_back(with_stream_of_a(a, of_a, b));
  } else {
    made.push_back(with_weights_of_a(a, of_a, own, weight_ratios(of_b.w_branch, of_a.w_branch)));
    made.push_back(with_weights_of_a(a, of_a, own, weight_ratios(of_b.w_stream, of_a.w_stream)));
  }
  for (Matrix& each : made) {
    const double left = left_of(each, b.out);
    if (left < replay.left || replay.made.values.empty())
      replay.left = left, replay.made = std::move(each);
  }
  replay.b = std::move(b.out);
  return replay;
}

std::optional<NormReplay> by_norm_before(const Run& run, const Site& site,
                                         const NormSources& from) {
  NormParts parts[2];
  int at = 0;
  for (const auto side : {&AlignedPair::a, &AlignedPair::b}) {
    auto stream = read(run, from.stream, side), branch = read(run, from.branch, side);
    auto out = read(run, &site, side);
    if (!stream || !branch || !out || !same_shape(*stream, *out) || !same_shape(*branch, *out) ||
        out->rows() < kTokensMin)
      return std::nullopt;
    parts[at++] = {std::move(*stream), std::move(*branch), std::move(*out)};
  }
  std::optional<NormReplay> replay = replayed(parts[0], parts[1], site.roundoff);
  // A norm that is wrong in itself does not show the stream.
  if (replay && !replay->told && from.stream->created) return std::nullopt;
  return replay;
}

// From the stream itself, where it was dumped. `added`: what came to it since.
void by_stream(const Run& run, const Site& site, const Site* before, const Site* added,
               NormReplay& best) {
  Matrix x[2], out[2];
  int at = 0;
  for (const auto side : {&AlignedPair::a, &AlignedPair::b}) {
    auto stream = read(run, before, side), whole = read(run, &site, side);
    if (!stream || !whole || !same_shape(*stream, *whole) || whole->rows() < kTokensMin) return;
    if (added) {
      const auto branch = read(run, added, side);
      if (!branch || !same_shape(*branch, *whole)) return;
      for (std::size_t i = 0; i < branch->values.size(); ++i)
        stream->values[i] += branch->values[i];
    }
    x[at] = std::move(*stream);
    out[at++] = std::move(*whole);
  }
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
void by_branch(const Run& run, const Site& site, NormReplay& best) {
  const Site *branch = nullptr, *before = nullptr;
  for (const Site& other : run.sites) {
    if (&other == &site) break;
    if (!other.compared()) continue;
    if (other.role == Role::branch_norm) before = &other;
    const bool gives = other.role == Role::attention_output || other.role == Role::mlp_output;
    if (gives && other.layer == site.layer) branch = &other;
  }
  if (!branch) return;
  by_stream(run, site, branch, nullptr, best);
  by_stream(run, site, before, branch, best);
}

}  // namespace

std::optional<NormReplay> replay_norm(const Run& run, const Site& site) {
  if (!is_norm(site.role) || !site.compared()) return std::nullopt;
  if (site.role == Role::branch_norm) {
    NormReplay replay;
    by_branch(run, site, replay);
    return replay.own <= own_fit(site.roundoff) ? std::optional(std::move(replay)) : std::nullopt;
  }
  const NormSources from = sources_of(run, site);
  NormReplay exact;
  by_stream(run, site, from.before, nullptr, exact);
  if (site.role == Role::mlp_norm) by_stream(run, site, from.before, from.branch, exact);
  if (exact.own <= own_fit(site.roundoff)) return exact;
  return from.stream && from.branch ? by_norm_before(run, site, from) : std::nullopt;
}

}  // namespace tensordiff
