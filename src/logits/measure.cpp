#include "logits/measure.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "tensor/reader.h"
#include "tensor/stored.h"

namespace tensordiff {
namespace {

Estimate estimate_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  const auto count = static_cast<double>(values.size());
  Estimate estimate{sum / count, 0};
  double spread = 0;
  for (const double value : values) spread += (value - estimate.mean) * (value - estimate.mean);
  if (values.size() > 1) estimate.error = std::sqrt(spread / (count - 1) / count);
  return estimate;
}

Percentiles percentiles_of(std::vector<double> values) {
  std::ranges::sort(values);
  Percentiles shares = {};
  for (std::size_t i = 0; i < std::size(kShares); ++i) {
    const double at = kShares[i] * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    const double part = at - static_cast<double>(below);
    // Infinite values stay so; a weighted mean of two of them would not be a number.
    shares[i] = part == 0 || values[below] == values[above]
                    ? values[below]
                    : values[below] * (1 - part) + values[above] * part;
  }
  return shares;
}

// A single log-probability tells the divergence only in the mean, and only if the token was drawn
// from B: r − 1 − log r with r = p_A / p_B is never negative and has the right mean.
double estimated_divergence(double log_prob_a, double log_prob_b) {
  const double gap = log_prob_a - log_prob_b;
  return std::max(std::expm1(gap) - gap, 0.0);
}

PositionDiff compare_tokens(const TokenSequence& a, const TokenSequence& b, uint64_t i) {
  PositionDiff diff;
  diff.log_prob_a = a.log_probs[i];
  diff.log_prob_b = b.log_probs[i];
  diff.told = true;
  diff.usable = std::isfinite(diff.log_prob_a) && std::isfinite(diff.log_prob_b);
  diff.kl = estimated_divergence(diff.log_prob_a, diff.log_prob_b);
  if (i >= a.alternatives.size() || i >= b.alternatives.size()) return diff;
  const std::vector<Alternative>&x = a.alternatives[i], &y = b.alternatives[i];
  if (x.size() < 2 || y.size() < 2) return diff;
  diff.top_a = x[0].id;
  diff.top_b = y[0].id;
  diff.same_top = diff.top_a == diff.top_b;
  diff.margin_a = x[0].log_prob - x[1].log_prob;
  diff.margin_b = y[0].log_prob - y[1].log_prob;
  return diff;
}

bool is_none(const TokenSequence& sequence, uint64_t i) {
  return i < sequence.is_none.size() && sequence.is_none[i];
}

// All positions of one pair of sequences.
struct Measured {
  std::vector<PositionDiff> positions;
  bool equal = true;
  bool tops = false;  // Most likely tokens are known.
};

Result<Measured> measure_logits(const SequencePair& pair) {
  const Reader a = TRY(Reader::open(*pair.a.logits));
  const Reader b = TRY(Reader::open(*pair.b.logits));
  Measured measured;
  measured.positions.resize(pair.a.positions());
  measured.tops = true;
  std::vector<char> equal(measured.positions.size(), 1);
  for_each_index(measured.positions.size(), [&](std::size_t i) {
    const auto x = log_probs_at(a, i), y = log_probs_at(b, i);
    equal[i] = x == y ? 1 : 0;
    if (!x || !y || is_none(pair.a, i) || is_none(pair.b, i)) return;
    const std::vector<int64_t>& ids = pair.a.ids.empty() ? pair.b.ids : pair.a.ids;
    measured.positions[i] =
        compare_position(*x, *y, i < ids.size() ? std::optional(ids[i]) : std::nullopt);
  });
  if (called_off()) return Error("cancelled");
  if (!a.intact()) return Error("A: {}", damage_of(a.view()));
  if (!b.intact()) return Error("B: {}", damage_of(b.view()));
  measured.equal = std::ranges::find(equal, 0) == equal.end();
  return measured;
}

Measured measure_tokens(const SequencePair& pair) {
  Measured measured;
  for (uint64_t i = 0; i < pair.a.positions(); ++i) {
    if (is_none(pair.a, i) || is_none(pair.b, i)) {
      measured.positions.emplace_back();
      continue;
    }
    measured.positions.push_back(compare_tokens(pair.a, pair.b, i));
    measured.equal &= pair.a.log_probs[i] == pair.b.log_probs[i];
    measured.tops |= measured.positions.back().top_a != -1;
  }
  return measured;
}

// What is gathered over all sequences before it is summed up.
struct Gathered {
  std::vector<double> kl, delta_p, gap, same, overlap[2], nll_a, nll_b;
};

void gather(const PositionDiff& at, bool with_words, bool with_tops, Gathered& all) {
  all.kl.push_back(at.kl);
  all.delta_p.push_back(std::exp(at.log_prob_b) - std::exp(at.log_prob_a));
  all.gap.push_back(std::exp(std::abs(at.log_prob_b - at.log_prob_a)));
  if (at.told) {
    all.nll_a.push_back(-at.log_prob_a);
    all.nll_b.push_back(-at.log_prob_b);
  }
  if (with_tops && at.top_a != -1) all.same.push_back(at.same_top ? 1 : 0);
  for (std::size_t k = 0; with_words && k < 2; ++k) all.overlap[k].push_back(at.overlap[k]);
}

void sum_up(const Gathered& all, LogitsDiff& diff) {
  if (all.kl.empty()) return;
  diff.kl = estimate_of(all.kl);
  diff.kl_shares = percentiles_of(all.kl);
  diff.kl_max = *std::ranges::max_element(all.kl);
  diff.delta_p = percentiles_of(all.delta_p);
  diff.delta_p_mean = estimate_of(all.delta_p);
  double squares = 0;
  for (const double each : all.delta_p) squares += each * each;
  diff.delta_p_rms = std::sqrt(squares / static_cast<double>(all.delta_p.size()));
  diff.ratio_error = estimate_of(all.gap).mean;
  if (!all.same.empty()) diff.same_top = estimate_of(all.same);
  if (!all.overlap[0].empty())
    diff.overlap = {estimate_of(all.overlap[0]).mean, estimate_of(all.overlap[1]).mean};
  if (all.nll_a.empty()) return;
  diff.told = true;
  diff.perplexity_a = std::exp(estimate_of(all.nll_a).mean);
  diff.perplexity_b = std::exp(estimate_of(all.nll_b).mean);
  std::vector<double> gaps;
  for (std::size_t i = 0; i < all.nll_a.size(); ++i) gaps.push_back(all.nll_b[i] - all.nll_a[i]);
  const Estimate gap = estimate_of(gaps);
  // The error of a logarithm is the relative error of the ratio.
  diff.perplexity_ratio = {std::exp(gap.mean), std::exp(gap.mean) * gap.error};
}

}  // namespace

std::optional<std::vector<double>> log_probs_at(const Reader& logits, uint64_t position) {
  std::vector<double> row(logits.view().shape[1]);
  logits.values(position * row.size(), row.size(), row.data());
  if (!to_log_probs(row)) return std::nullopt;
  return row;
}

Result<LogitsDiff> measure(const std::vector<SequencePair>& pairs) {
  LogitsDiff diff;
  Gathered all;
  for (std::size_t s = 0; s < pairs.size(); ++s) {
    const SequencePair& pair = pairs[s];
    const bool with_words = pair.a.logits && pair.b.logits;
    const Measured measured = with_words ? TRY(measure_logits(pair)) : measure_tokens(pair);
    if (with_words) diff.vocabulary = pair.a.logits->shape[1];
    diff.equal &= measured.equal;
    const std::size_t before = all.gap.size();
    for (uint64_t i = 0; i < measured.positions.size(); ++i) {
      const PositionDiff& at = measured.positions[i];
      if (is_none(pair.a, i) || is_none(pair.b, i)) continue;
      if (!at.usable) {
        ++diff.unusable;
        continue;
      }
      ++diff.positions;
      gather(at, with_words, measured.tops, all);
      diff.points.push_back({s, i, at.kl, std::exp(at.log_prob_b) - std::exp(at.log_prob_a)});
      if (!diff.first_other && measured.tops && at.top_a != -1 && !at.same_top)
        diff.first_other = {s, i, at.top_a, at.top_b, at.margin_a, at.margin_b};
    }
    const std::vector<double> own(all.gap.begin() + static_cast<ptrdiff_t>(before), all.gap.end());
    diff.ratio_errors.push_back(own.empty() ? 1 : estimate_of(own).mean);
  }
  sum_up(all, diff);
  return diff;
}

}  // namespace tensordiff
