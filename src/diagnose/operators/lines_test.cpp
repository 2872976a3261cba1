// What operators do with the rows and columns of values: shares, orders, planes, scans.

#include <gtest/gtest.h>

#include <cmath>

#include "diagnose/operators/planes.h"
#include "diagnose/operators/reordered.h"
#include "diagnose/operators/scan.h"
#include "diagnose/operators/shares.h"
#include "tensor/test_views.h"

namespace tensordiff::operators {
namespace {

Block block_of(uint64_t rows, uint64_t features, unsigned seed) {
  const std::vector<float> values = noise(rows * features, seed);
  return {features, {values.begin(), values.end()}};
}

// Values that are the same in both runs.
class Fixed final : public Operator {
 public:
  explicit Fixed(Block block) : block_(std::move(block)) {
    extents_ = {{1, block_.rows()}, block_.features};
  }
  std::string_view kind() const override { return "fixed"; }
  const Extents& extents() const override { return extents_; }
  Block predict(const Reading&, const Grid& grid) const override {
    Block made{grid.columns.empty() ? block_.features : grid.columns.size()};
    for (const uint64_t row : grid.rows)
      for (uint64_t c = 0; c < made.features; ++c)
        made.values.push_back(block_.row(row)[grid.columns.empty() ? c : grid.columns[c]]);
    return made;
  }
  std::vector<Change> changes(const Context&) const override { return {}; }
  std::string text() const override { return "'x'"; }

 private:
  Block block_;
  Extents extents_;
};

OperatorPtr fixed(Block block) { return std::make_shared<Fixed>(std::move(block)); }

TEST(SolveShares, FindsWhatWasPlanted) {
  const Block x = block_of(12, 4, 1), w = block_of(6, 4, 2), p = block_of(12, 6, 3);
  const std::vector<double> planted = {0, -1, 0.5, 2};
  Block y = p;
  for (uint64_t r = 0; r < y.rows(); ++r)
    for (uint64_t c = 0; c < y.features; ++c)
      for (uint64_t j = 0; j < 4; ++j) y.row(r)[c] += planted[j] * x.row(r)[j] * w.row(c)[j];
  const auto found = solve_shares(x, w, y, p);
  ASSERT_TRUE(found);
  for (std::size_t j = 0; j < planted.size(); ++j) EXPECT_NEAR((*found)[j], planted[j], 1e-9);
}

TEST(SolveShares, FeaturesThatCannotBeToldApartAreNotSolvedFor) {
  Block x = block_of(12, 3, 1), w = block_of(6, 3, 2);
  for (uint64_t r = 0; r < x.rows(); ++r) x.row(r)[2] = 2 * x.row(r)[1];
  for (uint64_t c = 0; c < w.rows(); ++c) w.row(c)[2] = w.row(c)[1];
  EXPECT_FALSE(solve_shares(x, w, block_of(12, 6, 4), block_of(12, 6, 5)));
}

TEST(PlacesOf, FindsAnOrderAndRefusesStrangers) {
  const Block among = block_of(5, 7, 1);
  const std::vector<uint64_t> order = {3, 1, 4, 0, 2};
  Block lines{7};
  for (const uint64_t at : order)
    lines.values.insert(lines.values.end(), among.row(at), among.row(at) + 7);
  EXPECT_EQ(places_of(lines, among, 1e-6), order);
  lines.row(2)[0] += 1;
  EXPECT_FALSE(places_of(lines, among, 1e-6));
  EXPECT_FALSE(places_of(block_of(5, 6, 1), among, 1e-6));
}

TEST(PlacesOf, ALineThatFitsItsOwnPlaceStaysThere) {
  Block among = block_of(3, 4, 1);
  for (uint64_t c = 0; c < 4; ++c) among.row(2)[c] = among.row(0)[c];
  EXPECT_EQ(places_of(among, among, 1e-6), (std::vector<uint64_t>{0, 1, 2}));
}

TEST(Turned, MakesColumnsRows) {
  const Block block{3, {1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(turned(block).values, (std::vector<double>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(turned(block).features, 2U);
}

TEST(Rows, GivesTheRowsOfAnotherOperatorInAnOrder) {
  const Rows rows(fixed({2, {1, 2, 3, 4, 5, 6}}), {{1, 3}, 2}, {2, 0, 0});
  EXPECT_EQ(rows.predict({}, {{0, 2}}).values, (std::vector<double>{5, 6, 1, 2}));
  EXPECT_EQ(rows.predict({}, {{0}, {1}}).values, (std::vector<double>{6}));
}

TEST(PlaneOf, PutsChannelsLast) {
  const auto plane = plane_of(counting_view({1, 2, 3}), {}, Layout::channels);
  ASSERT_TRUE(plane);
  EXPECT_EQ(plane->extents.features, 2U);
  EXPECT_EQ(plane->extents.rows(), 3U);
  EXPECT_EQ(PlaneValues(*plane).at({{1}}, 0).values, (std::vector<double>{1, 4}));
}

TEST(PlaneOf, RefusesVectorsAndComplexNumbers) {
  EXPECT_FALSE(plane_of(counting_view({6}), {}, Layout::plain));
  View complex = counting_view({2, 3});
  complex.dtype = DType::c64;
  EXPECT_FALSE(plane_of(complex, {}, Layout::plain));
}

TEST(PlaneValues, AUnitMovesEachValueByAsMuchAndRowsThatAreNotThereGiveNothing) {
  const PlaneValues values(*plane_of(f32_view({2, 2}, {1, 2, 4, 8}), {}, Layout::plain));
  const Block exact = values.at({{0, 1}}, 0), off = values.at({{0, 1}}, 0.5);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_DOUBLE_EQ(std::abs(off.values[i] / exact.values[i] - 1), 0.5);
  EXPECT_TRUE(values.at({{2}}, 0).empty());
}

// One channel, one state, worked out by hand: A = −1, B = C = 1, no gate.
TEST(Scan, RunsTheRecurrence) {
  const ActivationFunction keep{"none", [](double x) { return x; }};
  const ActivationFunction exp{"exp", [](double x) { return std::exp(x); }};
  ScanForm form{1, {0}, {2}, &keep, nullptr, true, &exp};
  const Scan::Inputs inputs{fixed({1, {1, 3}}), fixed({1, {0.5, 0.25}}), fixed({2, {1, 1, 1, 1}}),
                            fixed({1, {1, 1}})};
  const double first = 0.5 * 1, second = std::exp(-0.25) * first + 0.25 * 3;
  const std::vector<double> with = Scan({{1, 2}, 1}, form, inputs).predict({}, {{0, 1}}).values;
  ASSERT_EQ(with.size(), 2U);
  EXPECT_NEAR(with[0], first + 2 * 1, 1e-12);
  EXPECT_NEAR(with[1], second + 2 * 3, 1e-12);
  form.skip = false;
  EXPECT_NEAR(Scan({{1, 2}, 1}, form, inputs).predict({}, {{1}}).values.at(0), second, 1e-12);
}

}  // namespace
}  // namespace tensordiff::operators
