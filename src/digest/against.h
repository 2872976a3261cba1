// Holds a model against the digest of another one: which weights it has, and which not yet.

#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "digest/digest.h"
#include "pipeline.h"

namespace tensordiff {

enum class Freshness : uint8_t {
  same,     // The same values.
  stale,    // The values that an earlier digest has.
  changed,  // Other values.
  missing,  // Only the digest has it.
  extra,    // Only the model has it.
  unknown,  // Cannot be told from a hash.
};
inline constexpr std::size_t kFreshnesses = 6;
std::string_view name_of(Freshness freshness);

struct TensorState {
  Freshness state = Freshness::unknown;
  std::string a, b;  // Names; empty: that side has none. Of several parts in B, the first.
  Stats stats_a, stats_b;
  std::string note;  // Why it is unknown, or how the layouts differ.
};

struct DigestComparison {
  std::string a, b;  // Names of the models.
  std::vector<TensorState> tensors;
  std::vector<std::string> notes;

  std::array<std::size_t, kFreshnesses> counts() const;
  bool same() const;  // Whether B has what the digest says, all of it and nothing else.
};

// `earlier` is a digest of A from before; may be none. The request says how tensors are paired.
Result<DigestComparison> compare_digest(const Digest& a, Catalog b, const Digest* earlier,
                                        Request request);

// For people, and as JSON.
std::string digest_text(const DigestComparison& comparison, bool verbose);
std::string digest_json(const DigestComparison& comparison);

}  // namespace tensordiff
