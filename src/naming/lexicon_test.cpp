#include "naming/lexicon.h"

#include <gtest/gtest.h>

#include <map>

#include "base/text.h"

namespace tensordiff {
namespace {

using Rows = std::span<const RoleRow> Convention::*;

// All spellings of one kind, each with what the first convention that has it reads it as.
void expect_one_role_each(Rows rows) {
  std::map<std::string_view, std::pair<Role, std::string_view>> seen;
  for (const Convention* convention : conventions::kAll)
    for (const RoleRow& row : convention->*rows)
      for (const std::string_view spelling : split(row.spellings, ' ')) {
        const auto [at, added] = seen.emplace(spelling, std::pair(row.role, convention->name));
        EXPECT_EQ(at->second.first, row.role)
            << "'" << spelling << "' in " << at->second.second << " and in " << convention->name;
        EXPECT_FALSE(spelling.empty()) << "two spaces in a row of " << convention->name;
      }
}

TEST(Lexicon, ReadsEachSpellingAsOneRole) {
  expect_one_role_each(&Convention::in_layer);
  expect_one_role_each(&Convention::outside);
  expect_one_role_each(&Convention::endings);
  expect_one_role_each(&Convention::stages);
}

TEST(Lexicon, MakesThreeRowsOfOneForQueryKeyAndValue) {
  const Lexicon& lexicon = Lexicon::all();
  EXPECT_EQ(lexicon.in_layer("self.attn.q.proj").role, Role::query);
  EXPECT_EQ(lexicon.in_layer("self.attn.k.proj").role, Role::key);
  EXPECT_EQ(lexicon.in_layer("attention.self.value").role, Role::value);
  EXPECT_EQ(lexicon.in_layer("attn.k.norm").role, Role::key_norm);
  EXPECT_EQ(lexicon.in_layer("cross.attn.v").role, Role::cross_value);
  EXPECT_EQ(lexicon.stage("value.final").role, Role::value_final);
}

TEST(Lexicon, KeepsLayersAndTheRestApart) {
  const Lexicon& lexicon = Lexicon::all();
  EXPECT_EQ(lexicon.outside("wte").role, Role::embedding);
  EXPECT_FALSE(lexicon.outside("self.attn.k.proj").found);
  EXPECT_EQ(lexicon.in_layer("").role, Role::layer_output);
  EXPECT_TRUE(lexicon.is_layer_word("blk"));
  EXPECT_TRUE(lexicon.is_wrapper("transformer"));
}

}  // namespace
}  // namespace tensordiff
