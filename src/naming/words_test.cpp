#include "naming/words.h"

#include <gtest/gtest.h>

#include "naming/affixes.h"

namespace tensordiff {
namespace {

TEST(Words, AreSplitAtEveryMark) {
  const Words words("a.b/c_d-e:f#g=h@i..");
  EXPECT_EQ(words.joined(), "a.b.c.d.e.f.g.h.i");
  EXPECT_EQ(words.joined(1, 3), "b.c");
  EXPECT_TRUE(words.has(2, "c.d"));
  EXPECT_FALSE(words.has(7, "h.i.j"));
  EXPECT_TRUE(Words("").empty());
  EXPECT_TRUE(Words("...").empty());
}

TEST(Words, AreNoneOfNamesBeyondTheLimits) {
  std::string many;
  for (std::size_t i = 0; i < kWordsMax; ++i) many += "a.";
  EXPECT_EQ(Words(many).size(), kWordsMax);
  many += "a";
  EXPECT_TRUE(Words(many).empty());
  const std::string too_long(kNameLengthMax + 1, 'a');
  EXPECT_TRUE(Words(too_long).empty());
}

TEST(Words, CanBeTakenOut) {
  Words words("a.b.c.d");
  words.erase(1, 2);
  EXPECT_EQ(words.joined(), "a.d");
  words.replace_back("e");
  EXPECT_EQ(words.joined(), "a.e");
}

TEST(Numbers, HaveNineDigitsAtMost) {
  EXPECT_EQ(number_of("007"), 7);
  EXPECT_EQ(number_of("999999999"), 999'999'999);
  for (const char* word : {"", "1000000000", "-1", "+1", "1a", "a"})
    EXPECT_FALSE(number_of(word)) << word;
}

TEST(Counted, FollowTheirWordOrAreGluedToIt) {
  const auto is_layer = [](std::string_view word) { return word == "layer"; };
  for (const char* name : {"x.layer.3.y", "x.layer3.y"}) {
    const auto found = find_counted(Words(name), 0, is_layer);
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(found->number, 3);
  }
  EXPECT_FALSE(find_counted(Words("layer.x.3"), 0, is_layer));
  EXPECT_FALSE(find_counted(Words("layers.3"), 0, is_layer));
}

TEST(Affixes, AreTakenOutOfNames) {
  Words words("layers.0.fsdp_wrapped_module.mlp.experts.local_experts.2.hook_up.weight");
  drop_wrapped_modules(words);
  EXPECT_EQ(take_expert(words), 2);
  EXPECT_EQ(take_parameter(words), Param::weight);
  EXPECT_EQ(words.joined(), "layers.0.mlp.up");
  Words shared("mlp.shared_experts.up");
  EXPECT_EQ(take_expert(shared), Place::kShared);
  EXPECT_EQ(shared.joined(), "mlp.up");
  Words all("mlp.experts.weight3");
  EXPECT_EQ(take_expert(all), 3);
  EXPECT_EQ(all.joined(), "mlp.weight");
  EXPECT_EQ(tower_in(Words("model.decoder.layers")), Tower::decoder);
  EXPECT_EQ(short_parameter("g"), Param::weight);
  EXPECT_EQ(short_parameter("q"), Param::none);
}

}  // namespace
}  // namespace tensordiff
