#include "match/nearest.h"

#include "match/test_catalogs.h"

namespace tensordiff {
namespace {

// The name nearest to `name`, with how alike they are.
std::string nearest(const std::string& name, const std::vector<Named>& others) {
  const Catalog own = catalog_of({{name, {2, 3}, 1}}), other = catalog_of(others);
  std::vector<Leftover> left = {{0}};
  find_nearest(own, other, left);
  if (!left[0].nearest) return "none";
  return fmt::format("{} {:.2f}", other.tensors[*left[0].nearest].name, left[0].likeness);
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
