#include "logits/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/text.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr uint64_t kValuesMax = 1 << 22;  // Logits held in memory for each side: 32 MiB.
constexpr int kShiftMax = 3;              // Positions: a wrong offset of labels is 1, rarely 2.
constexpr uint64_t kPositionsMin = 4;     // Fewer agree by chance with anything.
// A cause has to explain nine tenths; of a difference that would pass for rounding all but 1 %.
constexpr double kLeft = 0.1, kLeftOfLittle = 0.01;

using Row = std::vector<double>;

// Some positions of one pair of sequences, one after the other, as log-probabilities.
struct Rows {
  std::size_t sequence = 0;
  std::vector<Row> a, b;
  std::vector<double> shifts;  // What A and B were off by before they were made log-probabilities.
  double raw = 0;              // The largest logit.
  uint64_t masked = 0;         // Positions at the front where B says nothing.
};

bool says_nothing(const Row& row) {
  const auto [least, most] = std::ranges::minmax(row);
  return most - least == 0;
}

Result<Rows> rows_of(const std::vector<SequencePair>& pairs) {
  Rows rows;
  for (std::size_t s = 0; s < pairs.size(); ++s)
    if (pairs[s].a.positions() > pairs[rows.sequence].a.positions()) rows.sequence = s;
  const SequencePair& pair = pairs[rows.sequence];
  const Reader a = TRY(Reader::open(*pair.a.logits)), b = TRY(Reader::open(*pair.b.logits));
  const uint64_t words = pair.a.logits->shape[1];
  const uint64_t count = std::min(pair.a.positions(), std::max(kValuesMax / words, uint64_t{8}));
  bool leading = true;
  for (uint64_t i = 0; i < count; ++i) {
    Row x(words), y(words);
    a.values(i * words, words, x.data());
    b.values(i * words, words, y.data());
    const double raw_a = x[0], raw_b = y[0];
    const bool usable_a = to_log_probs(x), usable_b = to_log_probs(y);
    leading &= usable_a && !says_nothing(x) && (!usable_b || says_nothing(y));
    if (leading) ++rows.masked;
    if (!usable_a || !usable_b) continue;
    rows.shifts.push_back((raw_b - y[0]) - (raw_a - x[0]));
    rows.raw = std::max(rows.raw, std::abs(raw_a));
    rows.a.push_back(std::move(x));
    rows.b.push_back(std::move(y));
  }
  return rows;
}

double mean_divergence(const std::vector<Row>& a, const std::vector<Row>& b, std::size_t from_a,
                       std::size_t from_b, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += divergence(a[from_a + i], b[from_b + i]);
  return count == 0 ? INFINITY : sum / static_cast<double>(count);
}

double centred_product(const Row& x, const Row& y) {
  double sum_x = 0, sum_y = 0, product = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) continue;
    sum_x += x[i];
    sum_y += y[i];
    product += x[i] * y[i];
  }
  return product - sum_x * sum_y / static_cast<double>(x.size());
}

Row scaled(Row row, double factor) {
  for (double& value : row) value *= factor;
  to_log_probs(row);
  return row;
}

// The words that are not far below the most likely one on either side: llama.cpp's files hold no
// more than 16 nats, and what is below 12 has a probability under 1e-5.
std::pair<Row, Row> likely_words(const Row& a, const Row& b) {
  constexpr double kFar = 12;
  const double least_a = std::ranges::max(a) - kFar, least_b = std::ranges::max(b) - kFar;
  std::pair<Row, Row> likely;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
    if (a[i] > least_a && b[i] > least_b) {
      likely.first.push_back(a[i]);
      likely.second.push_back(b[i]);
    }
  return likely.first.size() > 1 ? std::move(likely) : std::pair(a, b);
}

struct Candidate {
  Finding finding;
  double left = INFINITY;  // Mean divergence that stays.
};

Candidate candidate(std::string code, std::string text, std::vector<Parameter> parameters,
                    double left) {
  Finding finding;
  finding.code = std::move(code);
  finding.explanation = std::move(text);
  finding.parameters = std::move(parameters);
  return {std::move(finding), left};
}

// B's logits are A's times a factor, the same one for all positions or one for each.
void add_scales(const Rows& rows, std::vector<Candidate>& candidates) {
  double product = 0, square = 0;
  std::vector<double> factors;
  for (std::size_t i = 0; i < rows.a.size(); ++i) {
    const auto [x, y] = likely_words(rows.a[i], rows.b[i]);
    const double xy = centred_product(x, y);
    const double xx = centred_product(x, x);
    product += xy;
    square += xx;
    factors.push_back(xx > 0 ? xy / xx : 1);
  }
  const double factor = square > 0 ? product / square : 1;
  if (!(factor > 0)) return;
  double left = 0, left_each = 0;
  for (std::size_t i = 0; i < rows.a.size(); ++i) {
    left += divergence(scaled(rows.a[i], factor), rows.b[i]);
    left_each += divergence(scaled(rows.a[i], factors[i]), rows.b[i]);
  }
  const auto count = static_cast<double>(rows.a.size());
  candidates.push_back(
      candidate("temperature",
                fmt::format("B's logits are A's divided by {}: another temperature",
                            human_number(1 / factor)),
                {{"temperature", 1 / factor}}, left / count));
  const auto [least, most] = std::ranges::minmax(factors);
  // One factor is the simpler explanation where it is nearly as good. What a norm divides by is
  // positive, and of one size from position to position.
  constexpr double kSpreadMax = 1e3;
  if (rows.a.size() >= kPositionsMin && left_each < kLeft * left && least * kSpreadMax > most)
    candidates.push_back(candidate(
        "final_norm_missing",
        fmt::format("B's logits are A's times a factor that changes from position to position ({} "
                    "to {}): the norm before the output layer is missing on one side",
                    human_number(least), human_number(most)),
        {{"factor_min", least}, {"factor_max", most}}, left_each / count));
}

void add_shifts(const Rows& rows, std::vector<Candidate>& candidates) {
  const auto count = static_cast<int>(rows.a.size());
  for (int shift = -kShiftMax; shift <= kShiftMax; ++shift) {
    const int common = count - std::abs(shift);
    if (shift == 0 || common < static_cast<int>(kPositionsMin)) continue;
    const auto from_a = static_cast<std::size_t>(std::max(-shift, 0));
    const auto from_b = static_cast<std::size_t>(std::max(shift, 0));
    candidates.push_back(candidate(
        "token_shift",
        fmt::format("B's position t holds what A has at t {} {}: off by {}", shift > 0 ? "−" : "+",
                    std::abs(shift), std::abs(shift) == 1 ? "one token" : "some tokens"),
        {{"shift", static_cast<double>(shift)}},
        mean_divergence(rows.a, rows.b, from_a, from_b, static_cast<std::size_t>(common))));
  }
}

// Words in the order of a weighted sum over positions, which another order of words leaves alone.
std::vector<std::size_t> words_by_sum(const std::vector<Row>& rows) {
  Row sums(rows[0].size());
  double weight = 0.37;
  for (const Row& row : rows) {
    weight = std::fmod(weight + 0.6180339887, 1.0);  // The golden section: no two alike.
    for (std::size_t i = 0; i < row.size(); ++i)
      sums[i] += (weight - 0.5) * std::max(row[i], -50.0);
  }
  std::vector<std::size_t> order(sums.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return sums[i]; });
  return order;
}

void add_permutation(const Rows& rows, std::vector<Candidate>& candidates) {
  if (rows.a.size() < kPositionsMin) return;
  const std::vector<std::size_t> in_a = words_by_sum(rows.a), in_b = words_by_sum(rows.b);
  std::vector<std::size_t> word_of(in_a.size());  // Of A, for each of B.
  std::size_t moved = 0;
  for (std::size_t i = 0; i < in_a.size(); ++i) {
    word_of[in_b[i]] = in_a[i];
    moved += in_a[i] != in_b[i] ? 1 : 0;
  }
  double left = 0;
  Row turned(word_of.size());
  for (std::size_t i = 0; i < rows.a.size(); ++i) {
    for (std::size_t word = 0; word < turned.size(); ++word)
      turned[word] = rows.a[i][word_of[word]];
    left += divergence(turned, rows.b[i]);
  }
  candidates.push_back(candidate(
      "vocabulary_permuted",
      fmt::format("{} words stand at other ids in B: another order of the vocabulary",
                  human_count(moved)),
      {{"words", static_cast<double>(moved)}}, left / static_cast<double>(rows.a.size())));
}

void add_mask(const Rows& rows, const LogitsDiff& diff, std::vector<Candidate>& candidates) {
  if (rows.masked == 0) return;
  double rest = 0, count = 0;
  for (const PositionPoint& point : diff.points) {
    if (point.position < rows.masked) continue;
    rest += point.kl;
    ++count;
  }
  candidates.push_back(candidate(
      "masked_prompt",
      fmt::format("B has no values at the first {} positions of a sequence: its prompt is masked",
                  rows.masked),
      {{"positions", static_cast<double>(rows.masked)}}, count > 0 ? rest / count : INFINITY));
}

std::optional<Finding> softmax_shift(const Rows& rows) {
  double most = 0;
  for (const double shift : rows.shifts) most = std::max(most, std::abs(shift));
  double rest = 0;  // How far the log-probabilities are apart.
  for (std::size_t i = 0; i < rows.a.size(); ++i)
    for (std::size_t word = 0; word < rows.a[i].size(); ++word) {
      const double gap = std::abs(rows.b[i][word] - rows.a[i][word]);
      if (std::isfinite(gap)) rest = std::max(rest, gap);
    }
  // Rounding moves the sum over all words about as much as it moves a word.
  if (!(most > 10 * rest && most > 1e-4 * std::max(rows.raw, 1.0))) return std::nullopt;
  Finding finding;
  finding.code = "softmax_shift";
  finding.pair = rows.sequence;
  finding.convention = true;
  finding.explanation = fmt::format(
      "a constant for each position, up to {}, is added to all logits: softmax does not see it",
      human_number(most));
  finding.parameters = {{"shift_max", most}};
  return finding;
}

// Log-probabilities of single tokens: a shift, zeros, or a factor between alternatives.
void add_for_tokens(const std::vector<SequencePair>& pairs, std::vector<Candidate>& candidates) {
  const auto left_at = [&](int shift) {
    double sum = 0, count = 0;
    for (const SequencePair& pair : pairs)
      for (std::size_t i = 0; i < pair.b.log_probs.size(); ++i) {
        const auto at = static_cast<int64_t>(i) - shift;
        if (at < 0 || at >= static_cast<int64_t>(pair.a.log_probs.size())) continue;
        const double gap = pair.a.log_probs[static_cast<std::size_t>(at)] - pair.b.log_probs[i];
        sum += gap * gap;
        ++count;
      }
    return count >= static_cast<double>(kPositionsMin) ? sum / count : INFINITY;
  };
  const double before = left_at(0);
  for (int shift = -kShiftMax; shift <= kShiftMax; ++shift)
    if (shift != 0)
      candidates.push_back(
          candidate("token_shift",
                    fmt::format("B's log-probability t is that of A's token t {} {}: off by {}",
                                shift > 0 ? "−" : "+", std::abs(shift),
                                std::abs(shift) == 1 ? "one token" : "some tokens"),
                    {{"shift", static_cast<double>(shift)}}, left_at(shift) / before));
  // What a temperature does to single log-probabilities cannot be told; to their differences it
  // can.
  double xy = 0, xx = 0, yy = 0;
  for (const SequencePair& pair : pairs)
    for (std::size_t i = 0; i < pair.a.alternatives.size() && i < pair.b.alternatives.size(); ++i) {
      const std::vector<Alternative>&x = pair.a.alternatives[i], &y = pair.b.alternatives[i];
      if (x.size() < 2 || y.size() < 2 || x[0].id != y[0].id || x[1].id != y[1].id) continue;
      const double gap_a = x[0].log_prob - x[1].log_prob, gap_b = y[0].log_prob - y[1].log_prob;
      xy += gap_a * gap_b;
      xx += gap_a * gap_a;
      yy += (gap_b - gap_a) * (gap_b - gap_a);
    }
  if (xx > 0 && xy > 0 && yy > 0) {
    const double factor = xy / xx;
    // Σ(y − f x)² over Σ(y − x)², by the sums alone.
    const double sum_y2 = yy + 2 * xy - xx;
    candidates.push_back(candidate(
        "temperature",
        fmt::format("gaps between alternatives in B are those of A divided by {}: another "
                    "temperature",
                    human_number(1 / factor)),
        {{"temperature", 1 / factor}}, std::max(sum_y2 - factor * xy, 0.0) / yy));
  }
}

}  // namespace

std::vector<Finding> causes_of(const std::vector<SequencePair>& pairs, const LogitsDiff& diff) {
  std::vector<Finding> findings;
  if (pairs.empty() || (diff.positions == 0 && diff.unusable == 0)) return findings;
  std::vector<Candidate> candidates;
  double before = 1;
  std::size_t sequence = 0;
  const bool with_words = pairs[0].a.logits && pairs[0].b.logits;
  if (with_words) {
    const Result<Rows> rows = rows_of(pairs);
    if (!rows.ok()) return findings;
    sequence = rows.value().sequence;
    before = mean_divergence(rows.value().a, rows.value().b, 0, 0, rows.value().a.size());
    // Where the distributions differ as well, the shift explains nothing.
    if (const auto shift = softmax_shift(rows.value()); shift && diff.ratio_error <= kRatioErrorMax)
      findings.push_back(*shift);
    add_scales(rows.value(), candidates);
    add_shifts(rows.value(), candidates);
    add_permutation(rows.value(), candidates);
    add_mask(rows.value(), diff, candidates);
  } else {
    add_for_tokens(pairs, candidates);
  }
  if (diff.equal || candidates.empty()) return findings;
  Candidate& best = *std::ranges::min_element(candidates, {}, &Candidate::left);
  const bool masked = best.finding.code == "masked_prompt";
  const double most =
      (diff.ratio_error > kRatioErrorMax || masked ? kLeft : kLeftOfLittle) * before;
  if (!(best.left <= most)) return findings;
  best.finding.pair = sequence;
  best.finding.residual_before = before;
  best.finding.residual_after = best.left;
  findings.push_back(std::move(best.finding));
  return findings;
}

}  // namespace tensordiff
