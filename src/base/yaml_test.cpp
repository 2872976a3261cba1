#include "base/yaml.h"

#include <gtest/gtest.h>

namespace tensordiff {
namespace {

// A node in one line: text bare, lists in [], maps in {}, null as ~.
std::string shown(const Yaml& node) {
  std::string out;
  switch (node.kind) {
    case Yaml::Kind::null:
      return "~";
    case Yaml::Kind::text:
      return node.text;
    case Yaml::Kind::list:
      for (const Yaml& item : node.items) out += (out.empty() ? "" : ", ") + shown(item);
      return "[" + out + "]";
    case Yaml::Kind::map:
      for (const Yaml::Member& member : node.members)
        out += (out.empty() ? "" : ", ") + member.key + ": " + shown(member.value);
      return "{" + out + "}";
  }
  return "";
}

std::string read(std::string_view text) {
  const Result<Yaml> node = Yaml::parse(text);
  return node.ok() ? shown(node.value()) : "error: " + node.error().message();
}

TEST(Yaml, ReadsWhatPeopleWrite) {
  EXPECT_EQ(read(""), "~");
  EXPECT_EQ(read("# nothing\n\n---\n"), "~");
  EXPECT_EQ(read("a: 1\nb: two words # note\n"), "{a: 1, b: two words}");
  EXPECT_EQ(read("a:\n  b: 1\n  c:\n    d: 2\ne: 3"), "{a: {b: 1, c: {d: 2}}, e: 3}");
  EXPECT_EQ(read("- 1\n- - 2\n  - 3\n-\n  4\n-"), "[1, [2, 3], 4, ~]");
  EXPECT_EQ(read("runs:\n- a: 1\n  b: 2\n- a: 3\n"), "{runs: [{a: 1, b: 2}, {a: 3}]}");
  EXPECT_EQ(read("x: [1, 'b, c', {d: e}]\ny: {}\nz: []\r\n"),
            "{x: [1, b, c, {d: e}], y: {}, z: []}");
  EXPECT_EQ(read("{\"a\": [1, 2], \"b\": null}"), "{a: [1, 2], b: ~}");
}

TEST(Yaml, ReadsQuotesAndColonsInText) {
  EXPECT_EQ(read("'it''s': \"a\\tb # no comment\""), "{it's: a\tb # no comment}");
  EXPECT_EQ(read("a: it's fine"), "{a: it's fine}");
  EXPECT_EQ(read("time: 12:30:00"), "{time: 12:30:00}");
  EXPECT_EQ(read("layers\\.\\d+: 1"), "{layers\\.\\d+: 1}");
  EXPECT_EQ(read("a#b: c#d"), "{a#b: c#d}");
}

TEST(Yaml, SaysWhereItIsWrong) {
  EXPECT_EQ(read("a: 1\n\tb: 2"), "error: line 2: a tab; indent with spaces");
  EXPECT_EQ(read("a: 1\nb: 2\na: 3"), "error: line 3: 'a' is there twice");
  EXPECT_EQ(read("a: {b: 1, b: 2}"), "error: line 1: 'b' is there twice");
  EXPECT_EQ(read("a: 1\n   b: 2"), "error: line 2: indented differently from what is before it");
  EXPECT_EQ(read("a: 1\nb"), "error: line 2: not of the form 'key: value'");
  EXPECT_EQ(read("a: [1, 2\n"), "error: line 1: a bracket that is not closed on its line");
  EXPECT_EQ(read("a: [1] 2"), "error: line 1: something follows the value");
  EXPECT_EQ(read("a: 'b"), "error: line 1: a quote that is not closed");
  EXPECT_EQ(read("a: 1\n---\nb: 2"),
            "error: line 2: only one document, without directives, is read");
  EXPECT_EQ(read("a: \xff"), "error: not UTF-8 text");
}

TEST(Yaml, RefusesWhatItDoesNotMean) {
  for (const std::string_view text : {"a: &x 1", "a: *x", "a: !!int 1", "a: |", "*.norm: 1"})
    EXPECT_NE(read(text).find("put the text in quotes"), std::string::npos) << text;
  EXPECT_EQ(read("'*.norm': 1"), "{*.norm: 1}");
}

TEST(Yaml, BoundsNesting) {
  EXPECT_EQ(read(std::string(1000, '[')), "error: line 1: nested too deep");
  std::string items;
  for (int i = 0; i < 1000; ++i) items += "- ";
  EXPECT_EQ(read(items + "x"), "error: line 1: nested too deep");
}

TEST(Yaml, BoundsKeys) {
  std::string keys;
  for (int i = 0; i < 10001; ++i) keys += "k" + std::to_string(i) + ": 1\n";
  EXPECT_EQ(read(keys), "error: line 10001: more than 10,000 keys in one map");
}

TEST(Yaml, NamesUnknownKeys) {
  constexpr std::string_view kKeys[] = {"atol", "rtol"};
  const Result<Yaml> good = Yaml::parse("atol: 1");
  EXPECT_TRUE(good.value().only(kKeys).ok());
  const Result<Yaml> bad = Yaml::parse("atol: 1\nratol: 2");
  EXPECT_EQ(bad.value().only(kKeys).error().message(),
            "line 2: unknown key 'ratol'; did you mean 'atol'?");
  EXPECT_EQ(Yaml::parse("- x").value().only(kKeys).error().message(),
            "line 1: keys and values are expected here");
}

// Whatever the text, the reader ends and answers.
TEST(Yaml, SurvivesEveryTruncation) {
  const std::string_view text = "a: [1, {b: 'c'}]\n- x\nd:\n  - e: \"f\\n\"\n    g: {h: i}\n";
  for (std::size_t begin = 0; begin < text.size(); ++begin)
    for (std::size_t size = 0; begin + size <= text.size(); ++size)
      (void)Yaml::parse(std::string(text.substr(begin, size)));
}

}  // namespace
}  // namespace tensordiff
