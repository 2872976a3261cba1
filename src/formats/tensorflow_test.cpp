// Checkpoints and graphs, as TensorFlow writes them and with every fault.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "formats/checksum.h"
#include "formats/format.h"
#include "formats/test_proto.h"
#include "formats/tf_slices.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

using namespace test_files;

std::string path_of(std::string_view name) { return (data_path("../tensorflow") / name).string(); }

std::vector<double> values_of(const Tensor& tensor) {
  EXPECT_EQ(tensor.fault, "") << tensor.name;
  std::vector<double> values(tensor.elements());
  const Result<Reader> reader = Reader::open(tensor.view);
  EXPECT_TRUE(reader.ok()) << tensor.name << ": " << reader.error().message();
  if (reader.ok()) reader.value().values(0, values.size(), values.data());
  return values;
}

// Every tensor of a file is what TensorFlow was given; returns how many there are.
std::size_t check_against_truth(const std::string& file) {
  const Result<Catalog> opened = open_model(path_of(file));
  EXPECT_TRUE(opened.ok()) << opened.error().message();
  const Catalog truth = open_model(path_of("truth.npz")).value();
  std::map<std::string, const Tensor*> expected;
  for (const Tensor& tensor : truth.tensors) expected[tensor.name] = &tensor;
  for (const Tensor& tensor : opened.value().tensors) {
    std::string name = tensor.name;
    std::ranges::replace(name, '/', '.');
    const auto found = expected.find(name);
    EXPECT_NE(found, expected.end()) << name;
    if (found == expected.end()) continue;
    EXPECT_EQ(tensor.view.shape, found->second->view.shape) << name;
    EXPECT_EQ(name_of(tensor.view.dtype), name_of(found->second->view.dtype)) << name;
    EXPECT_EQ(values_of(tensor), values_of(*found->second)) << name;
  }
  EXPECT_TRUE(opened.value().problems.empty());
  return opened.value().tensors.size();
}

TEST(TfCheckpoint, ReadsBothVersionsAndPieces) {
  EXPECT_EQ(check_against_truth("v2.index"), 6U);
  EXPECT_EQ(check_against_truth("v1.ckpt"), 5U);
  const Catalog catalog = open_model(path_of("v2.index")).value();
  ASSERT_EQ(catalog.metadata.size(), 1U);
  EXPECT_EQ(catalog.metadata[0].key, "labels");
}

TEST(TfGraph, ReadsConstantsThatRepeat) {
  EXPECT_EQ(check_against_truth("frozen.pb"), 5U);
  const Catalog catalog = open_model(path_of("frozen.pb")).value();
  ASSERT_EQ(catalog.metadata.size(), 1U);
  EXPECT_TRUE(catalog.metadata[0].value.starts_with("2 strings, crc32c "))
      << catalog.metadata[0].value;
}

TEST(TfSlices, KeysSortAsTensorFlowDoes) {
  const std::string name = std::string("\0", 1) + "ab" + std::string("\0\1", 2);
  EXPECT_EQ(tf::key_of("ab", {{0, 5}}), name + "\x01\x01\x80\x85");
  EXPECT_EQ(tf::key_of("ab", {{70, std::nullopt}}), name + "\x01\x01\xc0\x46\x7f");
  EXPECT_EQ(tf::key_of("ab", {{8192, 1}}),
            name + "\x01\x01\xe0\x20" + std::string(1, '\0') + "\x81");
}

// --- A version 2 checkpoint with one entry, written here so that it can be wrong. ---

std::string with_trailer(const std::string& block) {
  const std::string summed = block + '\0';
  return summed + u32(masked(crc32c(as_bytes(summed))));
}

std::string entry(std::string_view key, std::string_view value) {
  return varint(0) + varint(key.size()) + varint(value.size()) + std::string(key) +
         std::string(value);
}

std::string table(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string block;
  for (const auto& [key, value] : entries) block += entry(key, value);
  block += u32(0) + u32(1);
  const std::string file = with_trailer(block);
  const std::string index = entry("z", varint(0) + varint(block.size())) + u32(0) + u32(1);
  std::string footer = varint(0) + varint(0) + varint(file.size()) + varint(index.size());
  footer.resize(40);
  return file + with_trailer(index) + footer + u64(0xdb4775248b80fb57);
}

std::string shape_of(const std::vector<int64_t>& sizes) {
  std::string message;
  for (const int64_t size : sizes) message += proto(2, proto(1, static_cast<uint64_t>(size)));
  return message;
}

constexpr std::string_view kData = "abcdefgh";

std::string fixed32(uint32_t number, uint32_t value) { return proto_key(number, 5) + u32(value); }

struct Stored {
  uint64_t type = 1, shard = 0, offset = 0, bytes = 8;
  std::vector<int64_t> shape = {2};
  uint32_t checksum = masked(crc32c(as_bytes(kData)));
  std::string slices = {};

  std::string message() const {
    return proto(1, type) + proto(2, shape_of(shape)) + proto(3, shard) + proto(4, offset) +
           proto(5, bytes) + fixed32(6, checksum) + slices;
  }
};

Tensor opened(const std::string& entry_bytes, bool with_data = true) {
  Input in = input(table({{"", proto(1, 1)}, {"w", entry_bytes}}), "folder/model.index");
  in.sibling = [with_data](std::string_view name) -> Result<ByteSource> {
    if (!with_data || name != "model.data-00000-of-00001") return Error("no file '{}'", name);
    return ByteSource(bytes_of(std::string(kData)));
  };
  const Result<Catalog> catalog = formats::tf_checkpoint.open(in);
  EXPECT_TRUE(catalog.ok()) << catalog.error().message();
  return catalog.ok() ? catalog.value().tensors.at(0) : Tensor();
}

TEST(TfCheckpoint, NamesFaultsOfATensor) {
  const auto fault = [](const Stored& stored) { return opened(stored.message()).fault; };
  EXPECT_EQ(fault({}), "");
  EXPECT_EQ(fault({.type = 99}), "its data type 99 is not known");
  EXPECT_EQ(fault({.type = 20}), "it holds resources, not numbers");
  EXPECT_EQ(fault({.shard = 3}), "it is in data file 4 of 1");
  EXPECT_EQ(fault({.offset = 4}), "8 bytes at 4 lie outside the 8 bytes of its data file");
  EXPECT_EQ(fault({.bytes = 7}), "7 bytes stored, but its shape needs 8");
  EXPECT_EQ(fault({.shape = {1LL << 40, 9}}),
            "shape [1099511627776, 9] has more than 2^40 elements");
  EXPECT_EQ(opened(Stored().message(), false).fault, "no file 'model.data-00000-of-00001'");
  const Tensor spoiled = opened(Stored{.checksum = 1}.message());
  EXPECT_EQ(Reader::open(spoiled.view).error().message(), "its checksum does not match");
  const std::string piece = proto(7, proto(1, proto(1, 0) + proto(2, 2)));
  EXPECT_EQ(fault({.slices = piece}), "its piece [2] at [0] is not in the index");
  EXPECT_EQ(fault({.slices = proto(7, proto(1, proto(1, 1) + proto(2, 2)))}),
            "a piece lies outside of the shape [2]");
  EXPECT_EQ(fault({.slices = proto(7, proto(1, "") + proto(1, ""))}),
            "a piece of 2 axes, of shape [2]");
}

TEST(TfSlices, MustFillTheShapeOnce) {
  const auto part = [](uint64_t start, uint64_t length) {
    Part made = tf::place_part({{start, length}}, {4}).value();
    made.source = ByteSource(bytes_of(std::string(4 * length, 'x')));
    return made;
  };
  const auto fault = [](std::vector<Part> parts) {
    const Result<View> view = tf::joined(DType::f32, {4}, std::move(parts));
    return view.ok() ? "" : view.error().message();
  };
  EXPECT_EQ(fault({part(0, 2), part(2, 2)}), "");
  EXPECT_EQ(fault({part(0, 2)}), "its pieces hold 2 of 4 elements");
  EXPECT_EQ(fault({part(0, 2), part(1, 2)}), "two of its pieces overlap");
  EXPECT_EQ(fault(std::vector<Part>(5000, part(0, 2))), "5000 pieces, the limit is 4096");
}

TEST(TfCheckpoint, NamesFaultsOfTheFile) {
  EXPECT_EQ(error_of(formats::tf_checkpoint, "none"), "no table: its last bytes are not a table's");
  EXPECT_EQ(error_of(formats::tf_checkpoint, table({{"w", "x"}})),
            "a table, but not of a checkpoint");
  EXPECT_EQ(error_of(formats::tf_checkpoint, table({{"", proto(1, 999'999)}})),
            "999999 data files, the limit is 100000");
  EXPECT_EQ(error_of(formats::tf_checkpoint, table({{"", proto(1, 1)}, {"w", "\x80"}})),
            "'w': malformed protobuf at byte 1: a number that is cut short or too long");
}

// --- Graphs ---

std::string graph_of(const std::string& tensor) {
  const std::string attribute = proto(1, "value") + proto(2, proto(8, tensor));
  return proto(1, proto(1, "c") + proto(2, "Const") + proto(5, attribute)) + proto(4, proto(1, 9));
}

Tensor constant(const std::string& tensor) {
  const Result<Catalog> catalog = formats::tf_graph.open(input(graph_of(tensor)));
  EXPECT_TRUE(catalog.ok()) << catalog.error().message();
  return catalog.ok() ? catalog.value().tensors.at(0) : Tensor();
}

TEST(TfGraph, FindsConstantsInSavedModelsAndFunctions) {
  const std::string tensor = proto(1, 1) + proto(2, shape_of({1})) + proto(4, f32(2));
  const std::string attribute = proto(1, "value") + proto(2, proto(8, tensor));
  const std::string node = proto(1, "c") + proto(2, "Const") + proto(5, attribute);
  const std::string function = proto(1, proto(1, "twice")) + proto(3, node);
  const std::string graph = proto(1, node) + proto(2, proto(1, function)) + proto(4, proto(1, 9));
  const std::string meta = proto(1, proto(5, "2.21.0")) + proto(2, graph);
  for (const std::string& file : {graph, meta, proto(1, 1) + proto(2, meta)}) {
    const Catalog catalog = formats::tf_graph.open(input(file)).value();
    ASSERT_EQ(catalog.tensors.size(), 2U);
    EXPECT_EQ(catalog.tensors[1].name, "twice/c");
    EXPECT_EQ(values_of(catalog.tensors[1]), std::vector<double>{2});
  }
}

TEST(TfGraph, NamesFaults) {
  EXPECT_EQ(constant(proto(1, 1) + proto(2, shape_of({2})) + proto(4, f32(1))).fault,
            "4 bytes stored, but its shape needs 8");
  EXPECT_EQ(constant(proto(1, 1) + proto(2, shape_of({1})) + proto(5, f32(1) + f32(2))).fault,
            "2 values stored, but its shape needs 1");
  EXPECT_EQ(constant(proto(1, 99) + proto(2, shape_of({1}))).fault,
            "its data type 99 is not known");
  EXPECT_EQ(error_of(formats::tf_graph, graph_of(proto(1, 1) + proto(2, shape_of({-1})))),
            "node 'c': an axis of its shape has no size");
  EXPECT_EQ(error_of(formats::tf_graph, "nothing"),
            "no graph: neither a SavedModel nor a GraphDef");
  // A petabyte that one number stands for costs nothing.
  const Tensor large =
      constant(proto(1, 1) + proto(2, shape_of({1 << 20, 1 << 20})) + proto_f32(5, 3));
  EXPECT_EQ(Reader::open(large.view).value().value(uint64_t{1} << 39), 3);
}

}  // namespace
}  // namespace tensordiff
