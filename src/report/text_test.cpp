#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/text.h"
#include "report/renderer.h"
#include "report/sample_report.h"
#include "report/style.h"
#include "report/table.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Text, OpensWithTheVerdictAndEveryCount) {
  EXPECT_EQ(renderers::text.render(sample_report(), {.brief = true}),
            "TROUBLE    5 pairs: 1 error, 1 incomparable, 1 different, 1 close, 1 identical; "
            "1 only in A, 1 only in B\n");
}

TEST(Text, SaysWhenNothingIsLeftOver) {
  Report report;
  report.pairs = {sample_pair(0, "w", Status::identical)};
  report.summary = {.identical = 1, .verdict = Conclusion::same};
  EXPECT_EQ(renderers::text.render(report, {.brief = true}),
            "SAME       1 pair: 1 identical; none unpaired\n");
}

TEST(Text, NeverHidesWhatFailedOrWasLeftOver) {
  const std::string text = renderers::text.render(sample_report(), {});
  for (const std::string_view part :
       {"TROUBLE    first divergence: layer 1, query\n",
        "evidence   its inputs agree; its output does not\n",
        "problem    A: evil.pkl: posix.system was not run", "└ B: deflate stream ends early",
        "└ no common layout for [2, 3] and [7]", "only in A  1 tensor", "gone  f32 [4]",
        "only in B  1 tensor", "note       layer 3 of B is compared with layer 1 of A", "▶ off"})
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
}

TEST(Text, TellsLayersThatTheOtherSideLacks) {
  Report report = sample_report();
  report.only_a[0].layer_absent = true;
  EXPECT_TRUE(
      has(renderers::text.render(report, {.verbose = true}),
          "only in A  1 tensor, all in layers that the other side lacks\n  gone  f32 [4]\n"));
  report.only_a.push_back(report.only_b[0]);
  EXPECT_TRUE(has(renderers::text.render(report, {}),
                  "only in A  2 tensors, 1 in layers that the other side lacks\n"));
}

TEST(Text, CountsWhatOneDumpLacksByKind) {
  Report report = sample_report();
  const Report::Unpaired one = report.only_a[0];
  report.only_a.clear();
  for (const char* name : {"layers.0.act", "rope", "layers.1.act", "layers.12.act", "fc1", "fc2"}) {
    report.only_a.push_back(one);
    report.only_a.back().id.name = name;
    report.only_a.back().not_dumped = true;
  }
  EXPECT_TRUE(has(renderers::text.render(report, {}),
                  "only in A  6 tensors: layers.#.act (3), rope, fc1, fc2 (details: -v)\n"))
      << renderers::text.render(report, {});
  EXPECT_TRUE(has(renderers::text.render(report, {.top = 0}), "  layers.12.act  f32 [4]\n"));
  report.only_a[1].not_dumped = false;  // A difference is listed.
  EXPECT_TRUE(has(renderers::text.render(report, {}), "  layers.12.act  f32 [4]\n"));
}

TEST(Text, ShowsTheWorstFirstAndSaysHowManyMoreThereAre) {
  Report report;
  for (std::size_t i = 0; i < 30; ++i) {
    report.pairs.push_back(sample_pair(i, fmt::format("w{}", i), Status::different));
    report.pairs[i].comparison.diff.rel_l2 = static_cast<double>(i);
  }
  const std::string text = renderers::text.render(report, {});
  EXPECT_LT(text.find("w29"), text.find("w28"));
  EXPECT_FALSE(has(text, "w9 "));
  EXPECT_TRUE(has(text, "… and 10 more (--top 0 shows all)"));
  EXPECT_FALSE(has(renderers::text.render(report, {.top = 0}), "more"));
}

TEST(Text, FitsTheWidthItIsGiven) {
  Report report = sample_report();
  report.pairs[2].a.name = std::string(150, 'n') + ".weight";
  report.pairs[2].message.clear();
  for (const std::size_t width : {60U, 80U, 100U, 120U, 200U}) {
    const std::string text = renderers::text.render(report, {.width = width});
    bool found = false;
    for (const std::string_view line : split(text, '\n')) {
      if (!line.starts_with("  ▶ ")) continue;
      found = true;
      EXPECT_LE(columns(line), width);
      EXPECT_TRUE(has(std::string(line), "different")) << line;
    }
    EXPECT_TRUE(found);
  }
}

TEST(Text, MakesNamesHarmless) {
  Report report = sample_report();
  report.pairs[2].a.name = report.pairs[2].b.name = "\x1b[31mred\n";
  report.only_a[0].id.name = "\xe2\x80\xaegnp";
  const std::string text = renderers::text.render(report, {});
  EXPECT_FALSE(has(text, "\x1b"));
  EXPECT_TRUE(has(text, "\\x1b[31mred\\x0a"));
  EXPECT_TRUE(has(text, "\\u202egnp"));
}

TEST(Text, IsColouredOnlyWhenAskedFor) {
  EXPECT_FALSE(has(renderers::text.render(sample_report(), {}), "\x1b"));
  EXPECT_TRUE(has(renderers::text.render(sample_report(), {.color = true}), "\x1b[31m"));
}

TEST(Wording, NamesTensorsThatAreNotLikeOthers) {
  struct Case {
    Stats stats;
    Shape shape;
    std::string_view text;
  };
  Stats zeros_but_one = stats_between(5, 0, 0);
  zeros_but_one.nan = 1;
  const Case cases[] = {
      {{}, {0, 3}, "empty"},
      {stats_between(6, 0, 0), {6}, "all zeros"},
      {stats_between(6, 0.5, 0.5), {6}, "constant 0.5"},
      {nonfinite_stats(6, 0), {6}, "all NaN"},
      {nonfinite_stats(0, 6), {6}, "all infinite"},
      {nonfinite_stats(3, 3), {6}, "all NaN or infinite"},
      {stats_between(6, 0, 1), {6}, ""},
      {zeros_but_one, {6}, ""},
      {stats_between(1, 2, 2), {}, ""},
  };
  for (const Case& each : cases) EXPECT_EQ(character(each.stats, each.shape), each.text);
}

TEST(Wording, RemarksOnWhatTheNumbersWouldHide) {
  PairRow row = sample_pair(0, "w", Status::different);
  EXPECT_TRUE(remarks(row).empty());
  row.comparison.a = stats_between(6, 0, 0);
  row.comparison.b.nan = 2;
  row.comparison.diff.nonfinite_mismatch = 2;
  row.comparison.diff.nonfinite_agreeing = 1;
  EXPECT_EQ(
      remarks(row),
      (std::vector<std::string>{
          "A is all zeros, B is not", "NaN/Inf mismatch at 2 elements: A has none, B has 2 NaN",
          "the same NaN or Inf on both sides at 1 element, which counts as agreement"}));
  row = sample_pair(0, "w", Status::identical);
  row.comparison.a = row.comparison.b = nonfinite_stats(6, 0);
  EXPECT_EQ(remarks(row), std::vector<std::string>{"both are all NaN"});
}

TEST(Wording, KeepsWholeNumbersWhole) {
  EXPECT_EQ(short_number(4096), "4096");
  EXPECT_EQ(short_number(-0.0), "0");
  EXPECT_EQ(short_number(0.125), "0.125");
  EXPECT_EQ(short_number(1234.56), "1.23e+03");
  EXPECT_EQ(short_number(std::numeric_limits<double>::infinity()), "inf");
}

TEST(Wording, TellsHowASideWasLaidOut) {
  EXPECT_EQ(layout_text(sample_report().pairs[2].steps),
            "A: squeeze axis 0, B: permute [1, 0], B: split axis 1 to [8, 64], "
            "B: truncate axis 0 to [20]");
}

TEST(Wording, SaysAllAndNoneOnlyWhenItIsSo) {
  EXPECT_EQ(share_text(0, 10), "0 %");
  EXPECT_EQ(share_text(1, 100000), "<0.1 %");
  EXPECT_EQ(share_text(1, 8), "12.5 %");
  EXPECT_EQ(share_text(99999, 100000), ">99.9 %");
  EXPECT_EQ(share_text(10, 10), "100 %");
}

TEST(Table, DropsTheLeastColumnThenShortensTheFirst) {
  Table table({{"name"}, {"kept", Column::Side::right}, {"extra", Column::Side::left, 1}});
  table.add({{"abcdefghijklmnopqrstuvwxyz"}, {"1"}, {"some more"}}, {"a remark"});
  const Style plain(false);
  EXPECT_EQ(table.render(plain, 80),
            "  name                        kept  extra\n"
            "  abcdefghijklmnopqrstuvwxyz     1  some more\n"
            "    └ a remark\n");
  EXPECT_EQ(table.render(plain, 24),
            "  name              kept\n"
            "  abcdefg…stuvwxyz     1\n"
            "    └ a remark\n");
}

TEST(Table, LeavesOutColumnsBeforeANameLosesItsLayer) {
  Table table({{"pair", Column::Side::left, 0, true},
               {"rel L2", Column::Side::right},
               {"dtype", Column::Side::left, 1}});
  table.add({{"model.layers.3.self_attn.k_proj → model.layers.3.self_attn.qkv_proj[k]"},
             {"0.5"},
             {"f32"}});
  EXPECT_EQ(table.render(Style(false), 37),
            "  pair                         rel L2\n"
            "  …3.…k_proj → …qkv_proj[k]       0.5\n");
}

TEST(Style, ShortensByCharactersNotBytes) {
  EXPECT_EQ(shorten("äöüßäöüß", 8), "äöüßäöüß");
  EXPECT_EQ(shorten("äöüßäöüß", 5), "äö…üß");
}

TEST(Text, ShowsAMismatchAsTheWorst) {
  Diff diff;
  diff.compared = 3;
  diff.max_abs = diff.rel_l2 = 0;
  diff.cosine = 1;
  diff.nonfinite_mismatch = 1;
  diff.max_abs_at = {2};
  diff.a_there = std::numeric_limits<double>::quiet_NaN();
  diff.b_there = 3;
  const Diff shown = as_shown(diff);
  EXPECT_EQ(number_or_dash(shown.max_abs), "inf");
  EXPECT_EQ(number_or_dash(shown.rel_l2), "inf");
  EXPECT_EQ(cosine_text(shown.cosine), "–");
  EXPECT_EQ(where_text(shown), "[2] nan → 3");
}

}  // namespace
}  // namespace tensordiff
