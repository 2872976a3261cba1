// Where the number of a pass stands in names.

#include "dumps/pass_names.h"

#include <gtest/gtest.h>

#include "tensor/test_views.h"

namespace tensordiff {
namespace {

using Texts = std::vector<std::string>;

Catalog named(const Texts& names) {
  Catalog catalog;
  for (const std::string& name : names)
    catalog.tensors.push_back({name, noise_view({4, 8}, 1), ""});
  return catalog;
}

std::string read(const Texts& names) {
  const PassNames passes(named(names));
  if (!passes.any()) return "none";
  const auto [pass, rest] = passes.read(names.back());
  return std::to_string(pass) + " " + rest;
}

TEST(PassNames, AreMarkedByAWord) {
  for (const std::string mark : {"step_1", "step1", "Pass00001", "iteration=1", "iter-1"})
    EXPECT_EQ(read({mark + ".model.layers.0.mlp", mark + ".model.layers.0"}), "1 model.layers.0");
  EXPECT_EQ(read({"rank_0/step_0/layers.0.mlp", "rank_0/step_1/layers.0.mlp"}),
            "1 rank_0/layers.0.mlp");
}

TEST(PassNames, AreTheNumbersOfAList) {
  EXPECT_EQ(read({"0.layers.0.mlp", "0.layers.1.mlp", "1.layers.0.mlp", "1.layers.1.mlp"}),
            "1 layers.1.mlp");
  EXPECT_EQ(read({"0.layers.0.mlp", "0.layers.1.mlp"}), "0 layers.1.mlp");  // Of one pass.
}

// {path: [output of each pass]}, where a module may give a tuple in each.
TEST(PassNames, StandBehindTheNamesWhereHooksAppend) {
  EXPECT_EQ(read({"layers.0.mlp.up_proj.0", "layers.0.mlp.up_proj.1", "layers.1.mlp.up_proj.0",
                  "layers.1.mlp.up_proj.1"}),
            "1 layers.1.mlp.up_proj");
  EXPECT_EQ(read({"layers.0.mlp.up_proj.0", "layers.0.mlp.up_proj.1", "layers.0.self_attn.0.0",
                  "layers.0.self_attn.1.0"}),
            "1 layers.0.self_attn.0");
  // The two tensors of a layer, the parts of a Sequential, lists over layers.
  EXPECT_EQ(read({"layers.0.0", "layers.0.1", "layers.1.0", "layers.1.1"}), "none");
  EXPECT_EQ(read({"layers.0.mlp.0", "layers.0.mlp.1", "layers.0.mlp.2", "layers.0.attn.0"}),
            "none");
  EXPECT_EQ(read({"resid.0", "resid.1", "mlp_out.0", "mlp_out.1"}), "none");
}

TEST(PassNames, AreNoNumbersOfOtherThings) {
  EXPECT_EQ(read({"0.mlp", "1.mlp"}), "none");                     // Layers.
  EXPECT_EQ(read({"0.layers.0.mlp", "1.layers.1.attn"}), "none");  // Nothing twice.
  EXPECT_EQ(read({"1.layers.0.mlp", "2.layers.0.mlp"}), "none");   // No list starts at 1.
  EXPECT_EQ(read({"stepper.layers.0.mlp", "step_x.layers.0.mlp"}), "none");
  EXPECT_EQ(read({"step_99999999999.layers.0.mlp"}), "none");
  EXPECT_EQ(read({""}), "none");
}

}  // namespace
}  // namespace tensordiff
