#include <algorithm>

#include "match/matcher.h"
#include "naming/naming.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

using Names = std::vector<std::string>;

// What the model computes in one of its true layers; `error` is the noise of an implementation.
struct Layer {
  int number;
  unsigned truth;
  float error = 0;
};

constexpr unsigned kUnrelated = 1000;  // As truth: values that no other layer has.

std::vector<float> stage_values(const Layer& layer, unsigned stage, std::size_t count) {
  std::vector<float> values = noise(count, layer.truth * 10 + stage);
  const std::vector<float> error = noise(count, 77 + stage);
  for (std::size_t i = 0; i < count; ++i) values[i] += layer.error * error[i];
  return values;
}

// Query, key and a scale that is the same in all layers.
Catalog dump_of(const std::vector<Layer>& layers, const Shape& shape = {6, 20}) {
  Catalog dump;
  const std::size_t count = element_count(shape).value();
  for (const Layer& layer : layers) {
    const auto add = [&](std::string_view stage, View view) {
      dump.tensors.push_back({fmt::format("{}_{}", layer.number, stage), std::move(view), ""});
    };
    add("query", f32_view(shape, stage_values(layer, 1, count)));
    add("key", f32_view(shape, stage_values(layer, 2, count)));
    add("scaling", f32_view({}, {0.125F}));
  }
  read_places(dump);
  return dump;
}

struct Found {
  Names layers;  // "b=a"
  Names notes;
};

Found pair(const Catalog& a, const Catalog& b) {
  const Result<Matching> matching = match(a, b);
  EXPECT_TRUE(matching.ok());
  Found found{{}, matching.value().notes};
  for (const Pair& each : matching.value().pairs) {
    if (each.stage != "query") continue;
    found.layers.push_back(fmt::format("{}={}", b.tensors[each.b].place.layer, *each.layer));
  }
  return found;
}

TEST(LayerPairing, FindsTheOneLayerOfADump) {
  const Catalog b = dump_of({{9, 1}});
  const Found found = pair(dump_of({{0, 0}, {1, 1}, {2, 2}}), b);
  EXPECT_EQ(found.layers, Names{"9=1"});
  EXPECT_EQ(found.notes,
            Names{"layer 9 of B is compared with layer 1 of A: their values agree best"});
}

TEST(LayerPairing, WorksFromEitherSide) {
  EXPECT_EQ(pair(dump_of({{9, 1}}), dump_of({{0, 0}, {1, 1}, {2, 2}})).layers, Names{"1=9"});
}

TEST(LayerPairing, SeesThroughNoise) {
  const Found found =
      pair(dump_of({{0, 0}, {1, 1}, {2, 2}}), dump_of({{10, 1, 0.1F}, {11, 2, 0.1F}}));
  EXPECT_EQ(found.layers, (Names{"10=1", "11=2"}));
  EXPECT_EQ(found.notes, Names{"layers 10 to 11 of B are compared with layers 1 to 2 of A: their "
                               "values agree best"});
}

TEST(LayerPairing, SeesThroughAnotherLayout) {
  const Catalog a = dump_of({{0, 0}, {1, 1}, {2, 2}}, {6, 20});
  Catalog b = dump_of({{7, 2}}, {6, 20});
  for (Tensor& tensor : b.tensors) {
    View& view = tensor.view;
    if (view.shape.empty()) continue;
    std::ranges::reverse(view.shape);
    std::ranges::reverse(view.parts[0].shape);
    std::ranges::reverse(view.parts[0].strides);
  }
  EXPECT_EQ(pair(a, b).layers, Names{"7=2"});
}

TEST(LayerPairing, FollowsTheDistanceOfTheLayersThatAgree) {
  const Found found = pair(dump_of({{0, 0}, {1, 1}, {2, 2}, {3, 3}}),
                           dump_of({{11, kUnrelated}, {12, 2}, {13, kUnrelated + 1}}));
  EXPECT_EQ(found.layers, (Names{"11=1", "12=2", "13=3"}));
  EXPECT_EQ(found.notes[0],
            "layer 11 of B is compared with layer 1 of A: layers whose values agree differ by the "
            "same number");
  EXPECT_EQ(found.notes[1], "layer 12 of B is compared with layer 2 of A: their values agree best");
}

TEST(LayerPairing, GoesByOrderWhereValuesCannotTell) {
  const Found found =
      pair(dump_of({{0, 0}, {1, 1}, {2, 2}}), dump_of({{10, kUnrelated}, {20, kUnrelated + 1}}));
  EXPECT_EQ(found.layers, (Names{"10=0", "20=1"}));
  EXPECT_EQ(found.notes[0],
            "layer 10 of B is compared with layer 0 of A: no numbers in common, and the values do "
            "not decide: paired by order");
}

TEST(LayerPairing, GoesByOrderWhereAllLayersAreTheSame) {
  const Found found = pair(dump_of({{0, 5}, {1, 5}}), dump_of({{10, 5}, {11, 5}}));
  EXPECT_EQ(found.layers, (Names{"10=0", "11=1"}));
}

TEST(LayerPairing, DoesNotCrossWhatValuesDecided) {
  // 10 is 1 and 20 is 2, so that 30, which agrees with nothing, cannot be 0.
  const Found found =
      pair(dump_of({{0, 0}, {1, 1}, {2, 2}}), dump_of({{10, 1}, {20, 2}, {30, kUnrelated}}));
  EXPECT_EQ(found.layers, (Names{"10=1", "20=2"}));
}

TEST(LayerPairing, KeepsToTheNumbersWhereTheyOverlap) {
  // Even where the values say that b counts from 1: that is a finding, not a pairing.
  const Found found = pair(dump_of({{0, 0}, {1, 1}}), dump_of({{1, 0}, {2, 1}}));
  EXPECT_EQ(found.layers, Names{"1=1"});
  EXPECT_TRUE(found.notes.empty());
}

TEST(LayerPairing, SurvivesTensorsThatCannotBeRead) {
  Catalog b = dump_of({{9, 1}});
  for (Tensor& tensor : b.tensors)
    if (tensor.name == "9_query") tensor = broken_tensor("9_query", "cut short");
  read_places(b);
  EXPECT_EQ(pair(dump_of({{0, 0}, {1, 1}, {2, 2}}), b).layers, Names{"9=1"});
}

TEST(LayerPairing, GoesByOrderWhereThereAreTooManyToCompare) {
  Catalog a, b;
  for (int layer = 0; layer < 3000; ++layer) {
    a.tensors.push_back({fmt::format("{}_query", layer), counting_view({4}), ""});
    b.tensors.push_back({fmt::format("{}_query", layer + 5000), counting_view({4}), ""});
  }
  read_places(a);
  read_places(b);
  const Found found = pair(a, b);
  EXPECT_EQ(found.layers.size(), 3000U);
  EXPECT_EQ(found.notes.size(), 1U);
}

}  // namespace
}  // namespace tensordiff
