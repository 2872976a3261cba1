// Chunks of a dataset, as the HDF5 process might describe them: good ones and lies.

#include "formats/hdf5_chunks.h"

#include <gtest/gtest.h>

#include "formats/test_files.h"
#include "tensor/reader.h"

namespace tensordiff::hdf5 {
namespace {

using test_files::f32;

Dataset sample() {
  Dataset dataset;
  dataset.shape = {3};
  dataset.layout = Layout::chunked;
  dataset.fill = std::string(4, '\0');
  dataset.chunk_shape = {2};
  dataset.chunks = {{{0}, 0, 8, 0}, {{2}, 8, 8, 0}};
  return dataset;
}
const std::string kFile = f32(1) + f32(2) + f32(3) + f32(99);

std::string told(const Dataset& dataset, const std::string& file = kFile) {
  const Result<View> view = chunked_view(dataset, bytes_of(file), Limits());
  if (!view.ok()) return "! " + view.error().message();
  const Result<Reader> reader = Reader::open(view.value());
  if (!reader.ok()) return "!! " + reader.error().message();
  std::vector<double> values(view.value().elements());
  reader.value().values(0, values.size(), values.data());
  std::string out;
  for (const double value : values) out += fmt::format("{:g} ", value);
  return out;
}

TEST(Hdf5Chunks, AreLaidWhereTheyBelong) {
  EXPECT_EQ(told(sample()), "1 2 3 ");
  Dataset hole = sample();
  hole.chunks.pop_back();
  hole.fill = f32(7);
  EXPECT_EQ(told(hole), "1 2 7 ");
  Dataset backwards = sample();
  std::swap(backwards.chunks[0], backwards.chunks[1]);
  EXPECT_EQ(told(backwards), "1 2 3 ");
}

TEST(Hdf5Chunks, SayWhatIsWrong) {
  const auto changed = [](auto change) {
    Dataset dataset = sample();
    change(dataset);
    return told(dataset);
  };
  EXPECT_EQ(changed([](Dataset& d) { d.chunks[1].address = 9; }),
            "! chunk at [2]: it lies outside the file");
  EXPECT_EQ(changed([](Dataset& d) { d.chunks[1].origin = {4}; }),
            "! chunk at [4]: it lies outside the dataset");
  EXPECT_EQ(changed([](Dataset& d) { d.chunks[1].origin = {1}; }),
            "! chunk at [1]: it lies outside the dataset");
  EXPECT_EQ(changed([](Dataset& d) { d.chunks[1].origin = {0}; }),
            "! chunk at [0]: it comes twice");
  EXPECT_EQ(changed([](Dataset& d) { d.chunk_shape = {0}; }), "! chunks of no size");
  EXPECT_EQ(changed([](Dataset& d) { d.chunk_shape = {2, 2}; }), "! chunks of another rank");
  EXPECT_EQ(changed([](Dataset& d) { d.chunk_shape = {uint64_t{1} << 40}; }),
            "! a chunk of [1099511627776] is larger than 1.0 GiB");
  EXPECT_EQ(changed([](Dataset& d) { d.fill = "x"; }), "! a fill value of odd size");
  EXPECT_EQ(changed([](Dataset& d) { d.chunks[1].bytes = 4; }),
            "!! chunk at [2]: 4 bytes where 8 are expected");
  EXPECT_EQ(changed([](Dataset& d) { d.filters = {Filter::deflate}; }),
            "!! chunk at [0]: the compressed data is damaged");
  EXPECT_EQ(changed([](Dataset& d) { d.filters = {Filter::fletcher32}; }),
            "!! chunk at [0]: its checksum does not match");
  EXPECT_EQ(changed([](Dataset& d) { d.shape = {uint64_t{1} << 41}; }),
            "! shape [2199023255552] has more than 2^40 elements");
  Limits limits;
  limits.expanded_bytes_max = 8;
  EXPECT_EQ(chunked_view(sample(), bytes_of(kFile), limits).error().message(),
            "it unpacks to more than 8 B, the limit; --limit expanded=N raises it");
}

// A filter that a chunk was written without.
TEST(Hdf5Chunks, MayLeaveFiltersOut) {
  Dataset dataset = sample();
  dataset.filters = {Filter::shuffle, Filter::deflate};
  for (Chunk& chunk : dataset.chunks) chunk.skipped = 3;
  EXPECT_EQ(told(dataset), "1 2 3 ");
}

}  // namespace
}  // namespace tensordiff::hdf5
