// What a tensor is before anybody has read it: a name, what its bytes mean, and where they are.
//
// A View gives the logical shape and the parts that fill it. A part is a box of the index space
// with strided elements in some byte source; nearly every tensor has just one. Views are cheap
// values: transposing, slicing or gathering shards makes a new View, never a copy of elements. Even
// the sum of what several ranks hold is a View; its elements are added when they are read.

#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "base/result.h"
#include "tensor/dtype.h"
#include "tensor/place.h"
#include "tensor/shape.h"

namespace tensordiff {

class Reader;
struct Packed;

struct Part {
  Shape origin;  // Where this box starts in the view's index space.
  Shape shape;
  Strides strides;
  uint64_t offset = 0;  // Of the first element, in elements from the start of the source.
  ByteSource source;
  std::size_t term = 0;  // Which summand it belongs to, where the view is a sum.
  // How its elements are made from others, which then stand for `source`; empty: they are stored.
  std::shared_ptr<const Packed> packed = {};
};

struct View {
  DType dtype = DType::f32;
  bool swapped = false;  // Stored in the byte order this machine does not have.
  Shape shape;
  std::vector<Part> parts;
  std::size_t terms = 1;  // Above 1 the view is a sum: the parts of each term fill the shape.

  uint64_t elements() const { return element_count(shape).value_or(0); }
  // One part, and its elements in row-major order without gaps.
  bool contiguous() const;
};

// Elements that are stored in another form than they mean: levels, and the scales that they share.
// They are decoded when they are read, so that nothing is ever materialised.
struct Packed {
  std::vector<View> inputs;  // What is stored.
  // Decodes `count` elements, `step` apart, to float32. Many threads may call it.
  std::function<void(std::span<const Reader> inputs, uint64_t first, int64_t step,
                     std::size_t count, float* out)>
      decode;
};

// The row-major view of a shape whose elements are all decoded. `dtype` is one in blocks.
Result<View> packed_view(DType dtype, Shape shape, Packed packed);

struct Tensor {
  std::string name;
  View view;
  std::string fault;  // Why it cannot be read; empty when it can.
  // What each rank holds, where it lies in pieces on several; `view` is then that of the first.
  std::vector<View> shards = {};
  Place place = {};  // What its name tells: read_places() in naming/ fills it in.
  // The name that it is paired by, where the stored one does not say what it is; empty: `name`.
  std::string known_as = {};
  std::string made_from = {};  // What its values were made from ("qweight, scales"); may be empty.
  // Which tokens of the run its first axis holds, where that is not all of them in order.
  std::shared_ptr<const std::vector<uint64_t>> tokens = nullptr;
  std::string auxiliary = {};  // Why it is no weight of its own ("scale of w"); empty: it is one.

  const std::string& pairing_name() const { return known_as.empty() ? name : known_as; }
  uint64_t elements() const { return view.elements(); }
  uint64_t bytes() const { return stored_bytes(view.dtype, view.elements()); }
};

// One of several tensors that are stored as one: the query of a fused query, key and value.
struct Section {
  std::string label;               // "q"
  std::vector<uint64_t> elements;  // Of each of them, in the order in which they are stored.
  std::size_t index = 0;           // Which of them it is.
};

// The view of `shape` that fills `source` in row-major order from its first byte on. Says what is
// wrong when the source is too short for the shape.
Result<View> contiguous_view(DType dtype, Shape shape, ByteSource source);

// The view with any strides. Says what is wrong when an element lies outside the source.
Result<View> strided_view(DType dtype, Shape shape, Strides strides, uint64_t offset,
                          ByteSource source);

// A tensor that only has a name and a reason.
Tensor broken_tensor(std::string name, std::string fault);

}  // namespace tensordiff
