#include "diagnose/operators/routing.h"

#include <algorithm>
#include <cmath>

#include "diagnose/limits.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

// A gap between scores is off by about the error of what goes in, and of the gaps of some dozen
// experts one in ten is that small: ties turn in up to 15 times that share of tokens. The rest is
// for what few tokens there are.
constexpr double kTurnedByError = 60;
constexpr double kShareMax = 0.25;
// Of the experts of a token one is another, so that a part is as it was.
constexpr double kGapMax = 2;
constexpr double kCosineMin = 0.15;
constexpr double kNoFactor = 0.5;  // Of the gap, what one factor leaves at least.
constexpr double kPeakMax = 0.25;  // Of its energy, in one feature.
constexpr uint64_t kFeaturesMin = 8;
constexpr uint64_t kTokensMatched = 1024;  // Each is held against each.
constexpr double kGapMatched = 0.5;        // Of its size: what is farther off is another token.
constexpr std::size_t kRunMin = 3;  // So many next to each other, and no others, are a region.

// Whether a token looks as if it were put together from other experts.
bool took_another(std::span<const double> a, std::span<const double> b) {
  const double size_a = norm(a), size_b = norm(b), gap = distance(a, b);
  if (!std::isfinite(gap) || size_a == 0 || size_b == 0 || gap > kGapMax * size_a) return false;
  const double factor = factor_between(a, b);
  double rest = 0, peak = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    rest += (b[i] - factor * a[i]) * (b[i] - factor * a[i]);
    peak = std::max(peak, std::abs(b[i] - a[i]));
  }
  return factor * size_a / size_b >= kCosineMin && std::sqrt(rest) >= kNoFactor * gap &&
         peak * peak <= kPeakMax * gap * gap;
}

// Whether a token of b is another one of a: then it did not take another expert, but another's
// place.
bool changed_places(const Matrix& a, const Matrix& b, uint64_t row, double limit) {
  for (uint64_t other = 0; other < a.rows(); ++other)
    if (other != row && distance(a.row(other), b.row(row)) <= limit * norm(a.row(other)))
      return true;
  return false;
}

// How many tokens of a layer may take another expert.
double likely_turned(const Site& site, double tokens) {
  // One token may always turn where types are narrow.
  return std::max(std::min(kTurnedByError * site.error_in, kShareMax) * tokens,
                  site.roundoff > limits::kNarrow ? 1.0 : 0.0);
}

bool one_run(const std::vector<uint64_t>& tokens) {
  return tokens.size() >= kRunMin && tokens.back() - tokens.front() + 1 == tokens.size();
}

// How many tokens there are where a step has a row for each of several experts that a token is sent
// to, one expert after the other: its router has one for each token. Nothing for other steps.
std::optional<uint64_t> tokens_sent(const Run& run, const Site& site) {
  const Shape& shape = site.views.a.shape;
  if (shape.empty() || shape.size() > 2) return std::nullopt;
  for (const Site& other : run.sites) {
    if (&other == &site) break;
    const Shape& scores = other.views.a.shape;
    if (other.block != site.block || scores.size() != 2) continue;
    if (scores[0] < 2 || shape[0] <= scores[0]) continue;
    if (shape[0] % scores[0] == 0 && shape[0] / scores[0] <= scores[1]) return scores[0];
  }
  return std::nullopt;
}

}  // namespace

std::vector<uint64_t> rerouted_tokens(const Run& run, const Site& site, double limit) {
  // Where the MLP itself was not dumped, its tokens show in what the block gives.
  if (site.role != Role::mlp_output && site.role != Role::layer_output) return {};
  const Result<Matrix> of_a = read_matrix(site.views.a, run.extent);
  const Result<Matrix> of_b = read_matrix(site.views.b, run.extent);
  if (!of_a.ok() || !of_b.ok() || !same_form(of_a.value(), of_b.value())) return {};
  const Matrix &a = of_a.value(), &b = of_b.value();
  if (a.features < kFeaturesMin) return {};
  const double likely = likely_turned(site, static_cast<double>(a.rows()));
  std::vector<uint64_t> tokens;
  for (uint64_t row = 0; row < a.rows(); ++row) {
    if (distance(a.row(row), b.row(row)) <= limit * norm(a.row(row))) continue;
    if (!took_another(a.row(row), b.row(row)) || changed_places(a, b, row, limit)) return {};
    tokens.push_back(row);
  }
  const bool few = static_cast<double>(tokens.size()) <= likely;
  return few && !one_run(tokens) ? tokens : std::vector<uint64_t>();
}

std::vector<uint64_t> rechosen_rows(const Run& run, const Site& site) {
  const bool blurred = std::ranges::any_of(site.inputs, [&](std::size_t input) {
    const Diff& diff = run.sites[input].comparison.diff;
    return run.sites[input].compared() && 2 * diff.equal < diff.compared;
  });
  const Diff& diff = site.comparison.diff;
  if (!blurred || !site.compared() || site.is_lost() || 2 * diff.equal < diff.compared) return {};
  const Result<Matrix> of_a = read_matrix(site.views.a, run.extent);
  const Result<Matrix> of_b = read_matrix(site.views.b, run.extent);
  if (!of_a.ok() || !of_b.ok() || !same_form(of_a.value(), of_b.value()) || !of_a.value().whole)
    return {};
  std::vector<uint64_t> rows;
  for (uint64_t row = 0; row < of_a.value().rows(); ++row) {
    const auto x = of_a.value().row(row), y = of_b.value().row(row);
    if (std::ranges::equal(x, y)) continue;
    if (norm(y) == 0) return {};
    rows.push_back(row);
  }
  const bool few = static_cast<double>(rows.size()) <=
                   likely_turned(site, static_cast<double>(of_a.value().rows()));
  return few && !one_run(rows) ? rows : std::vector<uint64_t>();
}

bool is_shared_by_experts(const Site& site) {
  return site.a.place.expert < 0 && site.a.name.find(".experts.") != std::string::npos;
}

bool got_other_tokens(const Run& run, const Site& site) {
  const Shape &a = site.a.shape, &b = site.b.shape;
  const bool of_expert = site.a.place.expert >= 0 || is_shared_by_experts(site);
  if (!of_expert || site.comparison.status != Status::incomparable) return false;
  if (a.size() != 2 || b.size() != 2 || a[1] != b[1] || a[0] == b[0]) return false;
  // What the next step of that expert reads has as many.
  const auto follows = [&](std::size_t input) {
    const Site& from = run.sites[input];
    return from.comparison.status == Status::incomparable && !from.bug() &&
           from.a.shape.front() == a[0] && from.b.shape.front() == b[0];
  };
  if (std::ranges::any_of(site.inputs, follows)) return true;
  const auto tokens = static_cast<double>(run.extent.tokens * run.extent.batch);
  const auto moved = static_cast<double>(a[0] > b[0] ? a[0] - b[0] : b[0] - a[0]);
  return moved <= likely_turned(site, std::max(tokens, static_cast<double>(std::max(a[0], b[0]))));
}

std::optional<double> left_as_sets(const Run& run, const Site& site, double limit) {
  const bool of_expert = site.a.place.expert >= 0 || is_shared_by_experts(site);
  const std::optional<uint64_t> sent = of_expert ? std::nullopt : tokens_sent(run, site);
  if (!site.compared() || (!of_expert && !sent)) return std::nullopt;
  Result<Matrix> of_a = read_matrix(site.views.a, {}), of_b = read_matrix(site.views.b, {});
  if (!of_a.ok() || !of_b.ok() || !same_form(of_a.value(), of_b.value())) return std::nullopt;
  Matrix &a = of_a.value(), &b = of_b.value();
  if (site.views.a.shape.size() == 1)  // One number for each.
    for (Matrix* each : {&a, &b}) std::swap(each->tokens, each->features);
  if (a.rows() > kTokensMatched) return std::nullopt;
  std::vector<bool> taken(a.rows());
  double gaps = 0, sizes = 0, alone = 0;
  for (uint64_t row = 0; row < b.rows(); ++row) {
    double least = INFINITY;
    uint64_t nearest = 0;
    for (uint64_t other = 0; other < a.rows(); ++other) {
      const double gap = distance(a.row(other), b.row(row));
      if (!taken[other] && gap < least) least = gap, nearest = other;
    }
    const double size = norm(a.row(nearest));
    if (least > std::min(limit, kGapMatched) * size) {
      alone += 1;
      continue;
    }
    taken[nearest] = true;
    gaps += least * least, sizes += size * size;
  }
  const auto rows = static_cast<double>(a.rows());
  const auto tokens =
      sent ? static_cast<double>(*sent)
           : std::max(static_cast<double>(run.extent.tokens * run.extent.batch), rows);
  const double turned = likely_turned(site, tokens);
  // Of a token that takes another expert, all shares are others.
  if (sizes == 0 || alone > (sent ? rows / tokens : 1) * turned) return std::nullopt;
  if (sent && turned < 1) return std::nullopt;  // Nothing moved it.
  return std::sqrt(gaps / sizes);
}

}  // namespace tensordiff
