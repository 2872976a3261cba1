// The tables, what they say of themselves, and that the tree has it as they say.

#include "report/wire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "report/sample_report.h"
#include "report/wire_schema.h"

namespace tensordiff::wire {
namespace {

std::string read(const std::string& name) {
  std::ifstream file(std::string(TENSORDIFF_SOURCE_DIR "/") + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Holds a file to what the tables say; tools/update_schema writes it instead.
void hold(const std::string& name, const std::string& wanted) {
  if (std::getenv("TENSORDIFF_UPDATE"))
    std::ofstream(std::string(TENSORDIFF_SOURCE_DIR "/") + name) << wanted;
  else
    EXPECT_TRUE(read(name) == wanted) << name << " is not as the tables: run tools/update_schema";
}

// The text with what stands between the two marks replaced.
std::string between(const std::string& text, std::string_view first, std::string_view last,
                    const std::string& inside) {
  const std::size_t from = text.find(first), to = text.find(last);
  EXPECT_TRUE(from != std::string::npos && to != std::string::npos && from < to) << first;
  if (from == std::string::npos || to == std::string::npos || to < from) return text;
  return text.substr(0, from + first.size()) + inside + text.substr(to);
}

TEST(Wire, TheTreeHasWhatTheTablesSay) {
  hold("docs/report.schema.json", json_schema());
  hold("web/src/net/wire.ts", page_types());
  hold("docs/output.md", between(read("docs/output.md"), "<!-- fields: tools/update_schema -->\n",
                                 "\n<!-- end of fields -->", field_tables()));
  hold("docs/http-api.md", between(read("docs/http-api.md"), "| `status` | u8 | ",
                                   ". JSON: the word |", status_codes()));
}

template <class Enum>
void expect_words(std::span<const std::string_view> words) {
  for (std::size_t i = 0; i < words.size(); ++i) EXPECT_EQ(words[i], name_of(static_cast<Enum>(i)));
}

TEST(Wire, WordsAreThoseOfTheEnums) {
  expect_words<Verdict>(kVerdicts);
  expect_words<Conclusion>(kConclusionWords);
  expect_words<Novelty>(kNovelties);
  for (std::size_t i = 0; i < kStatuses; ++i) {
    const std::string_view word = name_of(static_cast<Status>(i));
    EXPECT_EQ(std::ranges::count(kRowStatuses, word), 1) << word;
    const auto status = std::ranges::find(pair_fields(), "status", &Field<PairRow>::name);
    EXPECT_EQ(status->type.words[i], word);
  }
}

TEST(Wire, EachFieldIsSaidOnceAndDescribed) {
  for (const Table* table : {&kReportTable, &kPairTable, &kDiffTable, &kFindingTable}) {
    std::set<std::string_view> names;
    for (std::size_t i = 0; i < table->size; ++i) {
      EXPECT_TRUE(names.insert(table->at(i).name).second) << table->at(i).name;
      EXPECT_FALSE(table->at(i).about.empty()) << table->at(i).name;
    }
  }
}

TEST(Wire, KeysAreSpeltInTwoWays) {
  EXPECT_EQ(camel("nonfinite_mismatch"), "nonfiniteMismatch");
  EXPECT_EQ(camel("rel_l2"), "relL2");
  EXPECT_EQ(camel("name_a"), "nameA");
  EXPECT_EQ(camel("mse"), "mse");
}

TEST(Wire, WritesEachKindOfValue) {
  const auto text = [](const Cell& cell) {
    JsonWriter json;
    write(json, cell);
    return json.take();
  };
  EXPECT_EQ(text({}), "null");
  EXPECT_EQ(text(true), "true");
  EXPECT_EQ(text(uint64_t{18446744073709551615U}), "18446744073709551615");
  EXPECT_EQ(text(int64_t{-3}), "-3");
  EXPECT_EQ(text(0.5), "0.5");
  EXPECT_EQ(text(std::string_view("a\"b")), "\"a\\\"b\"");
  const std::vector<uint64_t> counts = {2, 3};
  EXPECT_EQ(text(std::span<const uint64_t>(counts)), "[2,3]");
  EXPECT_EQ(text(as_cell(MaybeText{""})), "null");
}

}  // namespace
}  // namespace tensordiff::wire
