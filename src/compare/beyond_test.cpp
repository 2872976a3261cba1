#include "compare/beyond.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "align/view.h"
#include "compare/comparison.h"

namespace tensordiff {
namespace {

View view_of(const Shape& shape, const std::vector<float>& values) {
  std::string memory(values.size() * sizeof(float), '\0');
  std::memcpy(memory.data(), values.data(), memory.size());
  return contiguous_view(DType::f32, shape, ByteSource(bytes_of(std::move(memory)))).value();
}

std::vector<float> waves(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(1 + std::sin(double(i)));
  return values;
}

TEST(Beyond, FindsOneElementWhereverItLies) {
  const Shape shape = {300, 1000};
  const std::vector<float> a = waves(300'000);
  for (const uint64_t at : {uint64_t{0}, uint64_t{2047}, uint64_t{2048}, uint64_t{299'999}}) {
    std::vector<float> b = a;
    b[at] = at == 2048 ? NAN : b[at] + 1;
    const AlignedPair pair{view_of(shape, a), view_of(shape, b), {}, {}};
    Beyond beyond;
    const Comparison comparison = compare(pair, {}, beyond).value();
    ASSERT_EQ(beyond.runs.size(), 1U);
    EXPECT_EQ(beyond.runs[0].first, at / kTileElements);
    EXPECT_EQ(beyond.runs[0].unequal, 1U);
    const BeyondElements found = elements_beyond(pair, comparison.diff, beyond, 1 << 20).value();
    ASSERT_EQ(found.elements.size(), 1U);
    EXPECT_EQ(found.elements[0].position, at);
    EXPECT_EQ(found.elements[0].a, a[at]);
  }
}

// Walked in boxes: tiles are no ranges of positions there.
TEST(Beyond, FindsElementsOfATransposedPair) {
  const uint64_t rows = 300, columns = 500;
  const std::vector<float> a = waves(rows * columns);
  std::vector<float> b(a.size());
  for (uint64_t i = 0; i < a.size(); ++i) b[i % columns * rows + i / columns] = a[i];
  b[499 * rows + 7] += 1;  // Row 7, column 499.
  const std::vector<uint64_t> swapped = {1, 0};
  const AlignedPair pair{
      view_of({rows, columns}, a), permuted(view_of({columns, rows}, b), swapped), {}, {}};
  Beyond beyond;
  const Comparison comparison = compare(pair, {}, beyond).value();
  const BeyondElements found = elements_beyond(pair, comparison.diff, beyond, 1 << 20).value();
  ASSERT_EQ(found.elements.size(), 1U);
  EXPECT_EQ(found.elements[0].position, 7 * columns + 499);
}

TEST(Beyond, KeepsAFewRunsAndSaysThatThereAreMore) {
  const uint64_t tiles = 4 * kTileRunsMax;
  const std::vector<float> a = waves(tiles * kTileElements);
  std::vector<float> b = a;
  for (uint64_t tile = 0; tile < tiles; tile += 2) b[tile * kTileElements] += 1;
  Beyond beyond;
  (void)compare({view_of({a.size()}, a), view_of({b.size()}, b), {}, {}}, {}, beyond).value();
  EXPECT_FALSE(beyond.all);
  EXPECT_EQ(beyond.runs.size(), kTileRunsMax);
}

}  // namespace
}  // namespace tensordiff
