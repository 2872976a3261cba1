// Models built in memory and compared as the program does it, for the tests of the analyses.

#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "analyze/analysis.h"
#include "match/matcher.h"
#include "naming/naming.h"
#include "tensor/test_views.h"

namespace tensordiff {

// A catalog that is filled tensor by tensor.
struct Model {
  Catalog catalog;

  Model& add(const std::string& name, const Shape& shape, const std::vector<float>& values) {
    catalog.tensors.push_back({name, f32_view(shape, values), ""});
    return *this;
  }
  Model& add(const std::string& name, View view) {
    catalog.tensors.push_back({name, std::move(view), ""});
    return *this;
  }
  Model& noise(const std::string& name, const Shape& shape, unsigned seed) {
    return add(name, noise_view(shape, seed));
  }
  // A number of Python's own.
  Model& scalar(const std::string& name, double value) {
    const std::string bytes(reinterpret_cast<const char*>(&value), sizeof value);
    Result<View> view = contiguous_view(DType::f64, {}, ByteSource(bytes_of(bytes)));
    return add(name, std::move(view).value());
  }
};

// Both models, what was compared, and the study of it; owns all that the study refers to.
struct Compared {
  Catalog a, b;
  AnalyzeOptions options;
  std::vector<Row> rows;
  std::unique_ptr<Study> study;
};

inline std::unique_ptr<Compared> compared(const Model& a, const Model& b,
                                          AnalyzeOptions options = {}) {
  auto all = std::make_unique<Compared>();
  all->a = a.catalog;
  all->b = b.catalog;
  read_places(all->a);
  read_places(all->b);
  all->options = std::move(options);
  all->study = std::make_unique<Study>(all->a, all->b, all->options);
  const Result<Matching> matching = match(all->a, all->b);
  EXPECT_TRUE(matching.ok());
  for (const Pair& pair : matching.value().pairs) {
    const Tensor& left = all->a.tensors[pair.a];
    const Tensor& right = all->b.tensors[pair.b];
    Row& row = all->rows.emplace_back();
    row.a = id_of(left);
    row.b = id_of(right);
    row.comparison.status = Status::incomparable;
    Result<AlignedPair> views = align(left.view, right.view);
    if (views.ok()) {
      row.views = std::move(views).value();
      row.comparison = compare(row.views).value();
    }
  }
  for (const Row& row : all->rows) all->study->add_pair(row);
  for (const Leftover& left : matching.value().only_a)
    all->study->add_unpaired('a', all->a.tensors[left.tensor]);
  for (const Leftover& left : matching.value().only_b)
    all->study->add_unpaired('b', all->b.tensors[left.tensor]);
  return all;
}

inline Answer answer_to(const Analysis& analysis, const Model& a, const Model& b,
                        AnalyzeOptions options = {}) {
  const std::unique_ptr<Compared> all = compared(a, b, std::move(options));
  Answer answer;
  answer.name = analysis.name;
  analysis.examine(*all->study, answer);
  return answer;
}

// The field as text, "" where there is none.
inline std::string text_of(const Answer& answer, std::string_view field) {
  const Datum* datum = answer.find(field);
  return datum ? datum_text(*datum) : "";
}

// The field as a number; NaN where it is none.
inline double number_of(const Datum& datum) {
  if (const auto* value = std::get_if<double>(&datum.value)) return *value;
  if (const auto* value = std::get_if<uint64_t>(&datum.value)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<int64_t>(&datum.value)) return static_cast<double>(*value);
  return std::numeric_limits<double>::quiet_NaN();
}
inline double number_of(const Answer& answer, std::string_view field) {
  const Datum* datum = answer.find(field);
  return datum ? number_of(*datum) : std::numeric_limits<double>::quiet_NaN();
}

inline const Listing& list_of(const Answer& answer, std::string_view name) {
  static const Listing kNone;
  for (const Listing& list : answer.lists)
    if (list.name == name) return list;
  ADD_FAILURE() << "no list " << name;
  return kNone;
}

// The cell as text, "" where there is none.
inline std::string cell(const Listing& list, std::size_t row, std::string_view column) {
  for (std::size_t i = 0; i < list.columns.size(); ++i)
    if (list.columns[i] == column && row < list.rows.size()) return datum_text(list.rows[row][i]);
  return "";
}

// Values times a factor.
inline std::vector<float> times(std::vector<float> values, float factor) {
  for (float& value : values) value *= factor;
  return values;
}

inline std::vector<float> plus(std::vector<float> values, const std::vector<float>& more) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += more[i];
  return values;
}

// Rows [r, c] of a product of two noises of width `rank`.
inline std::vector<float> low_rank_noise(std::size_t rows, std::size_t columns, std::size_t rank,
                                         unsigned seed) {
  const std::vector<float> left = noise(rows * rank, seed), right = noise(rank * columns, seed + 1);
  std::vector<float> values(rows * columns);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t k = 0; k < rank; ++k)
      for (std::size_t j = 0; j < columns; ++j)
        values[i * columns + j] += left[i * rank + k] * right[k * columns + j];
  return values;
}

// Stored as bf16 or f16.
inline View stored_in(DType dtype, const std::vector<float>& values, const Shape& shape) {
  const std::vector<double> wide(values.begin(), values.end());
  std::string bytes(values.size() * 2, 0);
  encode(dtype, wide.data(), wide.size(), reinterpret_cast<std::byte*>(bytes.data()));
  return contiguous_view(dtype, shape, ByteSource(bytes_of(bytes))).value();
}

inline View as_bf16(const std::vector<float>& values, const Shape& shape) {
  return stored_in(DType::bf16, values, shape);
}

// What rounding to `levels` steps with a scale for each `block` leaves.
inline std::vector<float> rounded(std::vector<float> values, std::size_t block, int levels) {
  for (std::size_t first = 0; first < values.size(); first += block) {
    float largest = 0;
    for (std::size_t i = first; i < first + block; ++i)
      largest = std::max(largest, std::abs(values[i]));
    const float step = largest / static_cast<float>(levels);
    for (std::size_t i = first; i < first + block; ++i)
      values[i] = std::round(values[i] / step) * step;
  }
  return values;
}

}  // namespace tensordiff
