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
