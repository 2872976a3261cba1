#include "report/metadata.h"

#include <gtest/gtest.h>

#include "report/renderer.h"
#include "report/sample_report.h"

namespace tensordiff {
namespace {

Catalog with(std::string format, std::vector<Metadata> metadata) {
  Catalog catalog;
  catalog.format = std::move(format);
  catalog.metadata = std::move(metadata);
  return catalog;
}

TEST(Metadata, ListsWhatDiffersByKey) {
  const Catalog a = with("gguf", {{"same", "1"}, {"changed", "old"}, {"gone", "x"}});
  const Catalog b = with("gguf", {{"new", "y"}, {"changed", "new"}, {"same", "1"}});
  const auto changes = list_metadata_changes(a, b);
  ASSERT_EQ(changes.size(), 3U);
  EXPECT_EQ(changes[0].key, "changed");
  EXPECT_EQ(changes[0].a, "old");
  EXPECT_EQ(changes[0].b, "new");
  EXPECT_EQ(changes[1].key, "gone");
  EXPECT_FALSE(changes[1].b);
  EXPECT_EQ(changes[2].key, "new");
  EXPECT_FALSE(changes[2].a);
}

TEST(Metadata, OfOtherFormatsIsComparedWhereBothHaveIt) {
  const Catalog a = with("safetensors", {{"format", "pt"}, {"config.json: hidden_size", "64"}});
  const Catalog b = with("gguf", {{"general.name", "x"}, {"config.json: hidden_size", "128"}});
  const auto changes = list_metadata_changes(a, b);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].key, "config.json: hidden_size");
}

TEST(Metadata, IsShownAsRowsOfItsOwn) {
  Report report = sample_report();
  report.metadata = {{"version", "1", "2"}, {"author", std::nullopt, "me\x1b[31m"}};
  const std::string text = renderers::text.render(report, {});
  EXPECT_NE(text.find("metadata   version: 1 → 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("metadata   author: only in B, me\\x1b[31m\n"), std::string::npos) << text;
  const std::string json = renderers::report.render(report, {});
  EXPECT_NE(json.find("\"metadata\""), std::string::npos);
  EXPECT_NE(json.find("\"key\": \"version\""), std::string::npos) << json;
}

}  // namespace
}  // namespace tensordiff
