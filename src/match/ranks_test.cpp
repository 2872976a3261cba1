#include "match/ranks.h"
#include "naming/naming.h"
#include "naming/rank_name.h"

#include "tensor/test_views.h"

namespace tensordiff {
namespace {

TEST(ParseRank, FindsTheRankAndWhatIsLeft) {
  const struct {
    std::string name;
    std::string expected;  // rank|rest
  } cases[] = {
      {"rank_0/0_query", "0|0_query"},
      {"rank0/0_query", "0|0_query"},
      {"run/rank-12/0_query", "12|run/0_query"},
      {"tp_rank_00/w", "0|w"},
      {"tp_1/w", "1|w"},
      {"mp_rank_01_000/model.w", "1|model.w"},
      {"mp_rank_01_002/model.w", "1|pp_2/model.w"},
      {"mp_rank_00_model_states/w", "0|model_states/w"},
      {"model-rank-3/w", "3|model/w"},
      {"model-rank-3-part-0/w", "3|model-part-0/w"},
      {"0_query_rank1", "1|0_query"},
      {"0_query.rank_1", "1|0_query"},
      {"Rank_7/w", "7|w"},
      {"rank_0/tp_rank_1/w", "1|rank_0/w"},
      {"consolidated.01.layers.0.wq", "1|layers.0.wq"},
      {"layer_02-model_01-model_states.attention.dense.bias", "1|layer_02.attention.dense.bias"},
      {"model_01.weight", "none"},
      {"rank_0", "none"},
      {"dp_rank_1/w", "1|w"},
      {"dp_rank_1/tp_rank_2/w", "2|dp_rank_1/w"},
      {"pp_rank_0/w", "none"},
      {"lora_rank_8/w", "none"},
      {"crank_0/w", "none"},
      {"rank_x/w", "none"},
      {"rank_0b/w", "none"},
      {"rank_12345678/w", "none"},
      {"frank/w", "none"},
      {"", "none"},
  };
  for (const auto& [name, expected] : cases) {
    const std::optional<RankName> found = parse_rank(name);
    EXPECT_EQ(found ? fmt::format("{}|{}", found->rank, found->rest) : "none", expected) << name;
  }
}

Catalog catalog_of(const std::vector<std::string>& names) {
  Catalog catalog;
  for (const std::string& name : names) catalog.tensors.push_back({name, counting_view({2}), ""});
  read_places(catalog);
  return catalog;
}

// Names, with the number of shards where there is more than one.
std::vector<std::string> names_of(const Catalog& catalog) {
  std::vector<std::string> names;
  for (const Tensor& tensor : catalog.tensors)
    names.push_back(tensor.shards.empty()
                        ? tensor.name
                        : fmt::format("{} x{}", tensor.name, tensor.shards.size()));
  return names;
}

using Names = std::vector<std::string>;

TEST(GroupRanks, GathersByNameInTheOrderOfRanks) {
  Catalog catalog = catalog_of({"rank_10/w", "rank_2/w", "rank_2/v", "rank_10/v", "other"});
  catalog.tensors[0].view = counting_view({10});
  const RankGroups groups = group_ranks(catalog, 'b');
  EXPECT_EQ(names_of(catalog), (Names{"w x2", "v x2", "other"}));
  EXPECT_EQ(groups.ranks, 2U);
  EXPECT_EQ(catalog.tensors[0].shards[1].shape, Shape{10});
  EXPECT_EQ(groups.notes, (Names{"B was gathered from 2 ranks",
                                 "B: rank numbers go up to 10, so 9 ranks are missing"}));
}

TEST(GroupRanks, LeavesOneRankAsItIs) {
  Catalog catalog = catalog_of({"rank_0/w", "rank_0/v"});
  EXPECT_EQ(group_ranks(catalog, 'a').ranks, 1U);
  EXPECT_EQ(names_of(catalog), (Names{"rank_0/w", "rank_0/v"}));
}

// Copies are neighbours: both data parallel ranks of the first tensor parallel one come first.
TEST(GroupRanks, GathersDataParallelRanksBesideTensorParallelOnes) {
  Catalog catalog = catalog_of({"dp_rank_0/tp_rank_0/w", "dp_rank_0/tp_rank_1/w",
                                "dp_rank_1/tp_rank_0/w", "dp_rank_1/tp_rank_1/w"});
  for (uint64_t i = 0; i < 4; ++i) catalog.tensors[i].view = counting_view({10 + i});
  const RankGroups groups = group_ranks(catalog, 'b');
  ASSERT_EQ(names_of(catalog), (Names{"w x4"}));
  EXPECT_EQ(groups.ranks, 2U);
  EXPECT_EQ(groups.notes, (Names{"B was gathered from 2 x 2 ranks"}));
  Names sizes;
  for (const View& shard : catalog.tensors[0].shards)
    sizes.push_back(std::to_string(shard.shape[0]));
  EXPECT_EQ(sizes, (Names{"10", "12", "11", "13"}));
}

TEST(GroupRanks, SaysWhatSomeRanksDoNotHave) {
  Catalog catalog = catalog_of({"rank_0/w", "rank_1/w", "rank_0/head"});
  const RankGroups groups = group_ranks(catalog, 'a');
  EXPECT_EQ(names_of(catalog), (Names{"w x2", "head"}));
  EXPECT_EQ(groups.notes.back(), "A has 'head' on rank 0 only");
}

TEST(GroupRanks, GathersNothingUnderANameThatIsTaken) {
  Catalog catalog = catalog_of({"rank_0/w", "rank_1/w", "w", "rank_0/v", "rank_1/v"});
  group_ranks(catalog, 'a');
  EXPECT_EQ(names_of(catalog), (Names{"rank_0/w", "rank_1/w", "w", "v x2"}));
}

TEST(GroupRanks, NamesTheRankThatCannotBeRead) {
  Catalog catalog = catalog_of({"rank_0/w"});
  catalog.tensors.push_back(broken_tensor("rank_1/w", "cut short"));
  group_ranks(catalog, 'a');
  EXPECT_EQ(catalog.tensors[0].fault, "rank 1: cut short");
}

// Mixtral's files share the tensors of a model out among them: nothing is cut.
TEST(GroupRanks, TakesFilesWithoutACommonTensorForOneModel) {
  Catalog catalog;
  catalog.tensors.push_back({"consolidated.00.norm", counting_view({2}), ""});
  catalog.tensors.push_back({"consolidated.01.output", counting_view({2}), ""});
  const RankGroups groups = group_ranks(catalog, 'a');
  EXPECT_EQ(groups.ranks, 1);
  EXPECT_TRUE(groups.notes.empty());
  EXPECT_EQ(catalog.tensors[0].name, "norm");
  EXPECT_EQ(catalog.tensors[1].name, "output");
}

TEST(GroupRanks, LaysFlatParametersInARow) {
  Catalog catalog;
  catalog.tensors.push_back({"rank_0.layers.0._flat_param", f32_view({2}, {1, 2}), ""});
  catalog.tensors.push_back({"rank_1.layers.0._flat_param", f32_view({2}, {3, 4}), ""});
  group_ranks(catalog, 'a');
  ASSERT_EQ(catalog.tensors.size(), 1);
  EXPECT_EQ(catalog.tensors[0].name, "layers.0._flat_param");
  EXPECT_TRUE(catalog.tensors[0].shards.empty());
  EXPECT_EQ(values_of(catalog.tensors[0].view), (std::vector<float>{1, 2, 3, 4}));
}

// FSDP's local_0.pt and local_1.pt: the number of a file is the rank, where all of them hold the
// same flat parameters.
TEST(GroupRanks, TakesNumberedFilesOfFlatParametersForRanks) {
  const auto gathered = [](std::string_view last, std::string_view format) {
    Catalog catalog;
    catalog.format = format;
    catalog.tensors.push_back({"local_0._flat_param", f32_view({2}, {1, 2}), ""});
    catalog.tensors.push_back({std::string(last), f32_view({2}, {3, 4}), ""});
    group_ranks(catalog, 'a');
    return catalog;
  };
  const Catalog whole = gathered("local_1._flat_param", "folder");
  ASSERT_EQ(whole.tensors.size(), 1);
  EXPECT_EQ(whole.tensors[0].name, "_flat_param");
  EXPECT_EQ(values_of(whole.tensors[0].view), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(gathered("local_1._flat_param", "torch").tensors.size(), 2);
  EXPECT_EQ(gathered("local_2._flat_param", "folder").tensors.size(), 2);
  EXPECT_EQ(gathered("local_1.layers._flat_param", "folder").tensors.size(), 2);
  EXPECT_EQ(gathered("other_1._flat_param", "folder").tensors.size(), 2);
}

TEST(GroupRanks, GathersTheNamesThatTensorsArePairedBy) {
  Catalog catalog;
  for (const char* rank : {"tp_0.", "tp_1."}) {
    catalog.tensors.push_back({std::string(rank) + "x.qweight", counting_view({2}), ""});
    catalog.tensors.back().known_as = std::string(rank) + "x.weight";
  }
  group_ranks(catalog, 'a');
  ASSERT_EQ(catalog.tensors.size(), 1);
  EXPECT_EQ(catalog.tensors[0].pairing_name(), "x.weight");
}

}  // namespace
}  // namespace tensordiff
