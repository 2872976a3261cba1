#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "formats/format.h"
#include "formats/test_gguf.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

using namespace test_files;

constexpr uint32_t kF32 = 0, kF16 = 1, kQ8 = 8, kQ4K = 12;

std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values(tensor.elements());
  const Result<Reader> reader = Reader::open(tensor.view);
  EXPECT_TRUE(reader.ok()) << tensor.name;
  if (reader.ok()) reader.value().values(0, values.size(), values.data());
  return values;
}

Catalog opened(const std::string& bytes) {
  Result<Catalog> catalog = formats::gguf.open(input(bytes));
  EXPECT_TRUE(catalog.ok()) << catalog.error().message();
  return catalog.ok() ? std::move(catalog).value() : Catalog();
}

std::string fault(const std::string& bytes) { return error_of(formats::gguf, bytes); }

std::string floats(const Gguf& file, const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) bytes += file.number(value);
  return bytes;
}

// A q8_0 block: d = 0.5 as f16, then 0, 1, 2 … 31.
std::string q8_block(const Gguf& file) {
  std::string bytes = file.number(uint16_t{0x3800});
  for (char i = 0; i < 32; ++i) bytes += i;
  return bytes;
}

TEST(Gguf, ReadsEveryVersionInBothByteOrders) {
  for (const auto& [version, big] : {std::pair(1U, false), {2U, false}, {3U, false}, {3U, true}}) {
    Gguf file(version, big);
    file.text("general.name", "small");
    file.tensor({"w", {3, 2}, kF32, floats(file, {1, 2, 3, 4, 5, 6})});
    file.tensor({"q", {32}, kQ8, q8_block(file)});
    const Catalog catalog = opened(file.file());
    SCOPED_TRACE(version);
    ASSERT_EQ(catalog.tensors.size(), 2U);
    EXPECT_EQ(catalog.tensors[0].view.shape, (Shape{2, 3}));
    EXPECT_EQ(values_of(catalog.tensors[0]), (std::vector<double>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(name_of(catalog.tensors[1].view.dtype), "q8_0");
    EXPECT_EQ(catalog.tensors[1].bytes(), 34U);
    EXPECT_EQ(values_of(catalog.tensors[1])[31], 15.5);
    EXPECT_EQ(catalog.metadata[0].value, "small");
  }
}

TEST(Gguf, ReadsValuesOfEveryType) {
  Gguf file;
  file.key("u8", 0, "\x07").key("i8", 1, "\xff").key("u16", 2, file.number(uint16_t{500}));
  file.key("i16", 3, file.number(int16_t{-500})).key("u32", 4, file.number(7U));
  file.key("i32", 5, file.number(-7)).key("f32", 6, file.number(0.5F)).key("bool", 7, "\x01");
  file.key("u64", 10, file.number(uint64_t{1} << 40)).key("i64", 11, file.number(int64_t{-1}));
  file.key("f64", 12, file.number(0.25));
  file.key("few", 9, file.number(4U) + file.length(2) + file.number(1U) + file.number(2U));
  std::string many = file.number(8U) + file.length(10);
  for (int i = 0; i < 10; ++i) many += file.string("token");
  file.key("many", 9, many);
  const Catalog catalog = opened(file.file());
  const std::vector<std::string> expected = {
      "7", "-1", "500", "-500", "7", "-7", "0.5", "true", "1099511627776", "-1", "0.25", "[1, 2]"};
  ASSERT_EQ(catalog.metadata.size(), expected.size() + 1);
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(catalog.metadata[i].value, expected[i]) << catalog.metadata[i].key;
  // Arrays that differ behind what is shown differ in the checksum.
  EXPECT_TRUE(catalog.metadata.back().value.starts_with("[token, token, "));
  EXPECT_NE(catalog.metadata.back().value.find("…] 10 of string, crc32 "), std::string::npos);
}

TEST(Gguf, DecodesBlocksAsGgmlDoes) {
  const std::filesystem::path folder = data_path("../gguf");
  const Catalog blocks = open_model((folder / "blocks.gguf").string()).value();
  const Catalog truth = open_model((folder / "blocks.safetensors").string()).value();
  std::size_t checked = 0;
  for (const Tensor& expected : truth.tensors) {
    const auto found = std::ranges::find(blocks.tensors, expected.name, &Tensor::name);
    ASSERT_NE(found, blocks.tensors.end()) << expected.name;
    EXPECT_EQ(name_of(found->view.dtype), expected.name);
    EXPECT_EQ(values_of(*found), values_of(expected)) << expected.name;
    ++checked;
  }
  EXPECT_EQ(checked, 17U);
  for (const Tensor& tensor : blocks.tensors)
    if (is_undecoded(tensor.view.dtype)) {
      EXPECT_EQ(Reader::open(tensor.view).error().message(),
                "values of " + tensor.name + " are not decoded");
    }
}

// Any view of blocks reads the same elements as one decoded whole.
TEST(Gguf, BlocksAreReadInAnyOrder) {
  Gguf file;
  file.tensor(
      {"q", {64, 2}, kQ8, q8_block(file) + q8_block(file) + q8_block(file) + q8_block(file)});
  Catalog catalog = opened(file.file());
  const std::vector<double> whole = values_of(catalog.tensors[0]);
  Tensor turned = catalog.tensors[0];
  turned.view.shape = {64, 2};
  turned.view.parts[0].shape = {64, 2};
  turned.view.parts[0].strides = {1, 64};
  const std::vector<double> values = values_of(turned);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], whole[i % 2 * 64 + i / 2]);
  const Reader reader = Reader::open(turned.view).value();
  EXPECT_EQ(reader.value(63), whole[64 + 31]);
  double some[40];
  reader.values(60, 40, some);
  EXPECT_EQ(some[3], values[63]);
}

TEST(Gguf, RefusesTypesByName) {
  Gguf file;
  file.tensor({"w", {1}, kF32, f32(1)});
  file.tensor({"gone", {32}, 4, std::string(32, 'x')});
  file.tensor({"computing", {32}, 9, std::string(36, 'x')});
  file.tensor({"odd", {32}, 97, std::string(32, 'x')});
  const Catalog catalog = opened(file.file());
  ASSERT_EQ(catalog.tensors.size(), 4U);
  EXPECT_EQ(catalog.tensors[0].fault, "");
  EXPECT_EQ(catalog.tensors[1].fault, "it is of type q4_2, which ggml no longer has");
  EXPECT_EQ(catalog.tensors[2].fault,
            "it is of type q8_1, which is for computing: writers do not agree on its size");
  EXPECT_EQ(catalog.tensors[3].fault, "its type 97 is not known");
}

TEST(Gguf, NamesFaultsOfTheHeader) {
  EXPECT_EQ(fault("GGUX"), "it does not start with GGUF");
  EXPECT_EQ(fault(Gguf(4).file()), "version 4 is not known; 1 to 3 are");
  EXPECT_EQ(fault("GGUF" + u32(3) + u64(1)), "the file ends inside its header");
  EXPECT_EQ(fault("GGUF" + u32(3) + u64(2'000'000) + u64(0)),
            "2000000 tensors are more than 1000000, the limit; --limit entries=N raises it");
  EXPECT_EQ(
      fault("GGUF" + u32(3) + u64(0) + u64(uint64_t{1} << 63)),
      "9223372036854775808 keys are more than 1000000, the limit; --limit entries=N raises it");
  EXPECT_EQ(fault("GGUF" + u32(3) + u64(0) + u64(9)), "9 keys do not fit in a file of 24 bytes");
}

TEST(Gguf, NamesFaultsOfKeys) {
  EXPECT_EQ(fault(Gguf().text("", "x").file()), "key 0: it has no name");
  EXPECT_EQ(fault(Gguf().text("a", "x").text("a", "y").file()), "key 1: 'a' is there twice");
  EXPECT_EQ(fault(Gguf().key("a", 13, "").file()), "key 0: 'a': type 13 of its value is not known");
  EXPECT_EQ(fault(Gguf().key("a", 9, u32(9) + u64(1)).file()), "key 0: 'a': an array of arrays");
  EXPECT_EQ(fault(Gguf().key("a", 9, u32(4) + u64(uint64_t{1} << 62)).file()),
            "key 0: 'a': 4611686018427387904 values of u32 are more than the file holds");
  EXPECT_EQ(
      fault(Gguf().key("a", 8, u64(uint64_t{1} << 40)).file()),
      "key 0: 'a': a string of 1.0 TiB is longer than 64 MiB, the limit; --limit string=N raises "
      "it");
  EXPECT_EQ(fault(Gguf().key("a", 8, u64(99)).file()),
            "key 0: 'a': the file ends at byte 64, inside it");
  EXPECT_EQ(fault(Gguf().key("general.alignment", 4, u32(0)).file()),
            "general.alignment 0 is not a multiple of 8 up to 1048576");
  EXPECT_EQ(fault(Gguf().key("general.alignment", 4, u32(12)).file()),
            "general.alignment 12 is not a multiple of 8 up to 1048576");
  EXPECT_EQ(fault(Gguf().key("general.alignment", 10, u64(32)).file()),
            "key 0: 'general.alignment' is of type u64 instead of u32");
}

TEST(Gguf, NamesFaultsOfTensors) {
  EXPECT_EQ(fault(Gguf().tensor({"w", {1}, kF32, f32(1)}).tensor({"w", {1}, kF32, f32(1)}).file()),
            "tensor 1: 'w' is there twice");
  EXPECT_EQ(fault(Gguf().tensor({"w", {1, 1, 1, 1, 1}, kF32, f32(1)}).file()),
            "tensor 0: 'w' has 5 axes, there are at most 4");
  EXPECT_EQ(fault(Gguf().tensor({"w", {2}, kF32, f32(1)}).file()),
            "tensor 'w': 8 bytes at 0 lie outside the 4 bytes of data");
  EXPECT_EQ(fault(Gguf().tensor({"w", {1U << 31, 1U << 31, 4}, kF16, ""}).file()),
            "tensor 'w': shape [4, 2147483648, 2147483648] has more than 2^40 elements");
  EXPECT_EQ(fault(Gguf().tensor({"w", {100}, kQ4K, std::string(144, 'x')}).file()),
            "tensor 'w': rows of shape [100] are not whole blocks of 256 q4_k");
  EXPECT_EQ(fault(Gguf().tensor({"w", {1}, kF32, f32(1), 4}).file()),
            "tensor 'w': its offset 4 is not a multiple of the alignment, 32");
  EXPECT_EQ(fault(Gguf()
                      .tensor({"a", {9}, kF32, std::string(64, 'x')})
                      .tensor({"b", {1}, kF32, f32(1), -32})
                      .file()),
            "tensor 'b' shares 4 bytes with another");
  Gguf lie;
  lie.more_tensors = 1;
  EXPECT_EQ(fault(lie.tensor({"w", {1}, kF32, f32(1)}).file()),
            "tensor 1: the file ends at byte 68, inside it");
}

class SplitFiles : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(int number, const std::string& bytes) {
    std::ofstream(folder_ / fmt::format("m-0000{}-of-00002.gguf", number), std::ios::binary)
        << bytes;
  }
  Gguf shard(int number) {
    Gguf file;
    file.key("split.no", 2, file.number(static_cast<uint16_t>(number - 1)));
    file.key("split.count", 2, file.number(uint16_t{2}));
    file.key("split.tensors.count", 5, file.number(2));
    return file;
  }

  std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / fmt::format("tensordiff_split_{}", getpid());
};

TEST_F(SplitFiles, AreOneModelByAnyOfThem) {
  write(1, shard(1).tensor({"a", {1}, kF32, f32(1)}).file());
  write(2, shard(2).tensor({"b", {1}, kF32, f32(2)}).file());
  for (const auto& path :
       {folder_, folder_ / "m-00001-of-00002.gguf", folder_ / "m-00002-of-00002.gguf"}) {
    const Catalog catalog = open_model(path.string()).value();
    ASSERT_EQ(catalog.tensors.size(), 2U);
    EXPECT_EQ(catalog.tensors[1].name, "b");
    EXPECT_TRUE(catalog.problems.empty());
    EXPECT_EQ(catalog.metadata.size(), 3U);
  }
}

TEST_F(SplitFiles, ThatAreMissingAreMissed) {
  write(1, shard(1).tensor({"a", {1}, kF32, f32(1)}).file());
  const Catalog catalog = open_model((folder_ / "m-00001-of-00002.gguf").string()).value();
  ASSERT_EQ(catalog.problems.size(), 2U);
  EXPECT_EQ(catalog.problems[0].message,
            "1 of 2 files of the model is missing: 'm-00002-of-00002.gguf'");
  EXPECT_EQ(catalog.problems[1].message,
            "1 tensors in the files that are here, 2 in the whole model");
  for (const Problem& found : catalog.problems) EXPECT_EQ(found.severity, Severity::missing);
}

}  // namespace
}  // namespace tensordiff
