// Real and hostile files out of other projects' test suites, when they are at hand: each one is
// read or refused with a reason, and none leaves a trace.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "formats/test_files.h"

namespace tensordiff {
namespace {

namespace fs = std::filesystem;

fs::path corpus() {
  const char* elsewhere = std::getenv("TENSORDIFF_CORPUS");
  return elsewhere ? elsewhere : fs::path(TENSORDIFF_SOURCE_DIR) / "../shared/corpus";
}

std::set<std::string> listing(const fs::path& folder) {
  std::set<std::string> paths;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    paths.insert(entry.path().string());
  return paths;
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

class Corpus : public testing::TestWithParam<std::string_view> {};

TEST_P(Corpus, IsReadOrRefusedAndLeavesNoTrace) {
  const fs::path folder = corpus() / GetParam();
  if (!fs::exists(folder)) GTEST_SKIP() << "no corpus at " << folder;
  const std::set<std::string> before = listing(folder);
  const std::set<std::string> here = names_in(fs::current_path());
  for (const std::string& path : before) {
    if (!fs::is_regular_file(path)) continue;
    SCOPED_TRACE(path);
    const Result<Catalog> catalog = open_model(path);
    if (catalog.ok()) {
      test_files::read_all(catalog.value());
    } else {
      EXPECT_FALSE(catalog.error().message().empty());
    }
  }
  EXPECT_EQ(listing(folder), before);
  EXPECT_EQ(names_in(fs::current_path()), here);
}

INSTANTIATE_TEST_SUITE_P(Projects, Corpus,
                         testing::Values("mmaitre314__picklescan", "promptfoo__modelaudit",
                                         "protectai__modelscan", "numpy__numpy", "golang__go",
                                         "zip-rs__zip2", "alexcrichton__tar-rs", "tracel-ai__burn",
                                         "huggingface__candle"),
                         [](const auto& project) {
                           std::string name(project.param);
                           std::ranges::replace_if(
                               name, [](unsigned char c) { return !std::isalnum(c); }, '_');
                           return name;
                         });

}  // namespace
}  // namespace tensordiff
