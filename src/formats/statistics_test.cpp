// What is read of statistics that stand for tensors, and what is said of broken ones.

#include <gtest/gtest.h>

#include "formats/pickle/test_pickles.h"
#include "formats/test_files.h"

namespace tensordiff {
namespace {

using namespace test_files;
using test_pickles::told;

const std::string kNote =
    " | statistics in place of tensors: a difference that they do not show is not seen";

std::string probe(const std::string& data) {
  return R"({"task": "statistics", "level": "L0", "data": {)" + data + "}}";
}

TEST(Statistics, ReadsTheLogOfTransformerEngine) {
  EXPECT_EQ(
      told(formats::statistics,
           "INFO - started\n"
           "INFO - decoder.layers.3.mlp.linear_fc1_activation_min  iteration=000002 "
           "value=-1.5\r\n"
           "INFO - decoder.layers.3.mlp.linear_fc1_activation_max  iteration=000002 value=4\n"
           "INFO - decoder.layers.3.mlp.linear_fc1_gradient_max  iteration=000002 value=x\n"),
      "iter_000002/decoder.layers.3.mlp.linear_fc1_activation.statistics f32 [2] 4 -1.5" + kNote);
}

TEST(Statistics, ReadsTheJsonOfMsprobe) {
  const std::string numbers = R"({"Max": 2, "Min": -1, "Mean": 0.5, "Norm": 3})";
  EXPECT_EQ(told(formats::statistics, probe(R"("Module.mlp.M.forward.0": {"output": [)" + numbers +
                                            R"(, null, {"Max": null, "Norm": null}]})")),
            "Module.mlp.M.forward.0.output.0 f32 [4] 2 -1 0.5 3" + kNote);
  EXPECT_EQ(told(formats::statistics,
                 probe(R"("Module.mlp.M.forward.0": {"output": [[)" + numbers + "]]}")),
            "Module.mlp.M.forward.0.output.0.0 f32 [4] 2 -1 0.5 3" + kNote);
}

TEST(Statistics, AreAsExactAsTheElements) {
  const auto of = [](const std::string& dtype, const std::string& norm) {
    return told(formats::statistics,
                probe(R"("Module.m.M.forward.0": {"output": [{"dtype": ")" + dtype +
                      R"(", "Max": 2, "Min": -1, "Mean": 0.5, "Norm": )" + norm + "}]}"));
  };
  EXPECT_EQ(of("torch.bfloat16", "3"), "Module.m.M.forward.0.output.0 bf16 [4] 2 -1 0.5 3" + kNote);
  EXPECT_EQ(of("Float16", "3"), "Module.m.M.forward.0.output.0 f16 [4] 2 -1 0.5 3" + kNote);
  // A norm that its type cannot hold.
  EXPECT_EQ(of("torch.float16", "131072"),
            "Module.m.M.forward.0.output.0 f32 [4] 2 -1 0.5 131072" + kNote);
}

TEST(Statistics, SaysWhatIsWrong) {
  const auto error = [](const std::string& file) { return error_of(formats::statistics, file); };
  EXPECT_EQ(error("nothing"), "no statistics of TransformerEngine or msprobe in it");
  EXPECT_EQ(error(probe("")), "no statistics of tensors in it");
  EXPECT_EQ(error(R"({"task": "tensor", "data": {}})"),
            "no statistics of TransformerEngine or msprobe in it");
  std::string deep = R"("x": {"output": )" + std::string(20, '[') + std::string(20, ']') + "}";
  EXPECT_EQ(error(probe(deep)),
            "x.output.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0: lists nested too deeply");
}

}  // namespace
}  // namespace tensordiff
