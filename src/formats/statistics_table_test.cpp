// What is read of tables of statistics, and what is said of broken ones.

#include <gtest/gtest.h>

#include "formats/pickle/test_pickles.h"
#include "formats/test_files.h"

namespace tensordiff {
namespace {

using namespace test_files;
using test_pickles::told;

const std::string kNote =
    " | statistics in place of tensors: a difference that they do not show is not seen";

std::string read(const std::string& text) { return told(formats::statistics_table, text) + "\n"; }

TEST(StatisticsTable, ReadsCsv) {
  EXPECT_EQ(read("name,shape,dtype,mean,max\r\nmodel.norm,1x2,float32,0.123456,1.5\r\n"),
            "model.norm f32 [2] 1.5 0.123456" + kNote + "\n");
  EXPECT_EQ(read("module;min;max\n\"a;b\";-1.23456;2\n"), "a;b f32 [2] 2 -1.23456" + kNote + "\n");
}

TEST(StatisticsTable, PutsStepRankAndLayerInFrontOfTheName) {
  EXPECT_EQ(read("step\trank\tlayer\tname\tmin\tmax\n3\t1\t7\tmlp_out\t-1.23456\t2\n"),
            "step_3/rank_1/layers.7.mlp_out f32 [2] 2 -1.23456" + kNote + "\n");
  EXPECT_EQ(read("layer,min,max\nlayers.0.mlp,-1.23456,2\n"),
            "layers.0.mlp f32 [2] 2 -1.23456" + kNote + "\n");
}

TEST(StatisticsTable, LeavesOutWhatGoesIn) {
  EXPECT_EQ(read("name,type,min,max\nm,input,-1.23456,9\nm,output,-1.23456,2\n"),
            "m f32 [2] 2 -1.23456" + kNote + "\n");
}

TEST(StatisticsTable, ReadsJson) {
  const std::string row = R"("mean": 0.123456, "max": 1.5)";
  const std::string seen = "model.norm f32 [2] 1.5 0.123456" + kNote + "\n";
  EXPECT_EQ(read(R"({"name": "model.norm", )" + row + "}\n\n"), seen);
  EXPECT_EQ(read(R"([{"name": "model.norm", )" + row + "}]"), seen);
  EXPECT_EQ(read(R"({"model.norm": {"stats": {)" + row + "}}}"), seen);
  EXPECT_EQ(read(R"({"model": {"norm": {)" + row + "}}}"), seen);
}

TEST(StatisticsTable, ReadsTheTreeOfTransformers) {
  const std::string in = R"_({"mean": "tensor(1.2345e-02)", "max": "tensor(3.)"})_";
  const std::string out = R"_({"mean": "tensor(-1.2500e-01)", "max": "tensor(2.)"})_";
  EXPECT_EQ(read(R"_({"module_path": "M", "children": [{"module_path": "M.norm", "inputs": )_" +
                 in + R"_(, "outputs": [)_" + out + "]}]}"),
            "M.norm.0 f16 [2] 2 -0.125" + kNote + "\n");
}

TEST(StatisticsTable, AreAsExactAsTheElementsAndAsWhatIsPrinted) {
  const auto of = [](const std::string& dtype, const std::string& number) {
    return read("name,dtype,mean,max\nm," + dtype + "," + number + ",70000\n");
  };
  EXPECT_EQ(of("torch.bfloat16", "0.5003662"), "m bf16 [2] 70144 0.5" + kNote + "\n");
  EXPECT_EQ(of("torch.float32", "0.5"), "m bf16 [2] 70144 0.5" + kNote + "\n");
  EXPECT_EQ(of("torch.float32", "0.50001234"), "m f32 [2] 70000 0.500012" + kNote + "\n");
}

TEST(StatisticsTable, KeepsRowsThatTellTheSame) {
  EXPECT_EQ(read("name,mean,min,max\na,0.123456,0,1\nb,0,0,1\nids,,0,9\n"),
            "a f32 [3] 1 0.123456 0; b f32 [3] 1 0 0" + kNote +
                " | 1 rows have other statistics than the most, and are left out\n");
}

TEST(StatisticsTable, SaysWhatIsWrong) {
  const auto error = [](const std::string& file) {
    return error_of(formats::statistics_table, file);
  };
  EXPECT_EQ(error("name,shape\na,1\n"), "no table of statistics in it");
  EXPECT_EQ(error("name,mean,max\na,x,y\n"), "no statistics of tensors in it");
  EXPECT_EQ(error(R"({"mean": 1, "max": 2})"), "no statistics of tensors in it");
  EXPECT_NE(error(R"({"a": {"mean": 1, "max": 2})"), "");
  std::string deep = R"({"mean": 1, "max": 2})";
  for (int i = 0; i < 70; ++i) deep = R"({"a": )" + deep + "}";
  EXPECT_NE(error(deep).find("nested too deeply"), std::string::npos);
}

}  // namespace
}  // namespace tensordiff
