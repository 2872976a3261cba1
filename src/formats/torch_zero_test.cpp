// ZeRO: parameters put together from the pieces of ranks, and what can be wrong with them.

#include <gtest/gtest.h>

#include "formats/test_folders.h"

namespace tensordiff {
namespace {

using namespace test_folders;

std::string flat(int32_t count, std::string_view key) {
  return tensor({storage("FloatStorage", key, count), 0, {count}, {1}});
}
std::string pieces(int32_t stage, std::string_view key, const std::vector<float>& values) {
  std::string data;
  for (const float value : values) data += f32(value);
  const std::string list = "](" + flat(static_cast<int32_t>(values.size()), "0") + "e";
  return torch_zip(dict({{"optimizer_state_dict",
                          dict({{"zero_stage", number(stage)}, {std::string(key), list}})}}),
                   {{"0", data}});
}
std::string states(const std::vector<std::pair<std::string, std::string>>& shapes) {
  return torch_zip(dict({{"module", "}"}, {"param_shapes", "](" + dict(shapes) + "e"}}), {});
}
const std::string kStage2 = "single_partition_of_fp32_groups", kStage3 = "fp32_flat_groups";
const std::string kRank0 = "zero_pp_rank_0_mp_rank_00_optim_states.pt";
const std::string kRank1 = "zero_pp_rank_1_mp_rank_00_optim_states.pt";
const std::string kStates = "mp_rank_00_model_states.pt";
const std::string kStates0 = "zero_pp_rank_0_mp_rank_00_model_states.pt";

TEST(TorchZero, CutsGroupsAcrossRanks) {
  EXPECT_EQ(told_folder({{kStates, states({{"a", size({3})}, {"b", size({2, 2})}})},
                         {kRank0, pieces(2, kStage2, {1, 2, 3, 4})},
                         {kRank1, pieces(2, kStage2, {5, 6, 7, 0})}}),
            "a 1 2 3; b 4 5 6 7");
}

// DeepSpeed has pickled the stage as a member of an enum since 0.7.
TEST(TorchZero, ReadsTheStageFromAnEnum) {
  const std::string stage =
      call(global("deepspeed.runtime.zero.config", "ZeroStageEnum"), {number(2)});
  const std::string list = "](" + flat(2, "0") + "e";
  const std::string file =
      torch_zip(dict({{"optimizer_state_dict", dict({{"zero_stage", stage}, {kStage2, list}})}}),
                {{"0", f32(1) + f32(2)}});
  EXPECT_EQ(told_folder({{kStates, states({{"a", size({2})}})}, {kRank0, file}}), "a 1 2");
}

TEST(TorchZero, GivesEachRankItsShareInStage3) {
  EXPECT_EQ(told_folder({{kStates0, states({{"a", size({3})}, {"b", size({2})}})},
                         {kRank0, pieces(3, kStage3, {1, 2, 8})},
                         {kRank1, pieces(3, kStage3, {3, 0, 9})}}),
            "a 1 2 3; b 8 9");
}

TEST(TorchZero, SaysWhatIsWrong) {
  EXPECT_EQ(
      told_folder({{kStates, states({{"a", size({9})}})}, {kRank0, pieces(2, kStage2, {1, 2})}}),
      "a: the ranks hold 2 of its 9 elements");
  EXPECT_EQ(
      told_folder({{kStates0, states({{"a", size({9})}})}, {kRank0, pieces(3, kStage3, {1, 2})}}),
      "a: a rank's pieces end before it");
  EXPECT_EQ(told_folder({{"zero_pp_rank_0_optim_states.pt", pieces(2, kStage2, {1, 2})}}),
            "optimizer_state_dict.zero_stage 2; "
            "optimizer_state_dict.single_partition_of_fp32_groups.0 1 2");
  EXPECT_EQ(told_folder({{kRank0, pieces(2, kStage2, {1, 2})}}),
            "! nothing in it could be read; 'torch-zero': mp_rank_00: no file of model states "
            "beside the optimizer's");
  EXPECT_EQ(told_folder({{kStates, states({})}, {kRank0, pieces(4, kStage2, {1})}}),
            "! nothing in it could be read; 'torch-zero': " + kRank0 +
                ": no ZeRO stage of 1, 2 or 3 in it");
  EXPECT_EQ(told_folder({{kStates, states({})}, {kRank0, pieces(2, "other", {1})}}),
            "! nothing in it could be read; 'torch-zero': " + kRank0 +
                ": no list 'single_partition_of_fp32_groups' in it");
  EXPECT_EQ(told_folder({{kStates, states({})},
                         {kRank0, pieces(2, kStage2, {1})},
                         {kRank1, pieces(3, kStage3, {1})}}),
            "! nothing in it could be read; 'torch-zero': " + kRank1 +
                ": its ZeRO stage is not that of the other files");
}

TEST(TorchZero, SurvivesEveryCutAndEveryChangedByte) {
  damage_everywhere({{kStates, states({{"a", size({2})}})}, {kRank0, pieces(2, kStage2, {1, 2})}});
}

}  // namespace
}  // namespace tensordiff
