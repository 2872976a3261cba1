// A range of a tensor's elements, cut into boxes: every range of a few shapes.

#include "formats/flat_parts.h"

#include <gtest/gtest.h>

#include "formats/test_files.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

TEST(FlatParts, FillAnyShapeFromAnyTwoPieces) {
  for (const Shape& shape : {Shape{}, Shape{7}, Shape{3, 4}, Shape{2, 3, 4}, Shape{2, 1, 3, 2}}) {
    const uint64_t count = element_count(shape).value();
    std::string bytes;
    for (uint64_t i = 0; i < count; ++i) bytes += test_files::f32(static_cast<float>(i));
    const ByteSource source(bytes_of(bytes));
    for (uint64_t first = 0; first <= count; ++first) {
      for (uint64_t second = first; second <= count; ++second) {
        View view;
        view.shape = shape;
        add_flat_part(view, 0, first, source, 0);
        add_flat_part(view, first, second - first, source.slice(first * 4, (count - first) * 4), 0);
        add_flat_part(view, second, count - second, source, second);
        const Result<Reader> reader = Reader::open(view);
        ASSERT_TRUE(reader.ok());
        std::vector<double> values(count);
        reader.value().values(0, count, values.data());
        for (uint64_t i = 0; i < count; ++i) ASSERT_EQ(values[i], static_cast<double>(i));
      }
    }
  }
}

}  // namespace
}  // namespace tensordiff
