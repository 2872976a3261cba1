#include "formats/config.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tensordiff
