#include "formats/pickle/walk.h"

#include <gtest/gtest.h>

#include "formats/pickle/test_pickles.h"

namespace tensordiff {
namespace {

using namespace test_pickles;

std::string names(const std::string& pickle) {
  const Result<Catalog> catalog = formats::pickle.open(input(pickle));
  if (!catalog.ok()) return "! " + catalog.error().message();
  std::string out;
  for (const Tensor& tensor : catalog.value().tensors)
    out += (out.empty() ? "" : " ") + tensor.name;
  return out;
}

TEST(Walk, JoinsKeysAndPlacesWithDots) {
  const std::string inner = dict({{"b",
                                   "](K\x01K\x02"
                                   "e"}});
  EXPECT_EQ(names(kProto2 + dict({{"a", inner}, {"lr", "K\x03"}}) + "."), "a.b.0 a.b.1 lr");
}

TEST(Walk, NamesKeysOfAnyPlainKind) {
  const std::string pair = tuple({text("x"), number(2)});
  EXPECT_EQ(names(kProto2 + "}(K\x07K\x01NK\x01\x88K\x01" + pair + "K\x01u."),
            "7 None True (x, 2)");
}

TEST(Walk, QuotesKeysWithDotsOnlyWhereNamesCollide) {
  const std::string nested = dict({{"b", "K\x01"}});
  EXPECT_EQ(names(kProto2 + dict({{"a.b", "K\x02"}, {"a", nested}, {"c.d", "K\x03"}}) + "."),
            "'a.b' a.b c.d");
}

TEST(Walk, TellsEqualNamesApart) {
  EXPECT_EQ(names(kProto2 + "}(K\x01K\x07" + text("1") + "K\x08u."), "1 1 (2)");
}

TEST(Walk, TakesTheLastOfTwoEqualKeys) {
  EXPECT_EQ(told_pickle(kProto2 + dict({{"a", "K\x01"}, {"b", "K\x02"}, {"a", "K\x03"}}) + "."),
            "a i64 [] 3; b i64 [] 2 | key 'a' comes twice in one dict; the last counts");
}

TEST(Walk, CutsNamesThatAreTooLong) {
  const std::string name = names(kProto2 + dict({{std::string(100'000, 'x'), "K\x01"}}) + ".");
  EXPECT_EQ(name.size(), pickle::kTensorNameMax);
}

TEST(Walk, ReadsOrderedDictsOfBothPythons) {
  EXPECT_EQ(names(kProto2 + kNoHooks + text("a") + "K\x01s."), "a");
  const std::string pairs = "](](" + text("a") +
                            "K\x01"
                            "e](" +
                            text("b") +
                            "K\x02"
                            "ee";
  EXPECT_EQ(names(kProto2 + global("collections", "OrderedDict") + pairs + "\x85R."), "a b");
}

TEST(Walk, FollowsAListThatHoldsItselfOnce) {
  EXPECT_EQ(told_pickle("]q\x01(K\x05h\x01"
                        "e."),
            "0 i64 [] 5 | '1' is a value that holds itself; it is followed once");
}

// A list that holds the one before ten times, nine deep: a thousand million paths to one number,
// in a few hundred bytes.
std::string billion_laughs() {
  std::string pickle = kProto2 + "](K\x07\x65q" + std::string(1, '\0');
  for (char level = 1; level <= 9; ++level) {
    pickle += "0](";
    for (int i = 0; i < 10; ++i) pickle += std::string("h") + static_cast<char>(level - 1);
    pickle += std::string("eq") + level;
  }
  return pickle + ".";
}

TEST(Walk, ListsValuesOnceWhereTheyMultiply) {
  const Result<Catalog> catalog = formats::pickle.open(input(billion_laughs()));
  ASSERT_TRUE(catalog.ok());
  EXPECT_LT(catalog.value().tensors.size(), 200'000U);
  ASSERT_EQ(catalog.value().problems.size(), 1U);
  EXPECT_TRUE(catalog.value().problems[0].message.starts_with(
      "more than 100000 values that the pickle holds in several places; '0."))
      << catalog.value().problems[0].message;
}

// Everything that is there once is listed, however much comes before it again and again.
TEST(Walk, ListsWhatComesAfterValuesThatMultiply) {
  std::string pickle = billion_laughs();
  pickle.pop_back();
  Input bomb = input(pickle + "0](h\x09K\x2a\x65.");
  bomb.limits.repeats_max = 100;
  const Result<Catalog> catalog = formats::pickle.open(bomb);
  ASSERT_TRUE(catalog.ok());
  EXPECT_EQ(catalog.value().tensors.back().name, "1");
  EXPECT_LT(catalog.value().tensors.size(), 400U);
}

// Tied weights have two names; so has a module that is used twice.
TEST(Walk, ListsSharedValuesByEveryPath) {
  const std::string shared = dict({{"w", "K\x01"}}) + "q\x05";
  EXPECT_EQ(names(kProto2 + dict({{"encoder", shared}, {"decoder", "h\x05"}}) + "."),
            "encoder.w decoder.w");
}

// Objects that share one state, which no walk from value to value sees.
TEST(Walk, IsBoundedWhereObjectsShareTheirState) {
  std::string state = "}(";
  for (int i = 0; i < 200; ++i) state += text("k" + std::to_string(i)) + "](K\x01\x65";
  std::string pickle = kProto2 + state + "uq\x05" + "0](";
  for (int i = 0; i < 500; ++i) pickle += global("m", "C") + ")\x81h\x05\x62";
  Input bomb = input(pickle + "e.");
  bomb.limits.repeats_max = 1000;
  const Result<Catalog> catalog = formats::pickle.open(bomb);
  ASSERT_TRUE(catalog.ok());
  EXPECT_LT(catalog.value().tensors.size(), 5000U);
}

// t = (t, t), sixty times: 2^60 paths to nothing.
TEST(Walk, StopsWhereSharedValuesMultiply) {
  std::string pickle = kProto2 + "N";
  for (int i = 0; i < 60; ++i) pickle += "2\x86";
  const std::string told = told_pickle(pickle + ".");
  EXPECT_TRUE(told.starts_with(" | more than 100000 values that the pickle holds in several"))
      << told;
}

TEST(Walk, StopsAtTheLimitOfTensors) {
  Input many = input(
      "](K\x01K\x02K\x03"
      "e.");
  many.limits.tensors_max = 2;
  const Result<Catalog> catalog = formats::pickle.open(many);
  ASSERT_TRUE(catalog.ok());
  EXPECT_EQ(catalog.value().tensors.size(), 2U);
  ASSERT_EQ(catalog.value().problems.size(), 1U);
  EXPECT_EQ(catalog.value().problems[0].message,
            "more than 2 tensors, of which the rest is not listed, the limit; --limit tensors=N "
            "raises it");
}

TEST(Walk, LeavesTheRestWhenOneBranchIsTooDeep) {
  std::string deep = "](";
  for (int i = 0; i < 120; ++i) deep += "](";
  for (int i = 0; i < 121; ++i) deep += "e";
  const std::string told = told_pickle(kProto2 + dict({{"deep", deep}, {"w", "K\x01"}}) + ".");
  EXPECT_TRUE(told.starts_with("w i64 [] 1 | 'deep.0.0.")) << told;
  EXPECT_TRUE(told.ends_with(
      "' is nested deeper than 100 and was not looked at, the limit; --limit depth=N raises it"))
      << told;
}

TEST(Walk, ListsEveryNameOfCodeOnceAndCountsTheRest) {
  std::string pickle = "](";
  for (int i = 0; i < 130; ++i) pickle += global("m", "f" + std::to_string(i % 110));
  const Result<Catalog> catalog = formats::pickle.open(input(pickle + "e."));
  ASSERT_TRUE(catalog.ok());
  ASSERT_EQ(catalog.value().problems.size(), 101U);
  EXPECT_EQ(catalog.value().problems[0].message, "holds a reference to 'm.f0', which was not run");
  EXPECT_EQ(catalog.value().problems[100].message, "and references to 10 more names");
}

TEST(Walk, TakesPlainNumbersOfAnObjectForSettings) {
  const std::string state = dict({{"size", "K\x08"},
                                  {"values",
                                   "]K\x01"
                                   "a"}});
  EXPECT_EQ(names(kProto2 + global("m", "C") + ")\x81" + state + "b."), "values.0");
}

TEST(Walk, WalksAttributesAndSlots) {
  const std::string first = dict({{"a",
                                   "]K\x01"
                                   "a"}}),
                    second = dict({{"b",
                                    "]K\x02"
                                    "a"}});
  EXPECT_EQ(names(kProto2 + global("m", "C") + ")\x81" + tuple({first, second}) + "b."), "a.0 b.0");
}

// As Module.state_dict() would name them: parameters, buffers that persist, then submodules.
TEST(Walk, NamesAModuleLikeItsStateDict) {
  const std::string child =
      global("m", "Child") + ")\x81" +
      dict({{"_parameters", dict({{"w", "K\x01"}, {"none", "N"}})},
            {"_buffers", dict({{"kept", "K\x02"}, {"passing", "K\x03"}})},
            {"_non_persistent_buffers_set",
             global("__builtin__", "set") + "](" + text("passing") + "e\x85R"},
            {"_modules", dict({})}}) +
      "b";
  const std::string module = global("m", "Net") + ")\x81" +
                             dict({{"training", "\x88"},
                                   {"_parameters", dict({{"p", "K\x05"}})},
                                   {"_buffers", dict({})},
                                   {"_modules", dict({{"0", child}})}}) +
                             "b";
  EXPECT_EQ(names(kProto2 + module + "."), "p 0.w 0.kept");
}

TEST(Walk, ReadsComplexNumbers) {
  const std::string one = "G\x3f\xf0" + std::string(6, '\0');
  EXPECT_EQ(told_pickle(kProto2 + call(global("__builtin__", "complex"), {one, one}) + "."),
            " c128 [] 1 1");
}

}  // namespace
}  // namespace tensordiff
