#include "match/state_dicts.h"

#include "match/test_catalogs.h"

namespace tensordiff {
namespace {

constexpr const char* kNames[] = {"a.weight", "b.weight", "c.weight", "d.weight"};

void add(Catalog& catalog, const std::string& root, unsigned seed, bool turned = false) {
  for (const char* name : kNames) {
    View view = noise_view({8, 8}, seed++);
    if (turned) std::swap(view.parts[0].strides[0], view.parts[0].strides[1]);
    catalog.tensors.push_back({root + name, std::move(view), ""});
  }
}

TEST(StateDicts, AreChosenByTheirValues) {
  for (const bool turned : {false, true}) {
    Catalog a, b;
    add(a, "state_dict.", 1);
    add(a, "state_dict_ema.module.", 100);
    add(b, turned ? "other." : "", 100, turned);
    const std::optional<std::string> note = choose_state_dict(a, "A", b, true);
    EXPECT_EQ(note,
              "A holds 2 state dicts, state_dict and state_dict_ema: state_dict_ema is compared, "
              "whose values are nearest to the other side's");
    EXPECT_EQ(a.tensors[0].auxiliary, "other state dict");
    EXPECT_EQ(a.tensors[4].auxiliary, "");
    EXPECT_EQ(a.tensors[4].pairing_name(), "a.weight");
  }
}

TEST(StateDicts, AreTheFirstWhereValuesTellNothing) {
  Catalog a, b;
  add(a, "model.", 1);
  add(a, "model_ema.", 100);
  add(b, "", 200);
  EXPECT_EQ(choose_state_dict(a, "A", b, false),
            "A holds 2 state dicts, model and model_ema: model is compared, the first, because the "
            "values do not tell which is meant");
  EXPECT_EQ(a.tensors[4].auxiliary, "other state dict");
}

TEST(StateDicts, AreNotChosenWhereBothSidesHaveThemOrNoneHas) {
  Catalog a, b;
  add(a, "state_dict.", 1);
  add(a, "state_dict_ema.", 100);
  b = a;
  EXPECT_EQ(choose_state_dict(a, "A", b, true), std::nullopt);
  Catalog towers, both;  // An encoder and a decoder are no copies: the other side has both.
  add(towers, "encoder.", 1);
  add(towers, "decoder.", 100);
  add(both, "model.encoder.", 1);
  add(both, "model.decoder.", 100);
  EXPECT_EQ(choose_state_dict(towers, "A", both, true), std::nullopt);
  read_places(towers);
  towers.tensors.push_back({"encoder.embed", noise_view({64, 8}, 7), ""});  // The larger part.
  EXPECT_EQ(choose_state_dict(towers, "A", both, true), std::nullopt);
  Catalog layers;  // The same names below two towers are no copies where the shapes are not.
  add(layers, "encoder.", 1);
  layers.tensors.push_back({"decoder.a.weight", noise_view({4, 4}, 1), ""});
  layers.tensors.push_back({"decoder.b.weight", noise_view({4, 4}, 1), ""});
  layers.tensors.push_back({"decoder.c.weight", noise_view({4, 4}, 1), ""});
  Catalog one;
  add(one, "", 1);
  EXPECT_EQ(choose_state_dict(layers, "A", one, true), std::nullopt);
}

TEST(StateDicts, AreReadAgainOnceOneIsChosen) {
  Catalog a, b;
  for (const char* root : {"state_dict.", "state_dict_ema."})
    for (int layer = 0; layer < 3; ++layer)
      a.tensors.push_back({root + ("layers." + std::to_string(layer)) + ".mlp.up_proj.weight",
                           noise_view({8, 8}, static_cast<unsigned>(a.tensors.size())), ""});
  for (std::size_t i = 3; i < 6; ++i) {
    b.tensors.push_back(a.tensors[i]);
    b.tensors.back().name = a.tensors[i].name.substr(15);
  }
  read_places(a);
  read_places(b);
  EXPECT_EQ(set_aside(a, b, true).size(), 1);
  EXPECT_EQ(a.tensors[4].pairing_name(), "layers.1.mlp.up_proj.weight");
  EXPECT_EQ(a.tensors[4].place, b.tensors[1].place);
}

}  // namespace
}  // namespace tensordiff
