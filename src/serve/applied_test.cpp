#include "serve/applied.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "align/view.h"
#include "tensor/test_views.h"

namespace tensordiff::serve {
namespace {

constexpr uint64_t kTokens = 12, kFeatures = 32;

std::vector<float> all_of(const View& view) {
  const Reader reader = Reader::open(view).value();
  std::vector<double> values(view.elements());
  reader.values(0, values.size(), values.data());
  return {values.begin(), values.end()};
}

// B made of A element by element: value(row, feature).
template <class Make>
AlignedPair pair_of(const View& a, const Make& value) {
  std::vector<float> b;
  for (uint64_t i = 0; i < a.elements(); ++i)
    b.push_back(static_cast<float>(value(i / kFeatures, i % kFeatures)));
  return {a, f32_view(a.shape, b), {}};
}

std::optional<View> nothing(std::string_view) { return std::nullopt; }

class Applied : public testing::Test {
 protected:
  View a = noise_view({kTokens, kFeatures}, 3);
  std::vector<float> values = all_of(a);
  float at(uint64_t row, uint64_t i) const { return values[row * kFeatures + i]; }

  // That T(A) is B, to rounding.
  void expect(const Finding& finding, const AlignedPair& pair,
              const FindTensor& find = nothing) const {
    const std::optional<View> made = applied(finding, pair, find);
    ASSERT_TRUE(made) << finding.code;
    ASSERT_EQ(made->shape, pair.b.shape);
    const std::vector<float> have = all_of(*made), want = all_of(pair.b);
    for (std::size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(have[i], want[i], 1e-5 * std::abs(want[i]) + 1e-6) << finding.code << " at " << i;
  }
};

Finding finding(std::string code, std::vector<Parameter> parameters) {
  Finding made;
  made.code = std::move(code);
  made.parameters = std::move(parameters);
  return made;
}

TEST_F(Applied, FactorsAndOffsets) {
  expect(finding("scale", {{"factor", 0.125}}),
         pair_of(a, [&](uint64_t r, uint64_t i) { return 0.125F * at(r, i); }));
  expect(finding("offset", {{"offset", 0.5}}),
         pair_of(a, [&](uint64_t r, uint64_t i) { return at(r, i) + 0.5F; }));
  // The vector is not among the parameters.
  expect(finding("offset", {{"offset_norm", 3.0}}),
         pair_of(a, [&](uint64_t r, uint64_t i) { return at(r, i) + static_cast<float>(i) / 7; }));
  expect(finding("norm_weight", {{"factor_min", 1.0}}), pair_of(a, [&](uint64_t r, uint64_t i) {
           return at(r, i) * (1 + static_cast<float>(i));
         }));
  expect(finding("norm_epsilon", {{"factor_min", 1.0}}), pair_of(a, [&](uint64_t r, uint64_t i) {
           return at(r, i) * (1 + static_cast<float>(r));
         }));
}

TEST_F(Applied, OrdersOfRowsAndColumns) {
  expect(finding("token_shift", {{"shift", 1.0}, {"wraps", std::string("yes")}}),
         pair_of(a, [&](uint64_t r, uint64_t i) { return at((r + kTokens - 1) % kTokens, i); }));
  expect(finding("block_permutation",
                 {{"blocks", 4.0}, {"source", std::vector<uint64_t>{1, 0, 2, 3}}}),
         pair_of(a, [&](uint64_t r, uint64_t i) { return at(r, i < 16 ? (i + 8) % 16 : i); }));
  expect(finding("interleave", {{"block", 8.0}, {"b", std::string("interleaved")}}),
         pair_of(a, [&](uint64_t r, uint64_t i) {
           return at(r, i / 8 * 8 + i % 8 / 2 + (i % 2) * 4);
         }));
  std::vector<uint64_t> turned;
  for (uint64_t i = 0; i < kTokens; ++i) turned.push_back(kTokens - 1 - i);
  expect(finding("row_permutation", {{"source", turned}}),
         pair_of(a, [&](uint64_t r, uint64_t i) { return at(kTokens - 1 - r, i); }));
}

TEST_F(Applied, TokensThatAreNotTheFirstAxis) {
  const View heads = noise_view({4, kTokens, 8}, 5);
  const std::vector<float> of = all_of(heads);
  std::vector<float> b;
  for (uint64_t h = 0; h < 4; ++h)
    for (uint64_t t = 0; t < kTokens; ++t)
      for (uint64_t i = 0; i < 8; ++i)
        b.push_back(of[(h * kTokens + (t + kTokens - 2) % kTokens) * 8 + i]);
  expect(finding("token_shift", {{"shift", 2.0}, {"wraps", std::string("yes")}}),
         {heads, f32_view(heads.shape, b), {}});
}

TEST_F(Applied, OtherTensorsAndTheirSums) {
  const View other = noise_view({kTokens, kFeatures}, 9);
  const std::vector<float> of = all_of(other);
  const auto named = [&](std::string_view name) {
    return name == "x" ? std::optional(other) : std::nullopt;
  };
  expect(finding("other_tensor", {{"tensor", std::string("x")}}),
         pair_of(a, [&](uint64_t r, uint64_t i) { return of[r * kFeatures + i]; }), named);
  expect(finding("residual_missing", {{"tensor", std::string("x")}, {"factor", -1.0}}),
         pair_of(a, [&](uint64_t r, uint64_t i) { return at(r, i) - of[r * kFeatures + i]; }),
         named);
}

TEST_F(Applied, RoundsAsACastDoes) {
  const auto rounded = [](float value) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000U;
    std::memcpy(&value, &bits, sizeof bits);
    return value;
  };
  expect(finding("cast", {{"dtype", std::string("bf16")}, {"rounding", std::string("nearest")}}),
         pair_of(a, [&](uint64_t r, uint64_t i) { return rounded(at(r, i)); }));
}

TEST_F(Applied, NothingWhereItDoesNotExplainThePair) {
  const AlignedPair pair = pair_of(a, [&](uint64_t r, uint64_t i) { return at(r, i) + 1; });
  for (const Finding& each :
       {finding("scale", {{"factor", 3.0}}), finding("operator", {}), finding("scale", {}),
        finding("block_permutation", {{"source", std::vector<uint64_t>{0, 9}}}),
        finding("other_tensor", {{"tensor", std::string("gone")}}),
        finding("axis_permutation", {{"order", std::vector<uint64_t>{0, 0}}})})
    EXPECT_FALSE(applied(each, pair, nothing)) << each.code;
}

}  // namespace
}  // namespace tensordiff::serve
