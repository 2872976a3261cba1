// What the pairs of a model show about its names: which word of A stands for which word of B.

#pragma once

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>
#include <vector>

#include "match/exchanged.h"
#include "match/matcher.h"
#include "match/name_features.h"

namespace tensordiff {

inline constexpr double kEvidenceMax = 4;  // Of layer, module, kind and leaf together.
inline constexpr double kMost = 0.5;       // No other block can have as many.

// How often a word of A stands for a word of B. Words are numbers from here on.
class Tally {
 public:
  void add(uint32_t a, uint32_t b, int count) {
    both_[key(a, b)] += count;
    of_a_[a] += count;
    of_b_[b] += count;
  }
  // From 0, where they never do or nothing is known, to 1, where they always do.
  double affinity(uint32_t a, uint32_t b) const {
    const auto found = both_.find(key(a, b));
    if (found == both_.end() || found->second <= 0) return 0;
    return found->second / static_cast<double>(std::max(of_a_.at(a), of_b_.at(b)));
  }

 private:
  static uint64_t key(uint32_t a, uint32_t b) { return uint64_t{a} << 32 | b; }

  std::unordered_map<uint64_t, int> both_;
  std::unordered_map<uint32_t, int> of_a_, of_b_;
};

// Whether both names say which parameter they are, and not the same: "weight" and "beta".
inline bool contradict(const Place& a, const Place& b) {
  return a.parameter != Param::none && b.parameter != Param::none && a.parameter != b.parameter;
}

// The map of names that the pairs show.
class NameMap {
 public:
  explicit NameMap(const MatchInput& input)
      : a_(words_of(with_first_numbers(names_of(input.a).names))),
        b_(words_of(with_first_numbers(names_of(input.b).names))),
        places_a_(input.side_a.places),
        places_b_(input.side_b.places) {}

  void add(const Pair& pair, int count) {
    const Words &a = a_[pair.a], &b = b_[pair.b];
    for (std::size_t i = 0; i < kFeatures; ++i) {
      // Of what is fused or cut only the layer is kept.
      const bool whole = !pair.section_a && !pair.section_b;
      if (pair.tied || a[i] == 0 || b[i] == 0 || (!whole && i != kContainer)) continue;
      tallies_[i].add(a[i], b[i], count);
    }
  }
  double score(std::size_t a, std::size_t b) const {
    if (contradict(places_a_[a], places_b_[b])) return kContradiction;
    const auto of = [&](Feature feature) {
      return tallies_[feature].affinity(a_[a][feature], b_[b][feature]);
    };
    return of(kContainer) + of(kModule) + std::max(of(kKind), of(kNear)) + of(kLeaf);
  }
  uint64_t modules(const Pair& pair) const {
    return uint64_t{a_[pair.a][kModule]} << 32 | b_[pair.b][kModule];
  }
  uint64_t containers(const Pair& pair) const {
    return uint64_t{a_[pair.a][kContainer]} << 32 | b_[pair.b][kContainer];
  }
  uint32_t module_of_a(std::size_t a) const { return a_[a][kModule]; }
  uint32_t module_of_b(std::size_t b) const { return b_[b][kModule]; }
  uint32_t block_of_a(std::size_t a) const { return a_[a][kContainer]; }
  uint32_t block_of_b(std::size_t b) const { return b_[b][kContainer]; }
  std::pair<uint32_t, uint32_t> blocks(const Pair& pair) const {
    return {block_of_a(pair.a), block_of_b(pair.b)};
  }
  // Whether most tensors of the one block are paired with those of the other.
  bool is_one_block(const Pair& pair) const {
    const auto [a, b] = blocks(pair);
    return a != 0 && b != 0 && tallies_[kContainer].affinity(a, b) > kMost;
  }
  bool same_leaves(const Pair& x, const Pair& y) const {
    return a_[x.a][kLeaf] == a_[y.a][kLeaf] && b_[x.b][kLeaf] == b_[y.b][kLeaf];
  }

 private:
  // What both names say outright outweighs all that others show.
  static constexpr double kContradiction = -kEvidenceMax;

  std::vector<Words> a_, b_;
  const std::vector<Place>&places_a_, &places_b_;
  std::array<Tally, kFeatures> tallies_;
};

}  // namespace tensordiff
