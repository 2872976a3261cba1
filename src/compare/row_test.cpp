#include "compare/row.h"

#include <gtest/gtest.h>

#include "tensor/test_views.h"

namespace tensordiff {
namespace {

TEST(Row, SaysWhichPartOfATensorItIsOf) {
  Tensor tensor{"attn.qkv", f32_view({6, 2}, std::vector<float>(12)), ""};
  tensor.made_from = "gptq";
  Section section;
  section.label = "k";
  EXPECT_EQ(id_of(tensor).name, "attn.qkv");
  const TensorId id = id_of(tensor, section);
  EXPECT_EQ(id.name, "attn.qkv[k]");
  EXPECT_EQ(id.shape, Shape({6, 2}));
  EXPECT_EQ(id.made_from, "gptq");
  EXPECT_EQ(id.fault, "");
}

TEST(Row, SaysWhereTheLayerStandsInItsOwnName) {
  Tensor tensor{"model.h.12.attn", f32_view({1}, {0}), ""};
  tensor.known_as = "h.12.attn";
  tensor.place.layer = 12;
  tensor.place.layer_at = {2, 2};
  const Place::Digits there{8, 2}, none{};
  EXPECT_EQ(id_of(tensor).place.layer_at, there);
  EXPECT_EQ(id_of(tensor).place.count_at, none);
  tensor.known_as = "layers.12.attn";  // Which its own name does not hold.
  EXPECT_EQ(id_of(tensor).place.layer_at, none);
  EXPECT_EQ(id_of(tensor).place.layer, 12);
}

TEST(Row, IsComparedAndChangedByItsStatus) {
  struct Case {
    Status status;
    bool compared, changed;
  };
  for (const Case& each : {Case{Status::identical, true, false},
                           {Status::equal, true, false},
                           {Status::close, true, true},
                           {Status::different, true, true},
                           {Status::incomparable, false, true},
                           {Status::error, false, true}}) {
    Row row;
    row.comparison.status = each.status;
    EXPECT_EQ(row.compared(), each.compared) << name_of(each.status);
    EXPECT_EQ(row.changed(), each.changed) << name_of(each.status);
  }
}

TEST(Row, TakesItsLayerFromThePairingFirst) {
  Row row;
  EXPECT_EQ(row.depth(), std::nullopt);
  row.a.place.layer = 7;
  EXPECT_EQ(row.depth(), 7);
  row.layer = 3;
  EXPECT_EQ(row.depth(), 3);
}

}  // namespace
}  // namespace tensordiff
