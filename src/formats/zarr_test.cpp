// zarr: every value against what zarr, numcodecs and Orbax wrote, and what is said of broken ones.
// tests/data/zarr/make.py made the files.

#include <gtest/gtest.h>

#include "formats/chunks.h"
#include "formats/codecs.h"
#include "formats/test_folders.h"
#include "formats/test_truth.h"
#include "formats/zarr_info.h"

namespace tensordiff {
namespace {

using test_files::data_path;
using test_folders::Files;
using test_folders::told_folder;

class Zarr : public testing::TestWithParam<std::string> {};

TEST_P(Zarr, IsReadValueByValue) { test_truth::expect_all(data_path("../zarr"), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Stores, Zarr, testing::Values("v2.zip", "v3.zip", "orbax.zip"),
                         [](const auto& file) {
                           return file.param.substr(0, file.param.find('.'));
                         });

TEST(ZarrStore, DeclinesByName) {
  const auto fault = [](const std::string& file, const std::string& name) -> std::string {
    const Result<Catalog> catalog = open_model((data_path("../zarr") / file).string());
    if (!catalog.ok()) return "! " + catalog.error().message();
    for (const Tensor& tensor : catalog.value().tensors)
      if (tensor.name == name) return tensor.fault;
    return "not there";
  };
  EXPECT_EQ(fault("v2.zip", "delta"), "packed with 'delta', which is not supported");
  EXPECT_EQ(fault("v3.zip", "sharded"), "in shards ('sharding_indexed'), which are not read");
  EXPECT_EQ(told_folder({{"manifest.ocdbt", "\x0c\xdb"}, {"d/0123", "x"}}),
            "! nothing in it could be read; 'zarr': an OCDBT store, which is not read; Orbax "
            "writes plain zarr with use_ocdbt=False");
  EXPECT_EQ(told_folder({{".zgroup", "{}"}}),
            "! nothing in it could be read; 'zarr': no zarr array in it");
}

// A version 2 array of four float32 in chunks of two, with these words in place of its own.
std::string zarray(const std::string& from = "", const std::string& to = "") {
  std::string json = R"({"zarr_format":2,"shape":[4],"chunks":[2],"dtype":"<f4","compressor":null,)"
                     R"("fill_value":9,"order":"C","filters":null})";
  if (!from.empty()) json.replace(json.find(from), from.size(), to);
  return json;
}
const std::string kChunk = test_files::f32(1) + test_files::f32(2);

std::string told_array(const std::string& json, const std::string& chunk = kChunk) {
  return told_folder({{"g/.zgroup", "{}"}, {"g/w/.zarray", json}, {"g/w/1", chunk}});
}

TEST(ZarrStore, FillsWhatIsMissing) { EXPECT_EQ(told_array(zarray()), "w 9 9 1 2"); }

TEST(ZarrStore, SaysWhatIsWrong) {
  EXPECT_EQ(told_array("{"), "w: a key expected at byte 1 of the JSON");
  EXPECT_EQ(told_array(zarray("2,\"shape", "4,\"shape")), "w: zarr_format is not 2");
  EXPECT_EQ(told_array(zarray("<f4", "<M8[ns]")),
            "w: elements of type '<M8[ns]', which are not "
            "read");
  EXPECT_EQ(told_array(zarray("\"<f4\"", "[[\"x\",\"<f4\"]]")),
            "w: elements with fields, which are not read");
  EXPECT_EQ(told_array(zarray("[4]", "[-4]")),
            "w: its shape has a size that is not a whole number");
  EXPECT_EQ(told_array(zarray("[2]", "[2,2]")), "w: chunks of 2 axes in an array of 1");
  EXPECT_EQ(told_array(zarray("[2]", "[0]")), "w: chunks of no size");
  EXPECT_EQ(told_array(zarray("[4]", "[1]")), "w: chunk at [2]: it lies outside the dataset");
  EXPECT_EQ(told_array(zarray("[4]", "[9223372036854775807]")),
            "w: shape [9223372036854775807] has more than 2^40 elements");
  EXPECT_EQ(told_array(zarray("[2]", "[9007199254740993]")),
            "w: a chunk of [9007199254740993] is larger than 1.0 GiB");
  EXPECT_EQ(told_array(zarray("null", "{\"id\":\"pcodec\"}")),
            "w: packed with 'pcodec', which is not supported");
  EXPECT_EQ(told_array(zarray("9", "\"?\"")), "w: its fill value is not understood");
  EXPECT_EQ(told_array(zarray("<f4", "|b1")), "w: its type bool cannot hold its fill value");
}

// Chunks are looked at when they are read.
TEST(ZarrStore, SaysWhatIsWrongWithAChunk) {
  const auto read = [](const std::string& packed_with, const std::string& chunk) {
    Archive archive;
    const std::string json = zarray("null", "{\"id\":\"" + packed_with + "\"}");
    archive.files.push_back({".zarray", ByteSource(bytes_of(json))});
    archive.files.push_back({"0", ByteSource(bytes_of(chunk))});
    const Result<Catalog> catalog = open_files(std::move(archive), Limits(), 0);
    if (!catalog.ok()) return "! " + catalog.error().message();
    const Result<Reader> reader = Reader::open(catalog.value().tensors[0].view);
    return reader.ok() ? "" : reader.error().message();
  };
  EXPECT_EQ(read("gzip", test_files::gzip(kChunk)), "");
  EXPECT_EQ(read("gzip", test_files::gzip(kChunk + "more")),
            "chunk at [0]: it does not unpack to the expected 8 bytes");
  EXPECT_EQ(read("gzip", test_files::gzip("few")),
            "chunk at [0]: it does not unpack to the expected 8 bytes");
  EXPECT_EQ(read("zstd", test_files::zstd(kChunk)), "");
  EXPECT_EQ(read("zstd", "junk"),
            "chunk at [0]: the compressed data is damaged: Src size is incorrect");
  EXPECT_EQ(read("blosc", "junk"), "chunk at [0]: blosc: its header is cut short");
}

Files small_store() {
  return {
      {"w/.zarray", zarray("null", "{\"id\":\"gzip\"}")},
      {"w/0", test_files::gzip(kChunk)},
      {"w/1", test_files::gzip(kChunk)},
      {"v/zarr.json", R"({"zarr_format":3,"node_type":"array","shape":[2],"data_type":"float32",)"
                      R"("chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2]}},)"
                      R"("chunk_key_encoding":{"name":"default"},"fill_value":"NaN",)"
                      R"("codecs":[{"name":"bytes","configuration":{"endian":"little"}}]})"},
      {"v/c/0", kChunk}};
}

TEST(ZarrStore, SurvivesEveryCutAndEveryChangedByte) {
  test_folders::damage_everywhere(small_store());
}

TEST(ZarrInfo, KnowsTheNamesOfChunks) {
  const auto index = [](const std::string& json, std::string_view name) {
    const Result<zarr::ArrayInfo> array = zarr::read_version2(Json::parse(json).value());
    return array.ok() ? array.value().grid_index(name) : std::nullopt;
  };
  EXPECT_EQ(index(zarray(), "1"), Shape{1});
  EXPECT_EQ(index(zarray(), "1.0"), std::nullopt);
  EXPECT_EQ(index(zarray(), ""), std::nullopt);
  EXPECT_EQ(index(zarray(), "-1"), std::nullopt);
  EXPECT_EQ(index(zarray(), "99999999999999999999999"), std::nullopt);
  EXPECT_EQ(index(zarray("[4]", "[]"), "0"), std::nullopt);  // Chunks of another rank.
}

}  // namespace
}  // namespace tensordiff
