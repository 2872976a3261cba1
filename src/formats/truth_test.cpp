// Files written by torch, numpy and safetensors, and what torch and numpy say is in them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>

#include "base/json.h"
#include "formats/format.h"
#include "formats/test_files.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

using test_files::data_path;
using test_files::read_file;

std::string dtype_in_truth(std::string_view torch_name) {
  static const std::map<std::string_view, std::string_view> kNames = {
      {"float64", "f64"},
      {"float32", "f32"},
      {"float16", "f16"},
      {"bfloat16", "bf16"},
      {"float8_e4m3fn", "f8_e4m3"},
      {"float8_e5m2", "f8_e5m2"},
      {"float8_e4m3fnuz", "f8_e4m3fnuz"},
      {"float8_e5m2fnuz", "f8_e5m2fnuz"},
      {"float8_e8m0fnu", "f8_e8m0"},
      {"int64", "i64"},
      {"int32", "i32"},
      {"int16", "i16"},
      {"int8", "i8"},
      {"uint64", "u64"},
      {"uint32", "u32"},
      {"uint16", "u16"},
      {"uint8", "u8"},
      {"bool", "bool"},
      {"complex64", "c64"},
      {"complex128", "c128"},
  };
  const auto found = kNames.find(torch_name);
  return std::string(found == kNames.end() ? torch_name : found->second);
}

double truth_number(const Json& value) {
  if (const std::optional<double> number = value.number()) return *number;
  const std::string text(value.string());
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::strtod(text.c_str(), nullptr);  // Knows "inf" and "-inf".
}

void expect_near(double found, const Json& truth, const std::string& what) {
  if (truth.is_null()) return;
  const double expected = truth_number(truth);
  EXPECT_NEAR(found, expected, 1e-9 * std::max(1.0, std::abs(expected))) << what;
}

// Plain loops, so that the truth does not depend on what is to be tested.
void expect_values(const std::vector<double>& values, const Json& truth, const std::string& what) {
  uint64_t nans = 0;
  uint64_t infinities = 0;
  double sum = 0;
  std::vector<double> finite;
  for (const double value : values) {
    nans += std::isnan(value);
    infinities += std::isinf(value);
    if (!std::isfinite(value)) continue;
    finite.push_back(value);
    sum += value;
  }
  EXPECT_EQ(nans, truth["nan"].u64()) << what;
  EXPECT_EQ(infinities, truth["inf"].u64()) << what;
  const auto count = static_cast<double>(finite.size());
  double squares = 0;
  for (const double value : finite) squares += (value - sum / count) * (value - sum / count);
  if (!finite.empty()) {
    expect_near(sum / count, truth["mean"], what + " mean");
    expect_near(std::sqrt(squares / count), truth["std"], what + " std");
    expect_near(*std::ranges::min_element(finite), truth["min"], what + " min");
    expect_near(*std::ranges::max_element(finite), truth["max"], what + " max");
  }
  for (std::size_t i = 0; i < truth["first"].array().size(); ++i) {
    const double expected = truth_number(truth["first"][i]);
    EXPECT_TRUE(values[i] == expected || (std::isnan(values[i]) && std::isnan(expected)))
        << what << "[" << i << "]: " << values[i] << " instead of " << expected;
  }
}

void expect_tensor(const Tensor& tensor, const Json& truth, const std::string& what) {
  EXPECT_EQ(tensor.fault, "") << what;
  if (truth.object().empty() || !tensor.fault.empty()) return;
  // Quantised and complex tensors are checked by the tests of their reader.
  const std::string_view dtype = truth["dtype"].string();
  if (!dtype_named(dtype_in_truth(dtype))) return;
  EXPECT_EQ(name_of(tensor.view.dtype), dtype_in_truth(dtype)) << what;
  Shape shape;
  for (const Json& size : truth["shape"].array()) shape.push_back(size.u64().value());
  EXPECT_EQ(tensor.view.shape, shape) << what;
  const Result<Reader> reader = Reader::open(tensor.view);
  ASSERT_TRUE(reader.ok()) << what << ": " << reader.error().message();
  if (is_complex(tensor.view.dtype)) return;
  std::vector<double> values(tensor.elements());
  reader.value().values(0, values.size(), values.data());
  expect_values(values, truth, what);
}

class Truth : public testing::TestWithParam<std::string> {};

Json truth() {
  Result<Json> parsed = Json::parse(read_file(data_path("truth.json")));
  return parsed.ok() ? std::move(parsed).value() : Json();
}

std::vector<std::string> truth_files() {
  std::vector<std::string> names;
  const Json all = truth();
  for (const Json::Member& file : all["files"].object()) names.push_back(file.key);
  return names;
}

TEST_P(Truth, IsRead) {
  const auto path = data_path(GetParam());
  const Json all = truth();
  const Json& tensors = all["files"][GetParam()]["tensors"];
  const Result<Catalog> catalog = open_model(path.string());
  ASSERT_TRUE(catalog.ok()) << catalog.error().message();
  if (tensors.object().empty()) return;  // Its names are in the test of its reader.
  std::map<std::string, const Tensor*> found;
  for (const Tensor& tensor : catalog.value().tensors) found[tensor.name] = &tensor;
  for (const Json::Member& expected : tensors.object()) {
    const std::string what = GetParam() + " '" + expected.key + "'";
    ASSERT_TRUE(found.contains(expected.key)) << what << " not found";
    expect_tensor(*found[expected.key], expected.value, what);
  }
  // The checkpoint has a plain number too, which the truth leaves out.
  const std::size_t extra = GetParam() == "dcp" ? 1 : 0;
  EXPECT_EQ(found.size(), tensors.object().size() + extra) << GetParam();
}

INSTANTIATE_TEST_SUITE_P(Files, Truth, testing::ValuesIn(truth_files()), [](const auto& file) {
  std::string name = file.param;
  std::ranges::replace_if(
      name, [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
});

}  // namespace
}  // namespace tensordiff
