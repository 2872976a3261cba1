// In which order, and in which blocks, a pair is walked.
//
// Two views that lie in row-major order are walked flat, block by block, in place. Where one is
// transposed, a flat walk would touch a new cache line for every element; there the pair is walked
// in boxes that are short along the fastest axis of a and along that of b, and each side is
// gathered along its own. Blocks depend on the views alone, never on threads.

#pragma once

#include <vector>

#include "tensor/reader.h"

namespace tensordiff {

class Traversal {
 public:
  // The readers must outlive it; both views have one shape.
  Traversal(const Reader& a, const Reader& b);

  uint64_t blocks() const { return blocks_; }
  // Whether positions within and across blocks come in row-major order.
  bool flat() const { return axes_.empty(); }

  // What one block holds: the elements of each side in the same order, in place or in a buffer.
  struct Block {
    std::size_t count = 0;
    const std::byte* a = nullptr;
    const std::byte* b = nullptr;
  };
  Block fetch(uint64_t block, std::vector<std::byte>& buffer_a,
              std::vector<std::byte>& buffer_b) const;

  // The row-major position of an element of a block.
  uint64_t position(uint64_t block, std::size_t at) const;

 private:
  // One axis of the walk, outermost first.
  struct Axis {
    uint64_t size;
    int64_t stride_a;
    int64_t stride_b;
    uint64_t step;    // How far row-major positions lie apart along it.
    uint64_t extent;  // Of a box.
  };
  struct Box {
    std::vector<uint64_t> origin;
    std::vector<uint64_t> shape;
    std::size_t count = 1;
  };

  static std::vector<Axis> merged_axes(const View& a, const View& b);
  void plan(std::vector<Axis> axes);
  Box box(uint64_t block) const;
  void gather(const Reader& reader, const Box& box, int64_t Axis::*stride,
              std::vector<std::byte>& buffer) const;

  const Reader& a_;
  const Reader& b_;
  uint64_t elements_;
  uint64_t blocks_;
  std::vector<Axis> axes_;  // Empty when the walk is flat.
};

}  // namespace tensordiff
