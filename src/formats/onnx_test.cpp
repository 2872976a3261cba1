#include <gtest/gtest.h>

#include <map>

#include "formats/format.h"
#include "formats/test_proto.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

using namespace test_files;

constexpr uint64_t kFloat = 1, kInt8 = 3, kInt64 = 7, kString = 8, kHalf = 10, kUint32 = 12,
                   kComplex = 14, kInt4 = 22;

std::string tensor(std::string_view name, const std::vector<int64_t>& dims, uint64_t type,
                   const std::string& data) {
  std::string message;
  for (const int64_t size : dims) message += proto(1, static_cast<uint64_t>(size));
  return message + proto(2, type) + proto(8, name) + data;
}

std::string floats(std::string_view name) {
  return tensor(name, {2}, kFloat, proto(9, f32(1) + f32(2)));
}

std::string model(const std::string& graph, const std::string& more = "") {
  return proto(1, 8) + proto(2, "tests") + proto(7, graph) + proto(8, proto(2, 17)) + more;
}

std::string node(std::string_view name, std::string_view type, const std::string& attribute) {
  return proto(2, "out") + proto(3, name) + proto(4, type) + proto(5, attribute);
}

Result<Catalog> open_with(const std::string& bytes,
                          const std::map<std::string, std::string>& others = {}) {
  Input in = input(bytes);
  in.sibling = [others](std::string_view name) -> Result<ByteSource> {
    const auto found = others.find(std::string(name));
    if (found == others.end()) return Error("no file '{}' beside it", name);
    return ByteSource(bytes_of(found->second));
  };
  return formats::onnx.open(in);
}

std::vector<double> values_of(const Tensor& tensor) {
  EXPECT_EQ(tensor.fault, "") << tensor.name;
  std::vector<double> values(tensor.elements() * (is_complex(tensor.view.dtype) ? 2 : 1));
  const Result<Reader> reader = Reader::open(tensor.view);
  EXPECT_TRUE(reader.ok());
  if (reader.ok() && !values.empty())
    reader.value().components(0, tensor.elements(), values.data());
  return values;
}

std::vector<double> values(const std::string& message) {
  const Result<Catalog> catalog = open_with(model(proto(5, message)));
  EXPECT_TRUE(catalog.ok()) << catalog.error().message();
  return values_of(catalog.value().tensors.at(0));
}

std::string fault(const std::string& message,
                  const std::map<std::string, std::string>& others = {}) {
  const Result<Catalog> catalog = open_with(model(proto(5, message)), others);
  EXPECT_TRUE(catalog.ok()) << catalog.error().message();
  return catalog.value().tensors.at(0).fault;
}

using Numbers = std::vector<double>;

TEST(Onnx, ReadsRawAndListedElements) {
  EXPECT_EQ(values(floats("w")), (Numbers{1, 2}));
  EXPECT_EQ(values(tensor("w", {2}, kFloat, proto(4, f32(3) + f32(4)))), (Numbers{3, 4}));
  EXPECT_EQ(values(tensor("w", {2}, kFloat, proto_f32(4, 3) + proto_f32(4, 4))), (Numbers{3, 4}));
  EXPECT_EQ(values(tensor("w", {3}, kInt8, proto(5, varints({1, -2, 127})))),
            (Numbers{1, -2, 127}));
  EXPECT_EQ(values(tensor("w", {2}, kHalf, proto(5, varints({0x3c00, 0xc000})))), (Numbers{1, -2}));
  EXPECT_EQ(values(tensor("w", {2}, kInt64, proto(7, varints({-1, 1LL << 40})))),
            (Numbers{-1, 0x1p40}));
  EXPECT_EQ(values(tensor("w", {1}, kUint32, proto(11, varints({0xffffffff})))),
            (Numbers{4294967295.0}));
  EXPECT_EQ(values(tensor("w", {1}, kComplex, proto(4, f32(1) + f32(2)))), (Numbers{1, 2}));
  EXPECT_EQ(values(tensor("w", {}, kFloat, proto(9, f32(5)))), Numbers{5});
  EXPECT_EQ(values(tensor("w", {0, 3}, kFloat, "")), Numbers{});
}

TEST(Onnx, ReadsFourBitsInBytesOrInWords) {
  const Numbers expected = {1, -1, -8, 7, 2};
  EXPECT_EQ(values(tensor("w", {5}, kInt4, proto(9, "\xf1\x78\x02"))), expected);
  EXPECT_EQ(values(tensor("w", {5}, kInt4, proto(5, varints({0xf1, 0x78, 2})))), expected);
  EXPECT_EQ(values(tensor("w", {5}, kInt4, proto(5, varints({0x0278f1})))), expected);
}

TEST(Onnx, FindsTensorsWhereverTheyAre) {
  const std::string inner = proto(5, floats("inner"));
  const std::string graph =
      proto(1, node("c", "Constant", proto(1, "value") + proto(5, floats("")))) +
      proto(1, node("f", "Constant", proto(1, "value_float") + proto_f32(2, 0.5F))) +
      proto(1, node("i", "Constant", proto(1, "value_ints") + proto(8, 3) + proto(8, 4))) +
      proto(1, node("if", "If", proto(1, "then_branch") + proto(6, inner))) + proto(5, floats("w"));
  const std::string function =
      proto(1, "twice") + proto(7, node("c", "Constant", proto(1, "value") + proto(5, floats(""))));
  const std::string training = proto(2, proto(5, floats("momentum")));
  const Catalog catalog =
      open_with(model(graph, proto(20, training) + proto(25, function))).value();
  std::map<std::string, Numbers> found;
  for (const Tensor& each : catalog.tensors) found[each.name] = values_of(each);
  const std::map<std::string, Numbers> expected = {{"c/value", {1, 2}},
                                                   {"f/value_float", {0.5}},
                                                   {"i/value_ints", {3, 4}},
                                                   {"if/then_branch/inner", {1, 2}},
                                                   {"w", {1, 2}},
                                                   {"training_0.algorithm/momentum", {1, 2}},
                                                   {"twice/c/value", {1, 2}}};
  EXPECT_EQ(found, expected);
}

TEST(Onnx, FillsSparseTensors) {
  const std::string values = tensor("s", {2}, kFloat, proto(9, f32(5) + f32(6)));
  const std::string counted = proto(1, values) +
                              proto(2, tensor("", {2}, kInt64, proto(7, varints({1, 5})))) +
                              proto(3, 2) + proto(3, 3);
  const std::string by_axis =
      proto(1, values) + proto(2, tensor("", {2, 2}, kInt64, proto(7, varints({0, 1, 1, 2})))) +
      proto(3, 2) + proto(3, 3);
  for (const std::string& sparse : {counted, by_axis}) {
    const Catalog catalog = open_with(model(proto(15, sparse))).value();
    EXPECT_EQ(values_of(catalog.tensors.at(0)), (Numbers{0, 5, 0, 0, 0, 6}));
    EXPECT_EQ(catalog.tensors[0].view.shape, (Shape{2, 3}));
  }
}

std::string external(const std::map<std::string, std::string>& entries) {
  std::string data = proto(14, 1);
  for (const auto& [key, value] : entries) data += proto(13, proto(1, key) + proto(2, value));
  return tensor("w", {2}, kFloat, data);
}

TEST(Onnx, ReadsExternalDataBesideIt) {
  const std::map<std::string, std::string> others = {{"w.bin", "...." + f32(7) + f32(8)}};
  const std::string graph =
      proto(5, external({{"location", "w.bin"}, {"offset", "4"}, {"length", "8"}}));
  EXPECT_EQ(values_of(open_with(model(graph), others).value().tensors.at(0)), (Numbers{7, 8}));
  EXPECT_EQ(fault(external({{"location", "../w.bin"}}), others),
            "external data: no file '../w.bin' beside it");
  EXPECT_EQ(fault(external({{"location", "w.bin"}, {"offset", "-4"}}), others),
            "the offset of its external data, '-4', is not a whole number");
  EXPECT_EQ(fault(external({{"location", "w.bin"}, {"offset", "8x"}}), others),
            "the offset of its external data, '8x', is not a whole number");
  EXPECT_EQ(fault(external({{"location", "w.bin"}, {"offset", "99"}}), others),
            "external data 'w.bin' has 12 bytes, its offset is 99");
  EXPECT_EQ(
      fault(external({{"location", "w.bin"}, {"offset", "8"}, {"length", "18446744073709551615"}}),
            others),
      "external data 'w.bin' has 12 bytes, but 18446744073709551615 at offset 8 are needed");
  EXPECT_EQ(fault(external({{"location", "w.bin"}}), others),
            "external data 'w.bin' has 12 bytes for it, its shape needs 8");
}

TEST(Onnx, ReadsATensorByItself) {
  const Catalog catalog = open_with(floats("x")).value();
  ASSERT_EQ(catalog.tensors.size(), 1U);
  EXPECT_EQ(catalog.tensors[0].name, "x");
  EXPECT_EQ(values_of(catalog.tensors[0]), (Numbers{1, 2}));
  const Catalog words = open_with(tensor("words", {1}, kString, proto(6, "cat"))).value();
  EXPECT_TRUE(words.tensors.empty());
  EXPECT_EQ(words.metadata.at(0).key, "words");
}

TEST(Onnx, KeepsWhatTheModelSaysOfItself) {
  const std::string property = proto(14, proto(1, "author") + proto(2, "me"));
  const std::string names = tensor("labels", {2}, kString, proto(6, "cat") + proto(6, "dog"));
  const Catalog catalog =
      open_with(model(proto(5, names) + proto(5, floats("w")), property)).value();
  std::map<std::string, std::string> found;
  for (const Metadata& entry : catalog.metadata) found[entry.key] = entry.value;
  EXPECT_EQ(found["opset"], "17");
  EXPECT_EQ(found["metadata.author"], "me");
  EXPECT_TRUE(found["labels"].starts_with("2 strings, crc32 "));
  EXPECT_EQ(found["producer_name"], "tests");
  EXPECT_EQ(found["ir_version"], "8");
}

TEST(Onnx, NamesFaultsOfATensor) {
  EXPECT_EQ(fault(tensor("w", {2}, kFloat, proto(9, f32(1)))),
            "4 bytes stored, but its shape needs 8");
  EXPECT_EQ(fault(tensor("w", {2}, kFloat, proto(4, f32(1)))),
            "1 numbers are stored, its shape needs 2");
  EXPECT_EQ(fault(tensor("w", {2}, kFloat, proto(4, "abc"))),
            "its list of 3 bytes holds no whole numbers of 4");
  EXPECT_EQ(fault(tensor("w", {2}, kFloat, "")), "none of its 2 elements are stored");
  EXPECT_EQ(fault(tensor("w", {1}, kFloat, proto(9, f32(1)) + proto_f32(4, 1))),
            "its elements are stored in 2 places");
  EXPECT_EQ(fault(tensor("w", {1}, kFloat, proto(5, varints({1})))),
            "its elements are not where those of f32 are");
  EXPECT_EQ(fault(tensor("w", {1}, 99, proto(9, "x"))), "its data type 99 is not known");
  EXPECT_EQ(fault(tensor("w", {1}, kFloat, proto(3, proto(1, 0)) + proto(9, f32(1)))),
            "it is one segment of a tensor");
  EXPECT_EQ(fault(tensor("w", {1LL << 40, 4}, kFloat, proto(9, "x"))),
            "shape [1099511627776, 4] has more than 2^40 elements");
  EXPECT_EQ(fault(tensor("w", {3}, kInt8, proto(5, "\x80"))), "its list of numbers is malformed");
}

TEST(Onnx, NamesFaultsOfTheFile) {
  EXPECT_EQ(error_of(formats::onnx, "\x08"),
            "malformed protobuf at byte 1: a number that is cut short or too long");
  EXPECT_EQ(error_of(formats::onnx, proto(1, 99)),
            "no model: an ir_version of 1 to 20 and a graph are missing");
  std::string deep = proto(5, floats("w"));
  for (int i = 0; i < 120; ++i) deep = proto(1, node("n", "If", proto(1, "g") + proto(6, deep)));
  EXPECT_EQ(error_of(formats::onnx, model(deep)),
            "graphs nested more than 100 deep, the limit; --limit depth=N raises it");
  const Catalog cut = open_with(proto(1, 8) + proto(7, proto(5, floats("w")))).value();
  EXPECT_EQ(cut.problems.at(0).message, "no opset_import: the file may be cut short");
}

}  // namespace
}  // namespace tensordiff
