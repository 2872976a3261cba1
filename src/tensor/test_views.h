// Views with values, for tests.

#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tensor/reader.h"

namespace tensordiff {

inline View f32_view(const Shape& shape, const std::vector<float>& values) {
  std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  Result<View> view = contiguous_view(DType::f32, shape, ByteSource(bytes_of(bytes)));
  EXPECT_TRUE(view.ok()) << (view.ok() ? "" : view.error().message());
  return std::move(view).value();
}

// 0, 1, 2, ...: every element can be told from every other.
inline View counting_view(const Shape& shape) {
  std::vector<float> values(element_count(shape).value());
  std::iota(values.begin(), values.end(), 0.0F);
  return f32_view(shape, values);
}

inline std::vector<float> noise(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

inline View noise_view(const Shape& shape, unsigned seed) {
  return f32_view(shape, noise(element_count(shape).value(), seed));
}

inline std::vector<float> values_of(const View& view) {
  const Result<Reader> reader = Reader::open(view);
  EXPECT_TRUE(reader.ok());
  std::vector<double> values(view.elements());
  reader.value().values(0, values.size(), values.data());
  return {values.begin(), values.end()};
}

// The same elements stored in the order in which the view shows them, under another shape.
inline View stored_as(const View& view, const Shape& shape) {
  return f32_view(shape, values_of(view));
}

}  // namespace tensordiff
