#include "diagnose/hypotheses/row_order.h"

#include <gtest/gtest.h>

#include "diagnose/toys/toy_values.h"

namespace tensordiff {
namespace {

constexpr uint64_t kRows = 50, kColumns = 40;

Values with_rows(const Values& a, const std::vector<uint64_t>& source) {
  Values b;
  for (const uint64_t row : source)
    b.insert(b.end(), a.begin() + static_cast<std::ptrdiff_t>(row * kColumns),
             a.begin() + static_cast<std::ptrdiff_t>((row + 1) * kColumns));
  return b;
}

std::vector<uint64_t> turned(uint64_t by) {
  std::vector<uint64_t> source;
  for (uint64_t row = 0; row < kRows; ++row) source.push_back((row + by) % kRows);
  return source;
}

std::optional<std::vector<uint64_t>> found(const Values& a, const Values& b, DType dtype) {
  return order_of_rows(
      {view_of({kRows, kColumns}, a, DType::f32), view_of({kRows, kColumns}, b, dtype), {}, {}});
}

TEST(RowOrder, FindsWhereEachRowIs) {
  const Values a = random_values(kRows * kColumns, 1);
  for (const DType dtype : {DType::f32, DType::bf16})
    EXPECT_EQ(found(a, with_rows(a, turned(13)), dtype), turned(13));
}

TEST(RowOrder, LeavesRowsThatAreTheSameWhereTheyAre) {
  Values a = random_values(kRows * kColumns, 1);
  std::fill_n(a.begin(), 10 * kColumns, 0);  // Ten rows of zeros.
  std::vector<uint64_t> source = turned(0);
  std::swap(source[3], source[30]);
  std::swap(source[5], source[40]);
  const auto order = found(a, with_rows(a, source), DType::f32);
  ASSERT_TRUE(order);
  for (uint64_t row = 0; row < kRows; ++row) EXPECT_EQ((*order)[row] == row, source[row] == row);
}

TEST(RowOrder, IsNothingWhereNoneMovedOrOneIsNew) {
  const Values a = random_values(kRows * kColumns, 1);
  EXPECT_FALSE(found(a, a, DType::f32));
  Values b = with_rows(a, turned(13));
  for (uint64_t i = 0; i < kColumns; ++i) b[7 * kColumns + i] = 1;
  EXPECT_FALSE(found(a, b, DType::f32));
}

}  // namespace
}  // namespace tensordiff
