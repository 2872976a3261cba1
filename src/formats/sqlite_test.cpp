#include "formats/sqlite.h"

#include <gtest/gtest.h>

#include "formats/test_files.h"

namespace tensordiff {
namespace {

using namespace test_files;

std::string steps() { return read_file(data_path("../dumps/steps.db")); }

SqliteFile opened(std::string file) {
  Result<SqliteFile> result = SqliteFile::open(bytes_of(std::move(file)));
  EXPECT_TRUE(result.ok()) << result.error().message();
  return std::move(result).value();
}

TEST(Sqlite, KnowsTheColumnsOfATable) {
  const SqliteFile file = opened(steps());
  const Result<SqliteTable> tensors = file.table("tensors");
  ASSERT_TRUE(tensors.ok());
  EXPECT_EQ(tensors.value().columns,
            (std::vector<std::string>{"step", "name", "value", "devicetype", "tracedproducer",
                                      "tracedconsumers"}));
  EXPECT_EQ(tensors.value().column("value"), 2U);
  EXPECT_EQ(tensors.value().column("primary"), SIZE_MAX);
  EXPECT_EQ(file.table("other").error().message(), "it has no table 'other'");
}

TEST(Sqlite, GivesRowsInOrder) {
  const SqliteFile file = opened(steps());
  const SqliteTable table = file.table("Tensors").value();
  std::string seen;
  const Result<void> walked = file.each_row(table, [&](const SqliteRow& row) -> Result<void> {
    seen += fmt::format("{} {} {} ", *row.integer(0), row.text(1).value(),
                        row.blob(2).open().value().size());
    EXPECT_FALSE(row.integer(1));
    EXPECT_FALSE(row.text(0).ok());
    EXPECT_FALSE(row.is_blob(99));
    return {};
  });
  EXPECT_TRUE(walked.ok());
  EXPECT_EQ(seen, "0 a 21 0 b 611 1 a 21 ");
}

// Each place where a page is named is pointed at each page: a walk ends, and says why.
TEST(Sqlite, PagesThatAreNamedTwiceEndTheWalk) {
  const SqliteTable table = opened(steps()).table("Tensors").value();
  const std::string whole = steps();
  std::size_t refused = 0;
  for (std::size_t at = 103; at + 4 < whole.size(); ++at) {
    std::string file = whole;
    file.replace(at, 4, std::string_view("\0\0\0\2", 4));
    const SqliteFile changed = opened(std::move(file));
    uint64_t rows = 0;
    const Result<void> walked = changed.each_row(table, [&](const SqliteRow& row) -> Result<void> {
      ++rows;
      if (row.is_blob(2)) return row.blob(2).open().ok() ? Result<void>() : Error("no blob");
      return {};
    });
    refused += !walked.ok();
    EXPECT_LT(rows, 200U);
  }
  EXPECT_GT(refused, 0U);
}

}  // namespace
}  // namespace tensordiff
