// Rows and results: what a session shows, and that it comes back from its bytes.

#include "serve/rows.h"

#include <gtest/gtest.h>

#include <cmath>

#include "naming/naming.h"
#include "report/renderer.h"
#include "report/sample_report.h"
#include "report/wire.h"
#include "serve/pack.h"
#include "serve/session.h"
#include "serve/views.h"
#include "tensor/test_views.h"

namespace tensordiff::serve {
namespace {

TEST(Pack, GivesBackTheSameReport) {
  Results results;
  results.report = sample_report();
  results.singles.push_back({{"single", DType::bf16, {2, 3}, ""}});
  Place& place = results.report.pairs[0].a.place;  // Of a name by which it was known when paired.
  place.layer = 5, place.layer_at = {3, 1}, place.tower = Tower::decoder, place.known = true;
  const std::string bytes = packed(results);
  const std::optional<Results> again = unpacked_results(bytes);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(renderers::report.render(again->report, {}),
            renderers::report.render(results.report, {}));
  EXPECT_EQ(again->singles[0].id.shape, Shape({2, 3}));
  place.spelling = {};
  EXPECT_EQ(again->report.pairs[0].a.place, place);
}

TEST(Pack, RefusesWhatIsBroken) {
  Results results;
  results.report = sample_report();
  const std::string bytes = packed(results);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(unpacked_results(bytes.substr(0, size)).has_value()) << size;
  EXPECT_FALSE(unpacked_results(bytes + "x").has_value());
  // A changed byte is another report or none, never a crash.
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string other = bytes;
    other[i] = static_cast<char>(other[i] ^ 0x80);
    unpacked_results(other);
  }
}

SessionState state_of(Report report) {
  SessionState state;
  Results results;
  results.report = std::move(report);
  state.set_results(std::move(results), true);
  return state;
}

TEST(Rows, AreNumberedFromPairsToLeftovers) {
  Report report = sample_report();
  const std::size_t pairs = report.pairs.size();
  report.only_a = {{{"x.y", DType::f32, {2}, ""}}};
  report.only_b = {{{"z", DType::f16, {}, ""}}};
  const SessionState state = state_of(report);
  EXPECT_EQ(state.row_count(), pairs + 2);
  EXPECT_EQ(state.row(pairs).name_a(), "x.y");
  EXPECT_EQ(status_word(state.row(pairs)), "only_a");
  EXPECT_EQ(status_word(state.row(pairs + 1)), "only_b");
  EXPECT_EQ(state.row(pairs + 1).name_b(), "z");
  const Json json = Json::parse(rows_as_json(state, {})).value();
  EXPECT_EQ(json["rows"][pairs]["group"].string(), "x");
  EXPECT_EQ(json["rows"][pairs]["shapeA"].string(), "2");
  EXPECT_TRUE(json["rows"][pairs]["maxAbs"].is_null());
}

TEST(Rows, OfOneFileAloneHaveTheLayerOfTheirName) {
  SessionState state;
  Results results;
  for (const char* name : {"2_query", "norm.weight", "transformer.h.0.attn.c_attn.weight",
                           "decoder.layers.7.self_attn.q_proj.weight"})
    results.singles.push_back({{name, DType::f32, {2}, "", read_place(name)}});
  state.set_results(std::move(results), true);
  const Json json = Json::parse(rows_as_json(state, {})).value();
  EXPECT_EQ(json["rows"][0]["layer"].number(), 2.0);
  EXPECT_EQ(json["rows"][0]["stage"].string(), "query");
  EXPECT_EQ(json["rows"][0]["group"].string(), "layer 2");
  EXPECT_EQ(json["rows"][2]["layer"].number(), 0.0);
  EXPECT_EQ(json["rows"][2]["stage"].string(), "attn.c_attn.weight");
  EXPECT_EQ(json["rows"][2]["group"].string(), "layer 0");
  EXPECT_EQ(json["rows"][3]["layer"].number(), 7.0);
  EXPECT_EQ(json["rows"][3]["stage"].string(), "decoder self_attn.q_proj.weight");
  EXPECT_EQ(json["rows"][1]["layer"].number(), -1.0);
  EXPECT_EQ(json["rows"][1]["group"].string(), "norm");
}

// The columns have what the report has of a pair, under the same names.
TEST(Rows, TellOfAPairWhatTheReportTells) {
  const SessionState state = state_of(sample_report());
  const Json rows = Json::parse(rows_as_json(state, {})).value();
  const std::vector<std::string_view> columns = row_columns();
  std::size_t told = 0;
  for (const wire::Field<PairRow>& field : wire::pair_fields()) {
    const std::string name = wire::camel(field.name);
    if (field.object || std::ranges::find(columns, name) == columns.end()) continue;
    for (const PairRow& pair : state.results.report.pairs) {
      JsonWriter json;
      wire::write(json, field.cell(pair));
      const Json wanted = Json::parse(json.take()).value();
      const Json& found = rows["rows"][pair.index][name];
      SCOPED_TRACE(name + " of " + pair.a.name);
      if (wanted.is_string()) {
        EXPECT_EQ(found.string(), wanted.string());
      }
      if (wanted.number()) {
        EXPECT_EQ(found.number(), wanted.number());
      }
      if (wanted.is_string() || wanted.number()) ++told;
    }
  }
  EXPECT_GT(told, 6 * state.results.report.pairs.size());  // Names, dtypes, status, matcher …
}

TEST(Rows, OnlyThoseThatChangedSince) {
  SessionState state = state_of(sample_report());
  const uint64_t seen = state.rev;
  EXPECT_EQ(Json::parse(rows_as_json(state, {.since = seen})).value()["n"].u64(), 0U);
  state.touch(1);
  const Json changed = Json::parse(rows_as_json(state, {.since = seen})).value();
  EXPECT_EQ(changed["n"].u64(), 1U);
  EXPECT_EQ(changed["rows"][0]["id"].number(), 1.0);
  EXPECT_EQ(changed["full"].boolean(), false);
  state.set_results(state.results, true);
  EXPECT_EQ(Json::parse(rows_as_json(state, {.since = seen})).value()["full"].boolean(), true);
}

TEST(Rows, HaveOnlyTheColumnsThatAreWanted) {
  const SessionState state = state_of(sample_report());
  const RowsWanted wanted{std::nullopt, {"nameA", "id"}};
  const Json json = Json::parse(rows_as_json(state, wanted)).value();
  EXPECT_EQ(json["rows"][0]["id"].number(), 0.0);
  EXPECT_EQ(json["rows"][0]["nameA"].string(), state.row(0).name_a());
  EXPECT_TRUE(json["rows"][0]["status"].is_null());
  const std::string columns = rows_as_columns(state, wanted);
  EXPECT_NE(columns.find("\"nameA\""), std::string::npos);
  EXPECT_EQ(columns.find("\"status\""), std::string::npos);
}

TEST(Rows, KeepTheOrderOfTheUser) {
  SessionState state = state_of(sample_report());
  state.set_order({2, 0, 2, 99});
  EXPECT_EQ(state.row(2).order, 0U);
  EXPECT_EQ(state.row(0).order, 1U);
  EXPECT_EQ(state.row(1).order, 2U);
  state.set_order({});
  EXPECT_EQ(state.row(2).order, 2U);
}

TEST(Rows, TheRatioIsAboveOneExactlyWhereSomethingExceeds) {
  Diff diff;
  diff.max_abs = 0.5;
  diff.a_there = 10;
  diff.tolerance = {0.1, 0.1};
  EXPECT_NEAR(*tolerance_ratio(diff), 0.5 / 1.1, 1e-12);
  diff.rtol_needed = 0.3;
  diff.exceeding = 1;  // Not the one where |d| is largest.
  EXPECT_NEAR(*tolerance_ratio(diff), 3, 1e-12);
  diff.rtol_needed = {};
  EXPECT_NEAR(*tolerance_ratio(diff), 5, 1e-12);
  diff.max_abs = 11;
  diff.rtol_needed = 1e9;  // Where a is tiny; the largest |d| says more.
  EXPECT_NEAR(*tolerance_ratio(diff), 10, 1e-12);
  diff.max_abs = {};
  EXPECT_FALSE(tolerance_ratio(diff).has_value());
}

TEST(Cut, ReadsAnIndexForEachAxis) {
  const Cut cut = Cut::parse("1,y,x", {2, 3, 4}).value();
  EXPECT_EQ(cut.y, 1U);
  EXPECT_EQ(cut.x, 2U);
  EXPECT_EQ(Cut::parse("y,0", {2, 3}).value().x, 0U);  // A plane of one line has columns.
  for (const char* wrong : {"", "1,y", "2,y,x", "1,x,x", "1,y,z", "1,y,-1", "1,,x"})
    EXPECT_FALSE(Cut::parse(wrong, {2, 3, 4}).ok()) << wrong;
  EXPECT_TRUE(Cut::parse("", {}).ok());
}

TEST(Cut, MakesAPlaneOfAnyView) {
  const View view = counting_view({2, 3, 4});
  const View plane = plane_of(view, Cut::parse("1,x,y", view.shape).value());
  EXPECT_EQ(plane.shape, Shape({4, 3}));
  EXPECT_EQ(values_of(plane)[1], 16);
  const View part = narrowed_to(plane, {1, 3}, {0, 2});
  EXPECT_EQ(values_of(part), std::vector<float>({13, 17, 14, 18}));
  EXPECT_EQ(plane_of(view, Cut::parse("0,0,x", view.shape).value()).shape, Shape({1, 4}));
  EXPECT_EQ(plane_of(view, Cut::parse("1,2,3", view.shape).value()).shape, Shape({1, 1}));
}

TEST(Range, IsCutToItsAxis) {
  const Range range = Range::parse("2:9", 5).value();
  EXPECT_EQ(range.first, 2U);
  EXPECT_EQ(range.end, 5U);
  EXPECT_EQ(Range::parse(":3", 5).value().size(), 3U);
  EXPECT_EQ(Range::parse("", 5).value().size(), 5U);
  EXPECT_FALSE(Range::parse("3", 5).ok());
  EXPECT_FALSE(Range::parse("3:1", 5).ok());
}

}  // namespace
}  // namespace tensordiff::serve
