#include "match/name_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tensordiff {
namespace {

std::vector<NameWords> words_of(const std::vector<std::string>& names) {
  std::vector<NameWords> words;
  for (const std::string& name : names) words.push_back(name_words(name));
  return words;
}

std::string random_name(std::mt19937& generator) {
  constexpr const char* kWords[] = {"attn", "attention", "mlp",   "proj", "projection", "weight",
                                    "q",    "norm",      "layer", "up",   "gate",       "out"};
  std::string name;
  for (std::size_t i = 0; i <= generator() % 5; ++i)
    name += std::string(i ? "." : "") + kWords[generator() % std::size(kWords)];
  return name;
}

TEST(NameIndex, FindsWhatComparingWithAllFinds) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 generator(seed);
    std::vector<std::string> names;
    for (int i = 0; i < 60; ++i) names.push_back(random_name(generator));
    const std::vector<NameWords> words = words_of(names);
    NameIndex index(words);
    for (int i = 0; i < 20; ++i) {
      const std::string name = random_name(generator);
      const Likeliest found = index.find(name_words(name), {.margin = 0.1, .eligible = {}});
      std::vector<double> scores;
      for (const NameWords& other : words) scores.push_back(similarity(name_words(name), other));
      std::ranges::sort(scores, std::ranges::greater());
      SCOPED_TRACE(name);
      EXPECT_DOUBLE_EQ(found.score, scores[0]) << "seed " << seed;
      if (scores[1] > scores[0] - 0.1) {
        EXPECT_DOUBLE_EQ(found.next, scores[1]) << "seed " << seed;
      }
    }
  }
}

TEST(NameIndex, StopsWhereThereAreTooMany) {
  NameIndex index(words_of(std::vector<std::string>(100, "common.word")));
  EXPECT_TRUE(index.find(name_words("common"), {.looks_max = 100, .eligible = {}}).complete);
  EXPECT_FALSE(index.find(name_words("common"), {.looks_max = 99, .eligible = {}}).complete);
}

TEST(NameIndex, LooksOnlyAtWhatCounts) {
  NameIndex index(words_of({"alpha.beta", "alpha"}));
  const auto second = [](std::size_t i) { return i == 1; };
  EXPECT_EQ(index.find(name_words("alpha.beta"), {}).index, 0U);
  EXPECT_EQ(index.find(name_words("alpha.beta"), {.eligible = second}).index, 1U);
  EXPECT_EQ(index.find(name_words("gamma"), {}).score, 0);
  EXPECT_EQ(index.find(name_words("17"), {}).score, 0);
}

}  // namespace
}  // namespace tensordiff
