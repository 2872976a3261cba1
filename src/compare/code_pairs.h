// Pairs of one type of 8 bits or less, measured by what pairs of codes there are.
//
// Such a type has at most 256 values. How often each pair of codes occurs in a block tells every
// sum, count and maximum of it: a few thousand terms instead of 65,536. Positions are looked for
// where a maximum is a new one.

#pragma once

#include <array>

#include "compare/kernels/code_counts.h"
#include "compare/kernels/tile.h"
#include "tensor/dtype.h"

namespace tensordiff {

class CodePairs {
 public:
  // Whether elements of this type are codes of one byte once they are read.
  static bool are_codes(DType dtype) { return item_bytes(dtype) == 1 && !is_in_blocks(dtype); }

  CodePairs(DType dtype, Threshold limit);

  // At most kernels::CodeCounts::kCountedMax pairs. Positions count from the first of them.
  Sums measure(const std::byte* a, const std::byte* b, std::size_t count,
               const kernels::Best& best) const;

  // Whether some pair of numbers may be beyond tolerance, by how far codes are apart; true may be
  // wrong.
  bool may_exceed(const std::byte* a, const std::byte* b, std::size_t count) const;

 private:
  using Pairs = std::span<const kernels::CodePair>;
  using PerCode = std::array<double, 256>;

  bool is_finite(const kernels::CodePair& pair) const;
  double distance(uint8_t a, uint8_t b) const;
  Moments moments(const std::array<uint64_t, 256>& counts) const;
  void add_sides(Pairs pairs, Sums& sums) const;
  void add_products(Pairs pairs, Sums& sums) const;
  void add_distances(Pairs pairs, Sums& sums) const;
  void add_positions(const uint8_t* a, const uint8_t* b, std::size_t count, Sums& sums) const;

  Threshold limit_;
  kernels::CodeOrder order_;
  bool steps_;          // Distances are counted in steps of the type.
  PerCode value_;       // Of each code.
  PerCode tolerated_;   // How far a pair with this A may be apart.
  PerCode reciprocal_;  // 1 / (|a| + 1e-8)
  std::array<int, 256> rank_;
  int apart_min_ = 256;  // Codes that a pair beyond tolerance is apart, at least.
};

}  // namespace tensordiff
