// What the HDF5 process tells us: back and forth, and nonsense.

#include "formats/hdf5_wire.h"

#include <gtest/gtest.h>

namespace tensordiff::hdf5 {
namespace {

Dataset sample() {
  Dataset dataset;
  dataset.name = "a/b";
  dataset.dtype = DType::i16;
  dataset.swapped = true;
  dataset.shape = {3, 4};
  dataset.layout = Layout::chunked;
  dataset.fill = "xx";
  dataset.chunk_shape = {2, 2};
  dataset.filters = {Filter::shuffle, Filter::deflate};
  return dataset;
}

TEST(Hdf5Wire, GoesThereAndBack) {
  const std::string bytes = encode(sample());
  const Result<Dataset> read = decode(as_bytes(bytes));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().name, "a/b");
  EXPECT_EQ(read.value().dtype, DType::i16);
  EXPECT_TRUE(read.value().swapped);
  EXPECT_EQ(read.value().shape, (Shape{3, 4}));
  EXPECT_EQ(read.value().chunk_shape, (Shape{2, 2}));
  EXPECT_EQ(read.value().filters, sample().filters);
}

TEST(Hdf5Wire, RefusesEveryCutAndEveryChangeThatMakesNoSense) {
  const std::string bytes = encode(sample());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode(as_bytes(bytes).first(size)).ok()) << size;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(0xff);
    const Result<Dataset> read = decode(as_bytes(changed));
    EXPECT_TRUE(read.ok() || read.error().message().ends_with("makes no sense"));
  }
  EXPECT_FALSE(decode_chunks(as_bytes(std::string(27, 'x')), 1).ok());
  EXPECT_EQ(decode_chunks(as_bytes(std::string(28, 'x')), 1).value().size(), 1U);
  EXPECT_FALSE(decode_problem(as_bytes(std::string("\xff\xff\xff\xff"))).ok());
}

}  // namespace
}  // namespace tensordiff::hdf5
