// Reads the elements of a View, in any layout, in pieces.
//
// A Reader opens the byte sources of a view once and then gives elements by their row-major
// position in the view's shape. Contiguous elements are handed out in place; others are gathered
// into a buffer of the caller's. Reading needs no lock: many threads may share one Reader.

#pragma once

#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace tensordiff {

class Reader {
 public:
  static Result<Reader> open(const View& view);

  const View& view() const { return view_; }

  // Elements [first, first + count) as stored, in this machine's byte order: a pointer into the
  // source when they lie there so, else into `buffer`, which is made large enough.
  const std::byte* raw(uint64_t first, std::size_t count, std::vector<std::byte>& buffer) const;

  // `count` elements of a part, `step` apart, from the one at `element` of its source on.
  void copy_run(std::size_t part, uint64_t element, int64_t step, std::size_t count,
                std::byte* out) const;

  // Where the elements of a view of one part start in their source (before its offset).
  const std::byte* data() const { return bytes_[0].view.data(); }

  // The same as float64: `count` values, of complex elements the real part.
  void values(uint64_t first, std::size_t count, double* out) const;

  // The same, but a complex element gives two values: `out` has room for 2 * count then.
  void components(uint64_t first, std::size_t count, double* out) const;

  // The element at one row-major position as float64 (the real part of a complex one).
  double value(uint64_t position) const;

  // False once a mapped file below was found cut short: what was read then is not to be trusted.
  bool intact() const;

 private:
  void gather(uint64_t first, std::size_t count, std::byte* out) const;
  void gather_run(std::span<const uint64_t> index, std::size_t count, std::byte* out) const;
  void add_terms(uint64_t first, std::size_t count, std::byte* out) const;

  View view_;
  std::vector<Bytes> bytes_;                 // One for each part.
  std::vector<std::vector<Reader>> inputs_;  // For each part: what it is decoded from, if it is.
  std::vector<Reader> terms_;  // Of a sum: one for each summand; bytes_ is empty then.
  bool in_place_ = false;      // Contiguous and in our byte order.
};

}  // namespace tensordiff
