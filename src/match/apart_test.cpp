#include "match/apart.h"

#include <gtest/gtest.h>

namespace tensordiff {
namespace {

Catalog catalog(std::vector<std::string> names) {
  Catalog made;
  for (std::string& name : names) made.tensors.push_back(broken_tensor(std::move(name), ""));
  return made;
}

TEST(Apart, OnlyThePairThatIsNamedLosesItsPartner) {
  const Catalog a = catalog({"x", "y"}), b = catalog({"x", "y"});
  Matching matching;
  for (std::size_t i = 0; i < 2; ++i) {
    Pair pair;
    pair.a = pair.b = i;
    matching.pairs.push_back(pair);
  }
  take_apart({{"x", "y"}, {"y", "y"}, {"gone", "y"}}, a, b, matching);
  ASSERT_EQ(matching.pairs.size(), 1u);
  EXPECT_EQ(matching.pairs[0].a, 0u);
  ASSERT_EQ(matching.only_a.size(), 1u);
  EXPECT_EQ(matching.only_a[0].tensor, 1u);
  ASSERT_EQ(matching.only_b.size(), 1u);
}

}  // namespace
}  // namespace tensordiff
