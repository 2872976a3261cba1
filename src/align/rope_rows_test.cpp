#include "align/rope_rows.h"

#include <gtest/gtest.h>

#include <random>

#include "tensor/reader.h"

namespace tensordiff {
namespace {

std::vector<float> random_floats(std::size_t count) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

View view_of(const Shape& shape, const std::vector<float>& values) {
  std::string memory(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return contiguous_view(DType::f32, shape, ByteSource(bytes_of(std::move(memory)))).value();
}

// Row r of each head of `head` rows from halves to neighbours.
std::vector<float> to_neighbours(const std::vector<float>& values, uint64_t head, uint64_t width) {
  std::vector<float> result(values.size());
  for (uint64_t row = 0; row < values.size() / width; ++row) {
    const uint64_t at = row % head, from = at / 2 + at % 2 * (head / 2);
    for (uint64_t i = 0; i < width; ++i)
      result[row * width + i] = values[(row - at + from) * width + i];
  }
  return result;
}

TEST(RopeRows, AreBroughtToOneOrderAndSaid) {
  for (const uint64_t width : {uint64_t{1}, uint64_t{16}}) {
    const std::vector<float> halves = random_floats(64 * width);
    const View a = view_of({64, width}, halves);
    const View b = view_of({64, width}, to_neighbours(halves, 32, width));
    const auto found = with_rope_rows({a, b, {}});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->notes, (LayoutNotes{{LayoutNote::Kind::rope_rows, 'a', 0, 32}}));
    EXPECT_EQ(found->a.shape, (Shape{2, 16, 2, width}));
    EXPECT_EQ(found->steps.size(), 3U);
    std::vector<double> of_a(64 * width), of_b(64 * width);
    Reader::open(found->a).value().values(0, of_a.size(), of_a.data());
    Reader::open(found->b).value().values(0, of_b.size(), of_b.data());
    EXPECT_EQ(of_a, of_b);
    EXPECT_EQ(with_rope_rows({b, a, {}})->notes,
              (LayoutNotes{{LayoutNote::Kind::rope_rows, 'b', 0, 32}}));
  }
}

TEST(RopeRows, AreLeftAsTheyAreWhereTheyFitOrNothingDoes) {
  const std::vector<float> values = random_floats(64 * 16);
  const View a = view_of({64, 16}, values);
  EXPECT_FALSE(with_rope_rows({a, a, {}}));
  std::vector<float> reversed(values.rbegin(), values.rend());
  EXPECT_FALSE(with_rope_rows({a, view_of({64, 16}, reversed), {}}));
}

}  // namespace
}  // namespace tensordiff
