// tensordiff show: the table, one tensor at length, and JSON.

#include "cli/show_text.h"
#include "cli/tensor_facts.h"
#include "cli/test_command.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

const std::string kDump = data("parity/layer_offset.zip");

TEST(ShowCommand, ListsTheTensorsOfAFile) {
  const Ran ran = run(commands::show, {kDump});
  EXPECT_EQ(ran.status, kSame) << ran.err;
  EXPECT_TRUE(ran.says("3_query"));
  EXPECT_TRUE(ran.says("[20, 128]"));
}

TEST(ShowCommand, ShowsOneTensorAtLength) {
  const Ran ran = run(commands::show, {kDump, "3_query", "--values", "3"});
  EXPECT_TRUE(ran.says("3_query  f32 [20, 128], 2,560 elements, 10 KiB")) << ran.out;
  EXPECT_TRUE(ran.says("values: 3 of 2,560")) << ran.out;
  EXPECT_TRUE(run(commands::show, {kDump, "3_query", "--find", ">2.5"}).says("found: 43"));
}

TEST(ShowCommand, NamesWhatThereIsInstead) {
  const Ran ran = run(commands::show, {kDump, "nothing"});
  EXPECT_EQ(ran.status, kTrouble);
  EXPECT_TRUE(ran.complains("no tensor 'nothing'; there is '3_key', '3_key_final'")) << ran.err;
  EXPECT_TRUE(run(commands::show, {}).complains("show needs a file"));
}

TEST(ShowCommand, WritesJson) {
  const Ran ran =
      run(commands::show, {kDump, "3_query", "--values", "2", "--find", ">3.7", "-o", "json"});
  const Result<Json> json = Json::parse(ran.out);
  ASSERT_TRUE(json.ok());
  const Json& tensor = json.value()["tensors"][0];
  EXPECT_EQ(tensor["name"].string(), "3_query");
  EXPECT_EQ(tensor["elements"].u64(), 2560U);
  EXPECT_EQ(tensor["values"].array().size(), 2U);
  EXPECT_EQ(tensor["found"]["count"].u64(), tensor["found"]["first"].array().size());
  EXPECT_EQ(tensor["stats"]["nan"].u64(), 0U);
}

TEST(TensorFacts, LooksOnlyWhereTheSliceSays) {
  const Tensor tensor{"w", f32_view({2, 3}, {1, 2, 3, 4, 5, 6}), ""};
  FactsWanted wanted;
  wanted.stats = true;
  wanted.values = 2;
  wanted.slice = "1,:";
  const TensorFacts facts = gather_facts(tensor, wanted);
  EXPECT_EQ(facts.fault, "");
  EXPECT_EQ(facts.stats->max, 6);
  ASSERT_EQ(facts.values.size(), 2 * sizeof(float));
  EXPECT_EQ(reinterpret_cast<const float*>(facts.values.data())[0], 4);
}

TEST(TensorFacts, SaysWhatIsWrongWithASlice) {
  const Tensor tensor{"w", f32_view({2, 3}, {1, 2, 3, 4, 5, 6}), ""};
  FactsWanted wanted;
  wanted.values = 1;
  wanted.slice = "7,:";
  EXPECT_NE(gather_facts(tensor, wanted).fault, "");
  wanted.slice = "";
  EXPECT_EQ(gather_facts({"w", {}, "cut short"}, wanted).fault, "cut short");
}

}  // namespace
}  // namespace tensordiff
