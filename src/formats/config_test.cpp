#include "formats/config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace tensordiff {
namespace {

std::map<std::string, std::string> config(std::string json, Limits limits = {}) {
  Catalog catalog;
  add_config(ByteSource(bytes_of(std::move(json))), limits, catalog);
  std::map<std::string, std::string> found;
  for (const Metadata& entry : catalog.metadata) found[entry.key] = entry.value;
  return found;
}

TEST(Config, BecomesMetadata) {
  const auto found = config(R"({"hidden_size": 64, "tie": true, "eps": 1e-5, "none": null,
                               "rope": {"type": "yarn"}, "heads": [1, -2]})");
  const std::map<std::string, std::string> expected = {
      {"config.json: hidden_size", "64"}, {"config.json: tie", "true"},
      {"config.json: eps", "1e-05"},      {"config.json: none", "null"},
      {"config.json: rope.type", "yarn"}, {"config.json: heads", "[1, -2]"}};
  EXPECT_EQ(found, expected);
}

TEST(Config, ThatCannotBeReadIsNoFaultOfTheModel) {
  EXPECT_TRUE(config("{").at("config.json").starts_with("not read: "));
  Limits small;
  small.json_bytes_max = 4;
  EXPECT_EQ(config("{\"a\": 1}", small).at("config.json"), "not read: longer than 4 B");
}

TEST(Config, BelongsToAModelAndNotToWhatLiesBeside) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "tensordiff_companions";
  fs::create_directories(folder);
  std::ofstream(folder / "config.json") << "{}";
  std::ofstream(folder / "w.safetensors.index.json")
      << R"({"weight_map": {"a": "part_one.safetensors"}})";
  const auto belongs = [&](const std::string& name) {
    return companion((folder / name).string(), "config.json").has_value();
  };
  EXPECT_TRUE(companion(folder.string(), "config.json"));
  EXPECT_TRUE(belongs("w.safetensors.index.json"));
  EXPECT_TRUE(belongs("part_one.safetensors"));
  EXPECT_TRUE(belongs("model.safetensors"));
  EXPECT_TRUE(belongs("llama-00002-of-00003.safetensors"));
  EXPECT_FALSE(belongs("dump.npz"));
  EXPECT_FALSE(belongs("part_two.safetensors"));
  EXPECT_FALSE(companion(folder.string(), "trainer_state.json"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tensordiff
