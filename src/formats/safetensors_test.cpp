#include <gtest/gtest.h>

#include "formats/test_files.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

using namespace test_files;

std::string error_for(std::string_view header, std::string_view data) {
  return error_of(formats::safetensors, safetensors(header, data));
}

TEST(Safetensors, ReadsTensorsAndMetadata) {
  const Result<Catalog> catalog = formats::safetensors.open(input(safetensors(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"I16","shape":[2,1],"data_offsets":[4,8]},)"
      R"("e":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}  )",
      f32(1.5) + u16(7) + u16(9))));
  ASSERT_TRUE(catalog.ok()) << catalog.error().message();
  ASSERT_EQ(catalog.value().tensors.size(), 3U);
  EXPECT_EQ(catalog.value().tensors[0].name, "a");  // In the order of the data.
  EXPECT_EQ(catalog.value().tensors[1].name, "e");
  EXPECT_EQ(catalog.value().tensors[2].name, "b");
  EXPECT_EQ(catalog.value().tensors[2].view.shape, (Shape{2, 1}));
  EXPECT_EQ(Reader::open(catalog.value().tensors[0].view).value().value(0), 1.5);
  EXPECT_EQ(Reader::open(catalog.value().tensors[2].view).value().value(1), 9);
  ASSERT_EQ(catalog.value().metadata.size(), 1U);
  EXPECT_EQ(catalog.value().metadata[0].key, "format");
  EXPECT_EQ(catalog.value().metadata[0].value, "pt");
}

TEST(Safetensors, KnowsEveryType) {
  const std::pair<std::string_view, uint64_t> bytes_of_24[] = {
      {"BOOL", 24},    {"U8", 24},     {"I8", 24},          {"U16", 48},         {"I16", 48},
      {"U32", 96},     {"I32", 96},    {"U64", 192},        {"I64", 192},        {"F16", 48},
      {"BF16", 48},    {"F32", 96},    {"F64", 192},        {"C64", 192},        {"F8_E4M3", 24},
      {"F8_E5M2", 24}, {"F4", 12},     {"F8_E4M3FNUZ", 24}, {"F8_E5M2FNUZ", 24}, {"F8_E8M0", 24},
      {"F6_E2M3", 18}, {"F6_E3M2", 18}};
  for (const auto& [dtype, size] : bytes_of_24) {
    const std::string header =
        fmt::format(R"({{"w":{{"dtype":"{}","shape":[24],"data_offsets":[0,{}]}}}})", dtype, size);
    EXPECT_EQ(error_for(header, std::string(size, '\0')), "") << dtype;
  }
}

TEST(Safetensors, SaysWhatIsWrong) {
  const struct {
    std::string header;
    std::size_t data_bytes;
    std::string message;
  } cases[] = {
      {R"({"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8,
       "tensor 'w': 8 bytes stored, but its shape needs 12"},
      {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7,
       "tensor 'w': bytes [0, 8) lie outside the 7 bytes of data"},
      {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8,
       "tensor 'w': bytes [8, 0) lie outside the 8 bytes of data"},
      {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 9,
       "1 bytes follow the last tensor"},
      {R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3,
       "tensor 'w': 1 bytes before it belong to no tensor"},
      {R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
       R"("v":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       3, "tensor 'v' shares 1 bytes with another"},
      {R"({"w":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})", 8,
       "tensor 'w': unknown dtype 'F31'"},
      {R"({"w":{"dtype":"U8","shape":[-2],"data_offsets":[0,2]}})", 2,
       "tensor 'w': its shape has a size that is not a whole number"},
      {R"({"w":{"dtype":"U8","shape":[2.0],"data_offsets":[0,2]}})", 2,
       "tensor 'w': its shape has a size that is not a whole number"},
      {R"({"w":{"dtype":"U8","shape":2,"data_offsets":[0,2]}})", 2,
       "tensor 'w': its shape is not a list"},
      {R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2e0]}})", 2,
       "tensor 'w': its data_offsets are not two whole numbers"},
      {R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2,3]}})", 2,
       "tensor 'w': its data_offsets are not two whole numbers"},
      {R"({"w":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,2]}})", 2,
       "tensor 'w': shape [4294967296, 4294967296] has more than 2^40 elements"},
      {R"({"w":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2,
       "tensor 'w': shape [3] of f4_e2m1 does not fill whole bytes"},
      {R"({"w":7})", 0, "tensor 'w': its entry is not an object"},
      {R"({"__metadata__":{"n":1}})", 0, "__metadata__ 'n' is not a string"},
      {R"({"__metadata__":[]})", 0, "__metadata__ is not an object"},
      {R"({"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"w":{}})", 0,
       "header: key 'w' twice in the object that ends at byte 60 of the JSON"},
      {R"([])", 0, "the header does not start with '{'"},
  };
  for (const auto& [header, data_bytes, message] : cases)
    EXPECT_EQ(error_for(header, std::string(data_bytes, '\0')), message) << header;
}

TEST(Safetensors, RefusesHeadersThatLie) {
  EXPECT_EQ(error_of(formats::safetensors, u64(1'000'000'000) + "{}"),
            "a header of 1000000000 bytes is longer than 100000000, the limit; --limit header=N "
            "raises it");
  EXPECT_EQ(error_of(formats::safetensors, u64(9) + "{}"), "the header is longer than the file");
  EXPECT_EQ(error_of(formats::safetensors, "abc"), "the header is longer than the file");
}

}  // namespace
}  // namespace tensordiff
