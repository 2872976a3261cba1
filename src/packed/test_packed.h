// Catalogs of levels and scales, for tests.

#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "packed/packed.h"
#include "tensor/reader.h"

namespace tensordiff::test_packed {

template <class T>
Tensor stored(const std::string& name, DType dtype, const Shape& shape,
              const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  Result<View> view = contiguous_view(dtype, shape, ByteSource(bytes_of(std::move(bytes))));
  EXPECT_TRUE(view.ok()) << name << ": " << (view.ok() ? "" : view.error().message());
  return {name, view.ok() ? std::move(view).value() : View(), ""};
}

inline Tensor floats(const std::string& name, const Shape& shape,
                     const std::vector<float>& values) {
  return stored(name, DType::f32, shape, values);
}
inline Tensor words(const std::string& name, const Shape& shape,
                    const std::vector<uint32_t>& values) {
  return stored(name, DType::i32, shape, values);
}
inline Tensor bytes(const std::string& name, const Shape& shape, const std::vector<uint8_t>& values,
                    DType dtype = DType::u8) {
  return stored(name, dtype, shape, values);
}

inline Catalog unpacked(std::vector<Tensor> tensors, std::vector<Metadata> metadata = {}) {
  Catalog catalog;
  catalog.tensors = std::move(tensors);
  catalog.metadata = std::move(metadata);
  unpack(catalog);
  return catalog;
}

// Its values in row-major order; the same whether they are read in runs or one by one.
inline std::vector<double> values_in(const Tensor& tensor) {
  const Result<Reader> reader = Reader::open(tensor.view);
  EXPECT_TRUE(reader.ok());
  if (!reader.ok()) return {};
  std::vector<double> values(tensor.elements());
  if (!values.empty()) reader.value().values(0, values.size(), values.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double alone = reader.value().value(i);
    EXPECT_TRUE(alone == values[i] || (alone != alone && values[i] != values[i])) << i;
  }
  return values;
}

using Values = std::vector<double>;

}  // namespace tensordiff::test_packed
