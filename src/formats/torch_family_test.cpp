// PyTorch's wider family, as torch 2.11 writes it: every value against what torch holds.
// tests/data/torch/make.py made the files.

#include <gtest/gtest.h>

#include <map>

#include "base/json.h"
#include "formats/test_files.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

using namespace test_files;

std::filesystem::path torch_data(std::string_view name) { return data_path("../torch") / name; }

std::map<std::string, const Tensor*> by_name(const Catalog& catalog) {
  std::map<std::string, const Tensor*> found;
  for (const Tensor& tensor : catalog.tensors) found[tensor.name] = &tensor;
  return found;
}

std::vector<double> values_of(const Tensor& tensor) {
  const Result<Reader> reader = Reader::open(tensor.view);
  std::vector<double> values(tensor.elements());
  if (reader.ok()) reader.value().values(0, values.size(), values.data());
  return values;
}

std::string_view short_name(std::string_view torch_name) {
  const std::pair<std::string_view, std::string_view> names[] = {
      {"float64", "f64"}, {"float32", "f32"}, {"bfloat16", "bf16"},
      {"int64", "i64"},   {"int16", "i16"},
  };
  for (const auto& [theirs, ours] : names)
    if (theirs == torch_name) return ours;
  return "?";
}

class TorchFamily : public testing::TestWithParam<std::string> {};

TEST_P(TorchFamily, IsReadValueByValue) {
  const Result<Json> truth = Json::parse(read_file(torch_data("truth.json")));
  ASSERT_TRUE(truth.ok());
  const Result<Catalog> catalog = open_model(torch_data(GetParam()).string());
  ASSERT_TRUE(catalog.ok()) << catalog.error().message();
  const auto found = by_name(catalog.value());
  ASSERT_FALSE(truth.value()["files"][GetParam()].object().empty());
  for (const Json::Member& expected : truth.value()["files"][GetParam()].object()) {
    ASSERT_TRUE(found.contains(expected.key)) << expected.key;
    const Tensor& tensor = *found.at(expected.key);
    ASSERT_EQ(tensor.fault, "") << expected.key;
    EXPECT_EQ(name_of(tensor.view.dtype), short_name(expected.value["dtype"].string()));
    Shape shape;
    for (const Json& size : expected.value["shape"].array()) shape.push_back(*size.u64());
    EXPECT_EQ(tensor.view.shape, shape) << expected.key;
    std::vector<double> values;
    for (const Json& value : expected.value["values"].array()) values.push_back(*value.number());
    EXPECT_EQ(values_of(tensor), values) << expected.key;
  }
  EXPECT_TRUE(catalog.value().problems.empty()) << catalog.value().problems[0].message;
}

INSTANTIATE_TEST_SUITE_P(Files, TorchFamily,
                         testing::Values("traced.pt", "mobile.ptl", "export.pt2", "tensors.pkl",
                                         "dcp", "zero2", "zero3", "bin_shards", "torch_0_1.tar"),
                         [](const auto& file) {
                           return file.param.substr(0, file.param.find('.'));
                         });

// Chunks stay where they lie: a tensor of a DCP folder has as many parts as it has chunks.
TEST(TorchDcp, CopiesNothing) {
  const Result<Catalog> catalog = open_model(torch_data("dcp").string());
  ASSERT_TRUE(catalog.ok());
  const auto found = by_name(catalog.value());
  EXPECT_EQ(found.at("model.rows")->view.parts.size(), 4U);
  EXPECT_EQ(found.at("model.grid")->view.parts.size(), 4U);
  EXPECT_EQ(found.at("model.copy")->view.parts.size(), 1U);
  for (const auto& [name, tensor] : found)
    for (const Part& part : tensor->view.parts) EXPECT_TRUE(part.source.ready()) << name;
  EXPECT_EQ(values_of(*found.at("step")), std::vector<double>{7});
}

// Each rank keeps its own tensors: which axis is cut is not in the file.
TEST(Megatron, KeepsItsRanks) {
  const Result<Catalog> catalog = open_model(torch_data("megatron").string());
  ASSERT_TRUE(catalog.ok()) << catalog.error().message();
  const auto found = by_name(catalog.value());
  EXPECT_TRUE(found.contains("mp_rank_00/model_optim_rng.model.language_model.w"));
  EXPECT_TRUE(found.contains("mp_rank_01/model_optim_rng.model.language_model.w"));
  EXPECT_TRUE(catalog.value().problems.empty());
}

}  // namespace
}  // namespace tensordiff
