// Single elements of a tensor, for `show`: which (a slice), under what condition, and as text.

#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "tensor/reader.h"

namespace tensordiff {

// A box of a tensor's index space.
struct Box {
  Shape origin;
  Shape shape;
  uint64_t elements() const { return element_count(shape).value_or(0); }
};

Box whole(const Shape& shape);

// "0,3:8,:" as in numpy, without steps: an index, a range or everything for each axis; axes left
// out at the end are whole, and negative numbers count from the end.
Result<Box> parse_slice(std::string_view text, const Shape& shape);

// Calls visit(position, count) for each run of the box's elements that lie next to each other in
// row-major order, in that order, until it returns false.
void for_each_run(const Box& box, const Shape& shape,
                  const std::function<bool(uint64_t position, uint64_t count)>& visit);

// ">1e4", "<=-3", "nan", "inf": what an element has to be; for a complex one, either part.
struct Condition {
  enum class Test { above, at_least, below, at_most, equal, nan, inf };
  Test test = Test::nan;
  double limit = 0;

  bool holds(double value) const;
};
Result<Condition> parse_condition(std::string_view text);

// One element as it was read by a Reader. 64-bit integers keep all their digits.
void write_element(JsonWriter& json, DType dtype, const std::byte* element);
std::string element_text(DType dtype, const std::byte* element);
bool holds(const Condition& condition, DType dtype, const std::byte* element);

}  // namespace tensordiff
