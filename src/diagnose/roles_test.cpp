#include "diagnose/roles.h"

#include <gtest/gtest.h>

namespace tensordiff {
namespace {

Role role_named(std::string a, std::string b = "") {
  Site site;
  site.name_a = std::move(a);
  site.name_b = b.empty() ? site.name_a : std::move(b);
  return role_of(site);
}

TEST(StepRoles, KnowsTheNamesOfCommonModels) {
  EXPECT_EQ(role_named("3_post_ln_pre_attn"), Role::attention_norm);
  EXPECT_EQ(role_named("model.layers.3.mlp.down_proj"), Role::mlp_output);
  EXPECT_EQ(role_named("model.layers.3.block_sparse_moe"), Role::mlp_output);
  EXPECT_EQ(role_named("model.layers.3"), Role::block_output);
  EXPECT_EQ(role_named("transformer.h.3.attn.c_attn[0:96]", "layers.3.q"), Role::query);
  EXPECT_EQ(role_named("encoder.layer.3.attention.output.LayerNorm"), Role::branch_norm);
  EXPECT_EQ(role_named("encoder.layer.3.output.LayerNorm"), Role::branch_norm);
  EXPECT_EQ(role_named("encoder.layer.3.attention.self"), Role::attention);
  EXPECT_EQ(role_named("encoder.layer.3.attention.output"), Role::other);
  EXPECT_EQ(role_named("encoder.layer.3.output"), Role::block_output);
  EXPECT_EQ(role_named("whatever"), Role::other);
}

TEST(StepRoles, EveryRoleHasAWord) {
  EXPECT_EQ(name_of(Role::embedding), "embedding");
  EXPECT_EQ(name_of(Role::branch_norm), "norm");
  EXPECT_EQ(name_of(Role::other), "step");
}

TEST(StepRoles, AsksTheOtherNormsWhatANormIs) {
  std::vector<Site> sites(2);
  sites[0].name_a = "layers.0.post_attention_layernorm", sites[0].role = Role::mlp_norm;
  sites[1].name_a = "layers.0.mlp.up_proj", sites[1].role = Role::up;
  settle_norms(sites);
  EXPECT_EQ(sites[0].role, Role::mlp_norm);
  for (const char* other : {"pre_feedforward_layernorm", "post_feedforward_layernorm"}) {
    sites[0].role = Role::mlp_norm;
    sites[1].name_a = std::string("layers.0.") + other;
    settle_norms(sites);
    EXPECT_EQ(sites[0].role, Role::branch_norm) << other;
  }
}

}  // namespace
}  // namespace tensordiff
