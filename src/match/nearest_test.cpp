#include "match/nearest.h"

#include "match/test_catalogs.h"

namespace tensordiff {
namespace {

// The name nearest to `name`, with how alike they are.
std::string nearest(const std::string& name, const std::vector<Named>& others) {
  const Catalog own = catalog_of({{name, {2, 3}, 1}}), other = catalog_of(others);
  std::vector<Leftover> left = {{0}};
  find_nearest(own, {other, {}, 0.6}, left);
  if (!left[0].nearest) return "none";
  return fmt::format("{} {:.2f}", other.tensors[*left[0].nearest].name, left[0].likeness);
}

// Why the tensor `name`, of 2 by 3, has no partner among others of which none has one.
std::string_view why(const std::string& name, const std::vector<Named>& others) {
  const Catalog own = catalog_of({{name, {2, 3}, 1}}), other = catalog_of(others);
  std::vector<Leftover> left = {{0}}, free;
  for (std::size_t i = 0; i < others.size(); ++i) free.push_back({i});
  find_nearest(own, {other, free, 0.6}, left);
  return left[0].why;
}

TEST(Nearest, SaysWhyItIsNoPair) {
  EXPECT_EQ(why("h.attn.query", {{"h.attn.query", {4}, 1}}), "it has another size");
  EXPECT_EQ(why("h.1.query", {{"h.2.query", {6}, 1}}), "it has another number");
  EXPECT_EQ(why("h.attn.query", {{"h.attn.query.a", {6}, 1}, {"h.attn.query.b", {6}, 1}}),
            "another name is as similar");
  EXPECT_EQ(why("h.attn.query", {{"x.y.query", {6}, 1}}), "they are not similar enough");
  EXPECT_EQ(why("h.attn.query", {{"other", {2, 3}, 1}}), "");

  const Catalog both = catalog_of(std::vector<Named>{{"query", {4}, 1}});
  std::vector<Leftover> left = {{0}};
  find_nearest(both, {both, {}, 0.6}, left);
  EXPECT_EQ(left[0].why, "it has a partner");
}

TEST(Nearest, GoesByWordsThenByNumbersThenByShape) {
  EXPECT_EQ(nearest("h.1.attn.out", {{"h.0.mlp.in", {4}, 1}, {"l.1.attention.out", {4}, 2}}),
            "l.1.attention.out 0.60");
  EXPECT_EQ(nearest("h.1.attn", {{"h.0.attn", {4}, 1}, {"h.1.attn_", {4}, 2}}), "h.1.attn_ 1.00");
  EXPECT_EQ(nearest("x", {{"y", {4}, 1}, {"z", {2, 3}, 2}}), "z 0.00");
  EXPECT_EQ(nearest("x", {{"y", {4}, 1}}), "none");
  EXPECT_EQ(nearest("x", {}), "none");
}

// However many there are: names that differ in their numbers are one kind.
TEST(Nearest, IsFoundAmongManyNames) {
  std::vector<Named> many;
  for (int i = 0; i < 3000; ++i) many.push_back({fmt::format("block.{}.out", i), {1}, 1});
  EXPECT_EQ(nearest("block.2999.output", many), "block.2999.out 0.90");
}

}  // namespace
}  // namespace tensordiff
