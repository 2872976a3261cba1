// Checkpoints of torch.distributed: chunks put together, and what can be wrong with them.

#include <gtest/gtest.h>

#include "formats/test_folders.h"

namespace tensordiff {
namespace {

using namespace test_folders;

std::string made(std::string_view name, const std::string& state) {
  return global("torch.distributed.checkpoint.metadata", name) + ")\x81" + state + "b";
}
std::string map(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out = "}(";
  for (const auto& [key, value] : entries) out += key + value;
  return out + "u";
}

struct Chunk {
  std::vector<int32_t> offsets, sizes;
  std::string file = "__0_0.distcp";
  std::vector<float> data = {};
};

// A checkpoint of one tensor "w" of float32.
Files dcp(const std::vector<int32_t>& shape, const std::vector<Chunk>& chunks) {
  std::string list = "](", stored;
  std::vector<std::pair<std::string, std::string>> places;
  for (const Chunk& chunk : chunks) {
    list += made("ChunkStorageMetadata",
                 dict({{"offsets", size(chunk.offsets)}, {"sizes", size(chunk.sizes)}}));
    std::string data;
    for (const float value : chunk.data) data += f32(value);
    const auto count = static_cast<int32_t>(chunk.data.size());
    std::vector<int32_t> strides(chunk.sizes.size(), 1);
    for (std::size_t axis = strides.size(); axis-- > 1;)
      strides[axis - 1] = strides[axis] * chunk.sizes[axis];
    const std::string file = torch_zip(
        tensor({storage("FloatStorage", "0", count), 0, chunk.sizes, strides}), {{"0", data}});
    const std::string info =
        made("_StorageInfo", dict({{"relative_path", text(chunk.file)},
                                   {"offset", number(static_cast<int32_t>(stored.size()))},
                                   {"length", number(static_cast<int32_t>(file.size()))}}));
    places.emplace_back(
        made("MetadataIndex", dict({{"fqn", text("w")}, {"offset", size(chunk.offsets)}})), info);
    stored += file;
  }
  const std::string properties =
      made("TensorProperties", tuple({global("torch", "float32"), "\x89"}));
  const std::string entry =
      made("TensorStorageMetadata",
           dict({{"properties", properties}, {"size", size(shape)}, {"chunks", list + "e"}}));
  const std::string root =
      made("Metadata",
           dict({{"state_dict_metadata", dict({{"w", entry}})}, {"storage_data", map(places)}}));
  return {{".metadata", kProto2 + root + "."}, {"__0_0.distcp", stored}};
}

TEST(TorchDcp, PutsChunksTogether) {
  EXPECT_EQ(told_folder(dcp({2, 3}, {{{0, 0}, {2, 1}, "__0_0.distcp", {1, 4}},
                                     {{0, 1}, {2, 2}, "__0_0.distcp", {2, 3, 5, 6}}})),
            "w 1 2 3 4 5 6");
}

TEST(TorchDcp, SaysWhatIsWrong) {
  EXPECT_EQ(told_folder(dcp({3}, {{{0}, {2}, "__0_0.distcp", {1, 2}}})),
            "w: its chunks hold 2 of 3 elements");
  EXPECT_EQ(told_folder(
                dcp({3}, {{{0}, {2}, "__0_0.distcp", {1, 2}}, {{1}, {2}, "__0_0.distcp", {1, 2}}})),
            "w: two of its chunks overlap");
  EXPECT_EQ(told_folder(dcp({2}, {{{1}, {2}, "__0_0.distcp", {1, 2}}})),
            "w: chunk at [1]: it reaches past the tensor's shape [2]");
  EXPECT_EQ(told_folder(dcp({2}, {{{0, 0}, {2, 1}, "__0_0.distcp", {1, 2}}})),
            "w: chunk at [0, 0]: a chunk of other rank than the tensor");
  EXPECT_EQ(told_folder(dcp({2}, {{{0}, {2}, "../secret", {1, 2}}})),
            "w: chunk at [0]: no file '../secret' beside it");
  EXPECT_EQ(told_folder(dcp({2}, {{{0}, {2}, "/etc/passwd", {1, 2}}})),
            "w: chunk at [0]: no file '/etc/passwd' beside it");
  Files cut = dcp({2}, {{{0}, {2}, "__0_0.distcp", {1, 2}}});
  cut[1].second.resize(10);
  EXPECT_TRUE(told_folder(cut).starts_with("w: chunk at [0]: '__0_0.distcp' has 10 bytes, but"));
  EXPECT_EQ(told_folder({{".metadata", kProto2 + "N."}}),
            "! nothing in it could be read; 'torch-dcp': .metadata: not that of a checkpoint: no "
            "state_dict_metadata or storage_data");
  EXPECT_TRUE(told_folder({{".metadata", "junk"}}).starts_with("! nothing in it could be read"));
}

TEST(TorchDcp, SurvivesEveryCutAndEveryChangedByte) {
  damage_everywhere(dcp({2}, {{{0}, {2}, "__0_0.distcp", {1, 2}}}));
}

}  // namespace
}  // namespace tensordiff
