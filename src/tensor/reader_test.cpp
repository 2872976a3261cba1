#include "tensor/reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

namespace tensordiff {
namespace {

ByteSource floats(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0F);
  std::string memory(count * 4, '\0');
  if (count > 0) std::memcpy(memory.data(), values.data(), memory.size());
  return ByteSource(bytes_of(std::move(memory)));
}

std::vector<double> all_of(const View& view) {
  std::vector<double> values(view.elements() * (is_complex(view.dtype) ? 2 : 1));
  Reader::open(view).value().components(0, view.elements(), values.data());
  return values;
}

TEST(Reader, HandsOutContiguousElementsInPlace) {
  const ByteSource source = floats(6);
  const View view = contiguous_view(DType::f32, {2, 3}, source).value();
  std::vector<std::byte> buffer;
  const Reader reader = Reader::open(view).value();
  EXPECT_EQ(reader.raw(2, 3, buffer), source.open().value().view.data() + 8);
  EXPECT_TRUE(buffer.empty());
}

// One value for each element, so that a caller who knows nothing of complex numbers has room.
TEST(Reader, GivesTheRealPartsOfComplexElements) {
  const Reader reader = Reader::open(contiguous_view(DType::c64, {3}, floats(6)).value()).value();
  std::vector<double> values(4, -1);
  reader.values(0, 3, values.data());
  EXPECT_EQ(values, (std::vector<double>{0, 2, 4, -1}));
}

TEST(Reader, GathersTransposedAndRepeatedElements) {
  const View t = strided_view(DType::f32, {3, 2}, {1, 3}, 0, floats(6)).value();
  EXPECT_EQ(all_of(t), (std::vector<double>{0, 3, 1, 4, 2, 5}));
  const View repeated = strided_view(DType::f32, {2, 3}, {0, 1}, 3, floats(6)).value();
  EXPECT_EQ(all_of(repeated), (std::vector<double>{3, 4, 5, 3, 4, 5}));
  const Reader reader = Reader::open(t).value();
  double middle[3];
  reader.values(1, 3, middle);
  EXPECT_EQ(middle[0], 3);
  EXPECT_EQ(middle[2], 4);
  EXPECT_EQ(reader.value(3), 4);
}

TEST(Reader, JoinsParts) {
  View view;
  view.dtype = DType::f32;
  view.shape = {2, 4};
  // Columns 0 and 1 from one source, 2 and 3 from another.
  view.parts.push_back({{0, 0}, {2, 2}, {2, 1}, 0, floats(4)});
  view.parts.push_back({{0, 2}, {2, 2}, {2, 1}, 4, floats(8)});
  EXPECT_EQ(all_of(view), (std::vector<double>{0, 1, 4, 5, 2, 3, 6, 7}));
  EXPECT_EQ(Reader::open(view).value().value(6), 6);
}

TEST(Reader, ReadsScalarsAndTheOtherByteOrder) {
  View scalar = contiguous_view(DType::f32, {}, floats(1)).value();
  EXPECT_EQ(all_of(scalar), std::vector<double>{0});
  View swapped =
      contiguous_view(DType::u16, {2}, ByteSource(bytes_of(std::string("\x01\x02\x00\x03", 4))))
          .value();
  swapped.swapped = true;
  EXPECT_EQ(all_of(swapped), (std::vector<double>{0x102, 3}));
}

TEST(Reader, UnpacksFourAndSixBits) {
  // Low nibble first: 1.0 (0x2), -6 (0xf).
  const View f4 = contiguous_view(DType::f4_e2m1, {2}, ByteSource(bytes_of("\xf2"))).value();
  EXPECT_EQ(all_of(f4), (std::vector<double>{1, -6}));
  // Four 6-bit numbers in three bytes: 0x08 (1.0), 0x1f (7.5), 0x00, 0x28 (-1.0).
  const uint32_t bits = 0x08 | 0x1f << 6 | 0x28 << 18;
  const std::string packed = {static_cast<char>(bits), static_cast<char>(bits >> 8),
                              static_cast<char>(bits >> 16)};
  const View f6 = contiguous_view(DType::f6_e2m3, {4}, ByteSource(bytes_of(packed))).value();
  EXPECT_EQ(all_of(f6), (std::vector<double>{1, 7.5, 0, -1}));
}

TEST(View, RefusesWhatLiesOutsideItsBytes) {
  EXPECT_EQ(contiguous_view(DType::f32, {2, 2}, floats(3)).error().message(),
            "shape [2, 2] of f32 needs 16 bytes, 12 are stored");
  EXPECT_EQ(strided_view(DType::f32, {2, 2}, {2, 1}, 1, floats(4)).error().message(),
            "shape [2, 2] at offset 1 reaches past the 4 elements stored");
  EXPECT_EQ(strided_view(DType::f32, {2}, {-1}, 1, floats(4)).error().message(),
            "negative stride -1");
  EXPECT_FALSE(strided_view(DType::f32, {2}, {INT64_MAX}, UINT64_MAX, floats(4)).ok());
  EXPECT_FALSE(contiguous_view(DType::f32, {1ULL << 40, 1ULL << 40}, floats(4)).ok());
  EXPECT_TRUE(contiguous_view(DType::f32, {0, 1ULL << 63}, floats(0)).ok());
}

}  // namespace
}  // namespace tensordiff
