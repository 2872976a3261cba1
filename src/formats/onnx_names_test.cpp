#include "formats/onnx_names.h"

#include <gtest/gtest.h>

#include "formats/format.h"
#include "formats/test_proto.h"

namespace tensordiff {
namespace {

using namespace test_files;

constexpr uint64_t kFloat = 1, kInt64 = 7;

std::string initializer(std::string_view name, uint64_t type, const std::vector<uint64_t>& dims) {
  std::string message;
  uint64_t elements = 1;
  for (const uint64_t size : dims) {
    message += proto(1, size);
    elements *= size;
  }
  const std::string data(elements * (type == kFloat ? 4 : 8), '\0');
  return proto(5, message + proto(2, type) + proto(8, name) + proto(9, data));
}

std::string node(std::string_view name, std::string_view type,
                 const std::vector<std::string>& inputs, std::string_view scopes = "") {
  std::string message;
  for (const std::string& input : inputs) message += proto(1, input);
  message += proto(2, "out") + proto(3, name) + proto(4, type);
  if (!scopes.empty())
    message += proto(9, proto(1, "pkg.torch.onnx.name_scopes") + proto(2, scopes));
  return proto(1, message);
}

// "name" or "name=known_as" or "name (auxiliary)" of each tensor.
std::string told(const std::string& graph) {
  const Result<Catalog> catalog =
      formats::onnx.open(input(proto(1, 8) + proto(7, graph) + proto(8, proto(2, 17))));
  if (!catalog.ok()) return catalog.error().message();
  std::string out;
  for (const Tensor& tensor : catalog.value().tensors) {
    out += (out.empty() ? "" : "; ") + tensor.name;
    if (!tensor.known_as.empty()) out += "=" + tensor.known_as;
    if (!tensor.auxiliary.empty()) out += " (" + tensor.auxiliary + ")";
  }
  return out;
}

TEST(OnnxNames, AreThoseOfTheModuleThatReads) {
  EXPECT_EQ(told(node("/bert/layer.0/query/MatMul", "MatMul", {"x", "onnx::MatMul_253"}) +
                 initializer("onnx::MatMul_253", kFloat, {2, 2})),
            "onnx::MatMul_253=bert.layer.0.query.weight");
  EXPECT_EQ(
      told(node("/conv1/Conv", "Conv", {"x", "onnx::Conv_1", "onnx::Conv_2"}) +
           initializer("onnx::Conv_1", kFloat, {2, 2}) + initializer("onnx::Conv_2", kFloat, {2})),
      "onnx::Conv_1=conv1.weight; onnx::Conv_2=conv1.bias");
  EXPECT_EQ(told(node("node_linear", "MatMul", {"x", "val_31"}, "['', 'm', 'm.q_proj', 'linear']") +
                 initializer("val_31", kFloat, {2, 2})),
            "val_31=m.q_proj.weight");
}

TEST(OnnxNames, AreLeftWhereTheyAreTakenOrNotAgreedOn) {
  EXPECT_EQ(
      told(node("/a/MatMul", "MatMul", {"x", "val_1"}) +
           node("/b/MatMul", "MatMul", {"x", "val_1"}) + initializer("val_1", kFloat, {2, 2})),
      "val_1");
  EXPECT_EQ(told(node("/a/MatMul", "MatMul", {"x", "val_1"}) +
                 initializer("val_1", kFloat, {2, 2}) + initializer("a.weight", kFloat, {2, 2})),
            "val_1; a.weight");
  EXPECT_EQ(told(node("/a/Tanh", "Tanh", {"val_1"}) + initializer("val_1", kFloat, {2, 2})),
            "val_1");
  EXPECT_EQ(told(node("MatMul_3", "MatMul", {"x", "val_1"}, "[''") +
                 initializer("val_1", kFloat, {2, 2})),
            "val_1");
  EXPECT_EQ(told(node("/a/MatMul", "MatMul", {"x", "w"}) + initializer("w", kFloat, {2, 2})), "w");
}

TEST(OnnxNames, TellConstantsFromWeights) {
  EXPECT_EQ(told(initializer("shape", kInt64, {2}) + initializer("val_2", kFloat, {}) +
                 initializer("logit_scale", kFloat, {})),
            "shape (graph constant); val_2 (graph constant); logit_scale");
}

}  // namespace
}  // namespace tensordiff
