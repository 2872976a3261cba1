#include "tensor/place.h"

#include <gtest/gtest.h>

#include <set>

namespace tensordiff {
namespace {

TEST(Role, HasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kRoles; ++i) {
    const std::string_view name = name_of(static_cast<Role>(i));
    EXPECT_FALSE(name.empty()) << i;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_EQ(name_of(Role::embedding), "embedding");
  EXPECT_EQ(name_of(Role::branch_norm), "norm");
  EXPECT_EQ(name_of(Role::mlp_output), "MLP output");
  EXPECT_EQ(name_of(Role::other), "step");
}

TEST(Role, IsANormWhereItsNameSaysSo) {
  for (std::size_t i = 0; i < kRoles; ++i) {
    const auto role = static_cast<Role>(i);
    EXPECT_EQ(is_norm(role), name_of(role).find("norm") != std::string_view::npos) << name_of(role);
  }
}

TEST(Param, HasTheNameThatFilesGiveIt) {
  EXPECT_EQ(name_of(Param::none), "");
  EXPECT_EQ(name_of(Param::running_var), "running_var");
  EXPECT_EQ(name_of(Param::zero_point), "zero_point");
  EXPECT_EQ(name_of(Tower::vision), "vision");
}

TEST(Place, HasALayerOnlyWhereItIsOne) {
  Place place;
  EXPECT_EQ(place.layer_number(), std::nullopt);
  place.layer = Place::kAll;
  EXPECT_EQ(place.layer_number(), std::nullopt);
  place.layer = 3;
  EXPECT_EQ(place.layer_number(), 3);
}

}  // namespace
}  // namespace tensordiff
