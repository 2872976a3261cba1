// Any tensor, its axes moved, merged, split and padded with ones, is found to be the same tensor.

#include <algorithm>
#include <random>

#include "align/view.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

// A way of storing a tensor that a port might have chosen.
class RandomLayout {
 public:
  explicit RandomLayout(unsigned seed) : generator_(seed) {}

  uint64_t below(uint64_t bound) { return generator_() % bound; }

  Shape shape() {
    Shape shape(2 + below(3));
    for (uint64_t& size : shape) size = 2 + below(7);
    return shape;
  }

  // All axes but the last, which holds the features, in any order.
  std::vector<uint64_t> order(std::size_t rank) {
    std::vector<uint64_t> order(rank);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end() - 1, generator_);
    return order;
  }

  Shape with_merged_axes(const Shape& shape) {
    Shape merged;
    for (const uint64_t size : shape) {
      if (merged.empty() || below(2) == 0) {
        merged.push_back(size);
      } else {
        merged.back() *= size;
      }
    }
    return merged;
  }

  Shape with_units(Shape shape) {
    for (uint64_t count = below(3); count > 0; --count)
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(below(shape.size() + 1)), 1);
    return shape;
  }

 private:
  std::mt19937 generator_;
};

TEST(AlignProperty, UndoesEveryLayout) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    RandomLayout random(seed);
    const View a = noise_view(random.shape(), seed);
    const View moved = permuted(a, random.order(a.shape.size()));
    const View b = stored_as(moved, random.with_units(random.with_merged_axes(moved.shape)));
    if (a.shape == b.shape) continue;  // Compared as they are, whatever was done to them.
    SCOPED_TRACE(fmt::format("seed {}: a {} b {}", seed, testing::PrintToString(a.shape),
                             testing::PrintToString(b.shape)));

    for (const bool mirrored : {false, true}) {
      const Result<AlignedPair> pair = mirrored ? align(b, a) : align(a, b);
      ASSERT_TRUE(pair.ok()) << pair.error().message();
      EXPECT_EQ(pair.value().a.shape, pair.value().b.shape);
      EXPECT_EQ(values_of(pair.value().a), values_of(pair.value().b));
    }
  }
}

// One wrong element stays one wrong element.
TEST(AlignProperty, NeitherHidesNorSpreadsAMistake) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    RandomLayout random(seed);
    const View a = noise_view(random.shape(), seed);
    const View moved = permuted(a, random.order(a.shape.size()));
    std::vector<float> values = values_of(moved);
    values[random.below(values.size())] += 0.5F;
    const View b = f32_view(random.with_units(random.with_merged_axes(moved.shape)), values);
    if (a.shape == b.shape || values.size() < 100) continue;

    const Result<AlignedPair> pair = align(a, b);
    ASSERT_TRUE(pair.ok()) << "seed " << seed << ": " << pair.error().message();
    const std::vector<float> left = values_of(pair.value().a);
    const std::vector<float> right = values_of(pair.value().b);
    std::size_t different = 0;
    for (std::size_t i = 0; i < left.size(); ++i) different += left[i] != right[i];
    EXPECT_EQ(different, 1U) << "seed " << seed;
  }
}

// The first part of any tensor along any axes is found, and said.
TEST(AlignProperty, FindsEveryPrefix) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    RandomLayout random(seed);
    const View whole = noise_view(random.shape(), seed);
    View part = whole;
    for (std::size_t axis = 0; axis < part.shape.size(); ++axis)
      part = truncated(part, axis, 2 + random.below(part.shape[axis] - 1));
    if (part.shape == whole.shape) continue;
    const View stored = stored_as(part, random.with_units(part.shape));

    const Result<AlignedPair> pair = align(stored, whole);
    ASSERT_TRUE(pair.ok()) << "seed " << seed << ": " << pair.error().message();
    EXPECT_EQ(values_of(pair.value().a), values_of(pair.value().b)) << "seed " << seed;
    EXPECT_TRUE(leaves_out(pair.value().notes)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tensordiff
