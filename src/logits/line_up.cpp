#include "logits/line_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "align/view.h"
#include "base/text.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTried = 16;  // Positions that decide how two lengths are lined up.
// Probability on words that the other side does not have. Padding gets none but for rounding.
constexpr double kPaddingMax = 1e-3;

TokenSequence part_of(TokenSequence sequence, uint64_t first, uint64_t count) {
  const auto cut = [&](auto& list) {
    if (list.size() < first + count) return;
    list.erase(list.begin() + static_cast<ptrdiff_t>(first + count), list.end());
    list.erase(list.begin(), list.begin() + static_cast<ptrdiff_t>(first));
  };
  if (sequence.logits) sequence.logits = narrowed(*sequence.logits, 0, first, count);
  cut(sequence.ids);
  cut(sequence.log_probs);
  cut(sequence.alternatives);
  cut(sequence.is_none);
  return sequence;
}

bool tell_ids(const std::vector<TokenSequence>& run) {
  return std::ranges::all_of(run, [](const TokenSequence& each) {
    return !each.ids.empty() && each.ids.size() == each.positions();
  });
}

// Pairs of sequences whose ids are the same, or of which one has the other's ids inside.
class ByIds {
 public:
  ByIds(std::vector<TokenSequence> a, std::vector<TokenSequence> b)
      : a_(std::move(a)), b_(std::move(b)), used_(b_.size()) {}

  LinedUp run() {
    std::multimap<std::vector<int64_t>, std::size_t> known;
    for (std::size_t i = 0; i < b_.size(); ++i) known.emplace(b_[i].ids, i);
    std::size_t moved = 0;
    for (std::size_t i = 0; i < a_.size(); ++i) {
      const auto [first, last] = known.equal_range(a_[i].ids);
      const auto found =
          std::find_if(first, last, [&](const auto& it) { return !used_[it.second]; });
      if (found == last) continue;
      used_[found->second] = true;
      taken_[i] = found->second;
      moved += found->second != i ? 1 : 0;
    }
    for (std::size_t i = 0; i < a_.size(); ++i)
      if (!taken_.contains(i)) look_inside(i);
    LinedUp lined;
    for (const auto& [i, j] : taken_) lined.pairs.push_back(cut(a_[i], b_[j]));
    if (moved > 0)
      lined.notes.push_back(
          fmt::format("{} of {} sequences stand in another order: paired by the "
                      "ids of their tokens",
                      moved, a_.size()));
    if (lined.pairs.size() < std::max(a_.size(), b_.size()))
      lined.notes.push_back(fmt::format("{} of {} sequences of A and {} of B have the same tokens",
                                        lined.pairs.size(), a_.size(), b_.size()));
    return lined;
  }

 private:
  // Where one list stands inside another one.
  static std::optional<uint64_t> inside(const std::vector<int64_t>& small,
                                        const std::vector<int64_t>& large) {
    const auto at = std::ranges::search(large, small);
    if (small.empty() || at.empty()) return std::nullopt;
    return static_cast<uint64_t>(at.begin() - large.begin());
  }

  void look_inside(std::size_t i) {
    for (std::size_t j = 0; j < b_.size(); ++j) {
      if (used_[j] || !(inside(a_[i].ids, b_[j].ids) || inside(b_[j].ids, a_[i].ids))) continue;
      used_[j] = true;
      taken_[i] = j;
      return;
    }
  }

  static SequencePair cut(const TokenSequence& a, const TokenSequence& b) {
    if (const auto at = inside(a.ids, b.ids)) return {a, part_of(b, *at, a.positions())};
    return {part_of(a, inside(b.ids, a.ids).value_or(0), b.positions()), b};
  }

  std::vector<TokenSequence> a_, b_;
  std::vector<bool> used_;
  std::map<std::size_t, std::size_t> taken_;
};

// How far apart some positions of two sequences are, for whoever has to choose.
double distance(const TokenSequence& a, const TokenSequence& b) {
  const uint64_t count = std::min(a.positions(), kTried);
  double sum = 0;
  if (!a.logits || !b.logits) {
    for (uint64_t i = 0; i < count; ++i) sum += std::abs(a.log_probs[i] - b.log_probs[i]);
    return sum;
  }
  const Result<Reader> x = Reader::open(*a.logits), y = Reader::open(*b.logits);
  if (!x.ok() || !y.ok()) return INFINITY;
  for (uint64_t i = 0; i < count; ++i) {
    const auto p = log_probs_at(x.value(), i), q = log_probs_at(y.value(), i);
    if (p && q) sum += divergence(*p, *q);
  }
  return sum;
}

class Fitting {
 public:
  // The positions that both have: the first or the last ones of the longer, as the values say.
  void same_positions(SequencePair& pair) {
    const uint64_t of_a = pair.a.positions(), of_b = pair.b.positions();
    if (of_a == of_b) return;
    TokenSequence& longer = of_a > of_b ? pair.a : pair.b;
    TokenSequence& shorter = of_a > of_b ? pair.b : pair.a;
    const uint64_t count = shorter.positions(), rest = longer.positions() - count;
    TokenSequence first = part_of(longer, 0, count), last = part_of(longer, rest, count);
    const bool at_end = distance(last, shorter) < distance(first, shorter);
    note(count == 1 && at_end
             ? fmt::format("{} has the last of {} positions only (last_token_only): compared with "
                           "that one",
                           of_a > of_b ? "B" : "A", longer.positions())
             : fmt::format("{} has {} positions, {} has {}: compared with its {} ones",
                           of_a > of_b ? "A" : "B", longer.positions(), of_a > of_b ? "B" : "A",
                           count, at_end ? "last" : "first"));
    longer = at_end ? std::move(last) : std::move(first);
  }

  // The words that both have.
  void same_words(SequencePair& pair, std::size_t index) {
    if (!pair.a.logits || !pair.b.logits) return;
    const uint64_t of_a = pair.a.logits->shape[1], of_b = pair.b.logits->shape[1];
    if (of_a == of_b) return;
    TokenSequence& longer = of_a > of_b ? pair.a : pair.b;
    const TokenSequence& shorter = of_a > of_b ? pair.b : pair.a;
    const char side = of_a > of_b ? 'A' : 'B';
    const uint64_t count = std::min(of_a, of_b), rest = std::max(of_a, of_b) - count;
    TokenSequence front = longer, back = longer;
    front.logits = narrowed(*longer.logits, 1, 0, count);
    back.logits = narrowed(*longer.logits, 1, rest, count);
    const bool in_front = distance(back, shorter) < distance(front, shorter);
    const double mass = probability(*longer.logits, in_front ? 0 : count, rest);
    if (in_front)
      find("vocabulary_shifted", index,
           fmt::format("{} has {} more words in front: all ids are off by {}", side, rest, rest),
           rest);
    else if (mass > kPaddingMax)
      find("vocabulary_padded", index,
           fmt::format("{} gives {} words beyond the vocabulary of the other side up to {:.3g} of "
                       "the probability: its padding is not masked",
                       side, rest, mass),
           rest);
    else
      note(fmt::format("{} has {} more words at the end (a padded vocabulary): left out", side,
                       rest));
    longer.logits = front.logits;
  }

  LinedUp take(std::vector<SequencePair> pairs) {
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      same_words(pairs[i], i);
      same_positions(pairs[i]);
    }
    lined_.pairs = std::move(pairs);
    return std::move(lined_);
  }

 private:
  void note(std::string text) {
    if (std::ranges::find(lined_.notes, text) == lined_.notes.end())
      lined_.notes.push_back(std::move(text));
  }

  void find(std::string code, std::size_t sequence, std::string text, uint64_t words) {
    if (std::ranges::find(lined_.findings, code, &Finding::code) != lined_.findings.end()) return;
    Finding finding;
    finding.code = std::move(code);
    finding.pair = sequence;
    finding.explanation = std::move(text);
    finding.parameters = {{"words", static_cast<double>(words)}};
    lined_.findings.push_back(std::move(finding));
  }

  // The most that some position gives these words.
  static double probability(const View& logits, uint64_t first, uint64_t count) {
    const Result<Reader> reader = Reader::open(logits);
    if (!reader.ok()) return 0;
    double most = 0;
    for (uint64_t i = 0; i < std::min(logits.shape[0], kTried); ++i) {
      const auto row = log_probs_at(reader.value(), i);
      double sum = 0;
      for (uint64_t word = first; row && word < first + count; ++word)
        sum += std::exp((*row)[word]);
      most = std::max(most, sum);
    }
    return most;
  }

  LinedUp lined_;
};

}  // namespace

Result<LinedUp> line_up(std::vector<TokenSequence> a, std::vector<TokenSequence> b) {
  const bool by_ids = tell_ids(a) && tell_ids(b);
  LinedUp by_tokens;
  std::vector<SequencePair> pairs;
  if (by_ids) by_tokens = ByIds(a, b).run();
  pairs = by_tokens.pairs;
  if (pairs.empty()) {
    if (by_ids) return Error("no sequence of A has the same tokens as one of B");
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      pairs.push_back({std::move(a[i]), std::move(b[i])});
    if (a.size() != b.size())
      by_tokens.notes.push_back(
          fmt::format("A has {} sequences, B has {}, without token ids: the first {} are compared",
                      a.size(), b.size(), pairs.size()));
  }
  for (const SequencePair& pair : pairs)
    if (pair.a.logits.has_value() != pair.b.logits.has_value())
      return Error("{} has logits of all words, {} has log-probabilities of single tokens only",
                   pair.a.logits ? "A" : "B", pair.a.logits ? "B" : "A");
  LinedUp lined = Fitting().take(std::move(pairs));
  lined.notes.insert(lined.notes.begin(), by_tokens.notes.begin(), by_tokens.notes.end());
  return lined;
}

}  // namespace tensordiff
