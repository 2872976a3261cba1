#include "diagnose/graph/roles.h"

#include <gtest/gtest.h>

#include "diagnose/site.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

Role role_named(const std::string& a, const std::string& b = "") {
  Site site;
  site.a.place = read_place(a);
  site.b.place = b.empty() ? site.a.place : read_place(b);
  return role_of(site);
}

TEST(StepRoles, ASettingIsOneNumber) {
  Site site;
  site.a.name = site.b.name = "3_scaling";
  site.a.place = site.b.place = read_place("3_scaling");
  ASSERT_EQ(role_of(site), Role::setting);
  site.a.shape = site.b.shape = {2, 16, 8, 8};
  EXPECT_EQ(role_of(site), Role::other);
}

TEST(StepRoles, KnowsTheNamesOfCommonModels) {
  EXPECT_EQ(role_named("3_post_ln_pre_attn"), Role::attention_norm);
  EXPECT_EQ(role_named("model.layers.3.mlp.down_proj"), Role::mlp_output);
  EXPECT_EQ(role_named("model.layers.3.block_sparse_moe"), Role::mlp_output);
  EXPECT_EQ(role_named("model.layers.3"), Role::layer_output);
  EXPECT_EQ(role_named("transformer.h.3.attn.c_attn", "layers.3.q"), Role::query);
  EXPECT_EQ(role_named("encoder.layer.3.attention.output.LayerNorm"), Role::branch_norm);
  EXPECT_EQ(role_named("encoder.layer.3.output.LayerNorm"), Role::branch_norm);
  EXPECT_EQ(role_named("encoder.layer.3.attention.self"), Role::attention_heads);
  EXPECT_EQ(role_named("encoder.layer.3.attention.output"), Role::other);
  EXPECT_EQ(role_named("encoder.layer.3.output"), Role::layer_output);
  EXPECT_EQ(role_named("whatever"), Role::other);
}

TEST(StepRoles, AreThoseOfTheStageWhereNamesTellNothing) {
  Site site;
  site.stage = "pre_mlp";
  EXPECT_EQ(role_of(site), Role::mlp_norm);
}

TEST(StepRoles, AreNoneOfWeights) {
  EXPECT_EQ(role_named("model.layers.3.mlp.down_proj.weight"), Role::other);
}

}  // namespace
}  // namespace tensordiff
