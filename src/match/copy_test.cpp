#include <cmath>

#include "match/test_catalogs.h"

namespace tensordiff {
namespace {

Names paired(const Catalog& a, const Catalog& b) {
  MatchOptions options;
  options.strategies = {"value", "copy"};
  return pairs_text(match(a, b, options).value(), a, b);
}

TEST(Copy, OfASharedWeightHasThePartnerOfTheOther) {
  const Catalog a = catalog_of({{"shared.weight", {32, 16}, 1}, {"wo.weight", {32, 16}, 2}});
  const Catalog b = catalog_of({{"enc.tokens.weight", {32, 16}, 1},
                                {"dec.tokens.weight", {32, 16}, 1},
                                {"out.weight", {32, 16}, 2}});
  EXPECT_EQ(paired(a, b), (Names{"shared.weight=enc.tokens.weight",
                                 "shared.weight=dec.tokens.weight", "wo.weight=out.weight"}));
  EXPECT_EQ(paired(b, a).size(), 3U);
}

// An output head is stored with its axes the other way round.
TEST(Copy, MayHaveItsAxesInAnotherOrder) {
  std::vector<float> stored(512), turned(512);
  for (std::size_t i = 0; i < 512; ++i) {
    stored[i] = static_cast<float>(std::sin(static_cast<double>(i * i)));
    turned[i % 16 * 32 + i / 16] = stored[i];
  }
  Catalog a, b;
  a.tensors.push_back({"shared.weight", f32_view({32, 16}, stored), ""});
  b.tensors.push_back({"tokens.weight", f32_view({32, 16}, stored), ""});
  b.tensors.push_back({"head.weight", f32_view({16, 32}, turned), ""});
  read_places(a);
  read_places(b);
  EXPECT_EQ(paired(a, b).size(), 2U);
}

// A block with one norm for attention and MLP, which another program keeps twice.
TEST(Copy, MayBeSmallInOneLayer) {
  const Catalog a =
      catalog_of(std::vector<Named>{{"h.0.one.weight", {48}, 1}, {"h.1.one.weight", {48}, 2}});
  const Catalog b = catalog_of(std::vector<Named>{{"z.0.ln1.w", {48}, 1},
                                                  {"z.0.ln2.w", {48}, 1},
                                                  {"z.1.ln1.w", {48}, 2},
                                                  {"z.1.ln2.w", {48}, 2}});
  EXPECT_EQ(paired(a, b).size(), 4U);
}

TEST(Copy, IsNoTensorThatIsOneValueAllOver) {
  Catalog a = catalog_of({{"w.weight", {32, 16}, 1}});
  Catalog b = catalog_of({{"v.weight", {32, 16}, 1}});
  for (const char* name : {"norm1.weight", "norm2.weight"})
    a.tensors.push_back({name, f32_view({512}, std::vector<float>(512, 1)), ""});
  b.tensors.push_back({"ln.weight", f32_view({512}, std::vector<float>(512, 1)), ""});
  read_places(a);
  read_places(b);
  EXPECT_EQ(paired(a, b), (Names{"w.weight=v.weight"}));
}

TEST(Copy, IsNoTensorThatDiffersInOneElement) {
  std::vector<float> values = noise(512, 1);
  values[100] += 1;
  Catalog a = catalog_of({{"w.weight", {32, 16}, 1}});
  a.tensors.push_back({"tied.weight", f32_view({32, 16}, values), ""});
  read_places(a);
  EXPECT_EQ(paired(a, catalog_of({{"v.weight", {32, 16}, 1}})).size(), 1U);
}

}  // namespace
}  // namespace tensordiff
