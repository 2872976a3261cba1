#include "cli/elements.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>

#include "base/text.h"
#include "cli/values.h"

namespace tensordiff {
namespace {

Result<int64_t> parse_index(std::string_view text) {
  int64_t value = 0;
  const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || stop != text.data() + text.size())
    return Error("'{}' is not an index", printable(text, 80));
  return value;
}

// One axis of a slice: where it begins and how long it is.
struct Range {
  uint64_t begin = 0;
  uint64_t count = 0;
};

Result<Range> parse_range(std::string_view text, uint64_t size) {
  const auto extent = static_cast<int64_t>(size);
  const auto from_end = [&](int64_t index) { return index < 0 ? index + extent : index; };
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    const int64_t index = from_end(TRY(parse_index(text)));
    if (index < 0 || index >= extent)
      return Error("index {} lies outside an axis of {}", text, size);
    return Range{static_cast<uint64_t>(index), 1};
  }
  const std::string_view first = text.substr(0, colon), last = text.substr(colon + 1);
  const int64_t begin = first.empty() ? 0 : from_end(TRY(parse_index(first)));
  const int64_t end = last.empty() ? extent : from_end(TRY(parse_index(last)));
  if (begin < 0 || end > extent || begin > end)
    return Error("range {} does not fit an axis of {}", printable(text, 80), size);
  return Range{static_cast<uint64_t>(begin), static_cast<uint64_t>(end - begin)};
}

uint64_t position_of(const Shape& index, const Shape& shape) {
  uint64_t position = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    position = position * shape[axis] + index[axis];
  return position;
}

template <class T>
T as(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return value;
}

}  // namespace

Box whole(const Shape& shape) { return {Shape(shape.size(), 0), shape}; }

Result<Box> parse_slice(std::string_view text, const Shape& shape) {
  Box box = whole(shape);
  if (text.empty()) return box;
  const std::vector<std::string_view> parts = split(text, ',');
  if (parts.size() > shape.size())
    return Error("slice '{}' has {} axes, but the tensor has {}", printable(text, 80), parts.size(),
                 shape.size());
  for (std::size_t axis = 0; axis < parts.size(); ++axis) {
    std::string_view part = parts[axis];
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    const Range range = TRY(parse_range(part, shape[axis]));
    box.origin[axis] = range.begin;
    box.shape[axis] = range.count;
  }
  return box;
}

void for_each_run(const Box& box, const Shape& shape,
                  const std::function<bool(uint64_t position, uint64_t count)>& visit) {
  if (box.elements() == 0) return;
  // A run reaches over the last axis, and over axes before it as long as those behind are whole.
  std::size_t outer = shape.size();
  uint64_t run = 1;
  while (outer > 0) {
    run *= box.shape[--outer];
    if (box.shape[outer] != shape[outer]) break;
  }
  Shape steps(box.shape.begin(), box.shape.begin() + static_cast<std::ptrdiff_t>(outer));
  const uint64_t runs = element_count(steps).value_or(0);
  for (uint64_t i = 0; i < runs; ++i) {
    Shape index = box.origin;
    const Shape step = index_at(steps, i);
    for (std::size_t axis = 0; axis < outer; ++axis) index[axis] += step[axis];
    if (!visit(position_of(index, shape), run)) return;
  }
}

bool Condition::holds(double value) const {
  switch (test) {
    case Test::above:
      return value > limit;
    case Test::at_least:
      return value >= limit;
    case Test::below:
      return value < limit;
    case Test::at_most:
      return value <= limit;
    case Test::equal:
      return value == limit;
    case Test::nan:
      return std::isnan(value);
    case Test::inf:
      return std::isinf(value);
  }
  return false;
}

Result<Condition> parse_condition(std::string_view text) {
  using Test = Condition::Test;
  if (text == "nan") return Condition{Test::nan, 0};
  if (text == "inf") return Condition{Test::inf, 0};
  // The longer sign first, of two that begin alike.
  constexpr std::pair<std::string_view, Test> kSigns[] = {{">=", Test::at_least},
                                                          {"<=", Test::at_most},
                                                          {">", Test::above},
                                                          {"<", Test::below},
                                                          {"=", Test::equal}};
  for (const auto& [sign, test] : kSigns) {
    if (!text.starts_with(sign)) continue;
    std::string_view number = text.substr(sign.size());
    while (number.starts_with(' ')) number.remove_prefix(1);
    const double limit = TRY(parse_number(number));
    return Condition{test, limit};
  }
  return Error("'{}' is not a condition such as >1e4, <=-3, =0, nan or inf", printable(text, 80));
}

void write_element(JsonWriter& json, DType dtype, const std::byte* element) {
  if (dtype == DType::i64) {
    json.value(as<int64_t>(element));
  } else if (dtype == DType::u64) {
    json.value(as<uint64_t>(element));
  } else if (is_complex(dtype)) {
    double parts[2];
    decode(dtype, element, 1, parts);
    json.begin_array().value(parts[0]).value(parts[1]).end_array();
  } else {
    json.value(decode_one(dtype, element));
  }
}

std::string element_text(DType dtype, const std::byte* element) {
  if (dtype == DType::i64) return fmt::format("{}", as<int64_t>(element));
  if (dtype == DType::u64) return fmt::format("{}", as<uint64_t>(element));
  if (dtype == DType::boolean) return decode_one(dtype, element) != 0 ? "true" : "false";
  if (is_integer(dtype)) return fmt::format("{:.0f}", decode_one(dtype, element));
  if (!is_complex(dtype)) return fmt::format("{:.6g}", decode_one(dtype, element));
  double parts[2];
  decode(dtype, element, 1, parts);
  return fmt::format("{:.6g}{:+.6g}i", parts[0], parts[1]);
}

bool holds(const Condition& condition, DType dtype, const std::byte* element) {
  double parts[2] = {};
  decode(dtype, element, 1, parts);
  return condition.holds(parts[0]) || (is_complex(dtype) && condition.holds(parts[1]));
}

}  // namespace tensordiff
