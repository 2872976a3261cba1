#include "compare/pieces.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tensor/test_views.h"

namespace tensordiff {
namespace {

// Two million elements and a bit: three chunks.
constexpr uint64_t kElements = 2 * 1048576 + 777;

AlignedPair noisy_pair(const Shape& shape) {
  const uint64_t count = element_count(shape).value();
  std::vector<float> a = noise(count, 1), b = a;
  const std::vector<float> off = noise(count, 2);
  for (std::size_t i = 0; i < b.size(); i += 3) b[i] += 0.01F * off[i];
  b[count / 2] = std::numeric_limits<float>::quiet_NaN();
  b[count - 1] += 100;
  return {f32_view(shape, a), f32_view(shape, b), {}};
}

std::vector<Piece> cut(const AlignedPair& pair, uint64_t parts) {
  std::vector<Piece> pieces;
  for (uint64_t part = 0; part < parts; ++part) {
    Piece piece = measure_piece(pair, {}, {part * 1000 / parts, (part + 1) * 1000 / parts, 1000});
    if (piece.first < piece.end || (piece.chunks == 0 && part == 0) || !piece.error.empty())
      pieces.push_back(std::move(piece));
  }
  return pieces;
}

Result<Comparison> put_together(const AlignedPair& pair, const std::vector<Piece>& pieces,
                                Beyond& beyond) {
  std::vector<const Piece*> pointers;
  for (const Piece& piece : pieces) pointers.push_back(&piece);
  return compare_pieces(pair, {}, pointers, beyond);
}

// To the last bit.
void expect_same(const AlignedPair& pair, uint64_t parts) {
  SCOPED_TRACE(parts);
  Beyond beyond, beyond_whole;
  const Result<Comparison> whole = compare(pair, {}, beyond_whole);
  const Result<Comparison> merged = put_together(pair, cut(pair, parts), beyond);
  ASSERT_TRUE(merged.ok()) << merged.error().message();
  const Comparison &x = whole.value(), &y = merged.value();
  EXPECT_EQ(x.status, y.status);
  EXPECT_EQ(x.diff.mse, y.diff.mse);
  EXPECT_EQ(x.diff.mean_rel, y.diff.mean_rel);
  EXPECT_EQ(x.diff.cosine, y.diff.cosine);
  EXPECT_EQ(x.diff.pcc, y.diff.pcc);
  EXPECT_EQ(x.diff.max_abs, y.diff.max_abs);
  EXPECT_EQ(x.diff.max_abs_at, y.diff.max_abs_at);
  EXPECT_EQ(x.diff.exceeding, y.diff.exceeding);
  EXPECT_EQ(x.diff.rtol_needed, y.diff.rtol_needed);
  EXPECT_EQ(x.a.mean, y.a.mean);
  EXPECT_EQ(x.b.std, y.b.std);
  const auto bits = [](const std::optional<double>& value) {
    return value ? std::bit_cast<uint64_t>(*value) : 0;
  };
  EXPECT_EQ(bits(x.diff.a_there), bits(y.diff.a_there));
  EXPECT_EQ(bits(x.diff.b_there), bits(y.diff.b_there));
  ASSERT_EQ(beyond.runs.size(), beyond_whole.runs.size());
  EXPECT_EQ(beyond.all, beyond_whole.all);
  for (std::size_t i = 0; i < beyond.runs.size(); ++i) {
    EXPECT_EQ(beyond.runs[i].first, beyond_whole.runs[i].first);
    EXPECT_EQ(beyond.runs[i].d_squared, beyond_whole.runs[i].d_squared);
  }
}

TEST(Pieces, GiveWhatOneProcessGives) {
  const AlignedPair pair = noisy_pair({kElements});
  for (const uint64_t parts : {1, 2, 3, 5, 40}) expect_same(pair, parts);
}

TEST(Pieces, OfATransposedPairDoToo) {
  AlignedPair pair = noisy_pair({1500, 1500});
  std::swap(pair.b.parts[0].strides[0], pair.b.parts[0].strides[1]);
  for (const uint64_t parts : {1, 2, 3, 7}) expect_same(pair, parts);
}

TEST(Pieces, OfNothingAndOfOneElement) {
  expect_same({f32_view({0}, {}), f32_view({0}, {}), {}}, 3);
  expect_same({f32_view({1}, {1}), f32_view({1}, {2}), {}}, 3);
}

TEST(Pieces, EachUnitIsInOneShare) {
  for (const uint64_t units : {0, 1, 2, 3, 10, 1001}) {
    uint64_t next = 0;
    for (uint64_t slice = 0; slice < 100; slice += 20) {
      const UnitRange range = units_in({slice, slice + 20, 100}, units);
      EXPECT_EQ(range.begin, next);
      next = range.end;
    }
    EXPECT_EQ(next, units);
  }
}

std::string fault_of(const AlignedPair& pair, const std::vector<Piece>& pieces) {
  Beyond beyond;
  const Result<Comparison> found = put_together(pair, pieces, beyond);
  return found.ok() ? "none" : found.error().message();
}

TEST(Pieces, ThatCannotBeAreErrors) {
  const AlignedPair pair = noisy_pair({kElements});
  const std::vector<Piece> good = cut(pair, 3);
  ASSERT_EQ(fault_of(pair, good), "none");
  EXPECT_EQ(fault_of(pair, {}), "a partial result is missing");
  EXPECT_EQ(fault_of(pair, {good[0], good[1]}), "a partial result is missing");
  EXPECT_EQ(fault_of(pair, {good[0], good[2]}), "the partial results do not fit together");
  EXPECT_EQ(fault_of(pair, {good[0], good[1], good[1]}), "the partial results do not fit together");
  std::vector<Piece> bad = good;
  bad[1].totals.clear();
  EXPECT_EQ(fault_of(pair, bad), "the partial results do not fit together");
  bad = good;
  bad[2].totals[0].sums.max_abs_at = kElements;
  EXPECT_EQ(fault_of(pair, bad), "the partial result has positions outside of the tensor");
  bad = good;
  bad[0].totals[0].beyond.runs = {{0, 1U << 30, 0, 0}};
  EXPECT_EQ(fault_of(pair, bad), "the partial result is of another tensor");
  bad = good;
  bad[2].spots.clear();
  bad[1].spots.clear();
  EXPECT_TRUE(fault_of(pair, bad).starts_with("the partial result lacks the values at position"));
  bad = good;
  bad[1].error = "A: the file was cut short while it was read";
  EXPECT_EQ(fault_of(pair, bad), "A: the file was cut short while it was read");
}

}  // namespace
}  // namespace tensordiff
