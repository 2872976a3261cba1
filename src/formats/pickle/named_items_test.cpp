#include "formats/pickle/named_items.h"

#include <gtest/gtest.h>

#include "formats/pickle/test_pickles.h"

namespace tensordiff {
namespace {

using namespace test_pickles;

const std::string kOne = tensor({storage("FloatStorage", "0", 1), 0, {1}, {1}});

std::string list(const std::vector<std::string>& items) {
  std::string out = "](";
  for (const std::string& item : items) out += item;
  return out + "e";
}

// The names of the tensors of a file, which all hold the number 5.
std::string names(const std::string& root) {
  const Result<Catalog> catalog =
      formats::torch_zip.open(test_files::input(torch_zip(root, {{"0", test_files::f32(5)}})));
  if (!catalog.ok()) return "! " + catalog.error().message();
  std::string out;
  for (const Tensor& each : catalog.value().tensors) out += (out.empty() ? "" : " ") + each.name;
  return out;
}

TEST(NamedItems, ArePairs) {
  EXPECT_EQ(names(list({tuple({text("a.b"), kOne}), tuple({text("c"), kOne})})), "a.b c");
  EXPECT_EQ(names(dict({{"trace", list({tuple({text("a"), kOne}), tuple({text("c"), kOne})})}})),
            "trace.a trace.c");
}

TEST(NamedItems, MayHaveSeveralTensors) {
  const std::string both = tuple({kOne, kOne});
  EXPECT_EQ(names(list({tuple({text("a"), both}), tuple({text("c"), text("Linear"), kOne})})),
            "a.0 a.1 c");
  EXPECT_EQ(names(list({tuple({text("a"), kOne, kOne}), tuple({text("c"), kOne})})), "a.0 a.1 c");
}

TEST(NamedItems, AreDictsAndObjectsWithAName) {
  const auto entry = [](const std::string& name) {
    return dict({{"name", text(name)}, {"index", "K\x03"}, {"output", kOne}});
  };
  EXPECT_EQ(names(list({entry("a"), entry("c")})), "a c");
  EXPECT_EQ(names(list({dict({{"name", text("a")}, {"in", kOne}, {"out", kOne}}), entry("c")})),
            "a.in a.out c");
  const auto object = [&](const std::string& name) {
    return global("m", "C") + ")\x81" + entry(name) + "b";
  };
  EXPECT_EQ(names(list({object("a"), object("c")})), "a c");
}

TEST(NamedItems, CountTheTimesOfAName) {
  const std::string a = tuple({text("a"), kOne}), c = tuple({text("c"), kOne});
  EXPECT_EQ(names(list({a, c, a, c})), "0.a 0.c 1.a 1.c");
}

TEST(NamedItems, AreNoneWhereAnItemHasNoNameOrNoTensor) {
  const std::string a = tuple({text("a"), kOne});
  EXPECT_EQ(names(list({a, tuple({"K\x01", kOne})})), "0.1 1.0 1.1");
  EXPECT_EQ(names(list({a, tuple({text("c"), "K\x01"})})), "0.1 1.1");
  EXPECT_EQ(names(list({a})), "0.1");
  const std::string group = dict({{"name", text("decay")}, {"lr", "K\x03"}});
  EXPECT_EQ(names(list({group, group})), "0.lr 1.lr");
}

}  // namespace
}  // namespace tensordiff
