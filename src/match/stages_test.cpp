#include "match/stages.h"

#include "match/ranks.h"
#include "match/test_catalogs.h"

namespace tensordiff {
namespace {

Names joined(const Names& names, Names* notes = nullptr) {
  Catalog catalog = catalog_of(names);
  const RankGroups groups = group_ranks(catalog, 'a');
  if (notes) *notes = groups.notes;
  Names result;
  for (const Tensor& tensor : catalog.tensors)
    result.push_back(tensor.shards.empty()
                         ? tensor.name
                         : fmt::format("{} x{}", tensor.name, tensor.shards.size()));
  return result;
}

TEST(Stages, ThatCountFromZeroFollowEachOther) {
  Names notes;
  EXPECT_EQ(joined({"pp_rank_0/embed", "pp_rank_0/layers.0.w", "pp_rank_0/layers.1.w",
                    "pp_rank_1/layers.0.w", "pp_rank_1/layers.1.w", "pp_rank_1/norm"},
                   &notes),
            (Names{"embed", "layers.0.w", "layers.1.w", "layers.2.w", "layers.3.w", "norm"}));
  EXPECT_EQ(notes, Names{"A was put together from 2 stages of a pipeline, each of which counts its "
                         "layers from 0"});
  EXPECT_EQ(joined({"pp0/0_query", "pp1/0_query"}), (Names{"0_query", "1_query"}));
}

TEST(Stages, WithNumbersOfTheWholeModelKeepThem) {
  EXPECT_EQ(joined({"pp_rank_0/layers.0.w", "pp_rank_1/layers.1.w"}),
            (Names{"layers.0.w", "layers.1.w"}));
}

// Megatron: mp_rank_{tensor}_{pipeline}.
TEST(Stages, StandBesideRanks) {
  EXPECT_EQ(joined({"mp_rank_00_000/layers.0.w", "mp_rank_01_000/layers.0.w",
                    "mp_rank_00_001/layers.0.w", "mp_rank_01_001/layers.0.w"}),
            (Names{"layers.0.w x2", "layers.1.w x2"}));
  EXPECT_EQ(joined({"mp_rank_00_000/layers.0.w", "mp_rank_00_001/layers.0.w"}),
            (Names{"layers.0.w", "layers.1.w"}));
  EXPECT_EQ(joined({"tp_rank_0_pp_rank_0/layers.0.w", "tp_rank_1_pp_rank_0/layers.0.w",
                    "tp_rank_0_pp_rank_1/layers.0.w", "tp_rank_1_pp_rank_1/layers.0.w"}),
            (Names{"layers.0.w x2", "layers.1.w x2"}));
}

TEST(Stages, KeepWhatTwoOfThemHaveUnderOneName) {
  EXPECT_EQ(joined({"pp_rank_0/embed", "pp_rank_0/layers.0.w", "pp_rank_1/layers.0.w",
                    "pp_rank_1/embed"}),
            (Names{"embed", "layers.0.w", "layers.1.w", "pp_rank_1/embed"}));
}

TEST(Stages, OfOneAreLeftAsTheyAre) {
  EXPECT_EQ(joined({"pp_rank_0/layers.0.w", "w"}), (Names{"pp_rank_0/layers.0.w", "w"}));
}

}  // namespace
}  // namespace tensordiff
