// The same weights in two formats are the same weights: no pair of formats differs.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "formats/test_writers.h"
#include "pipeline.h"

namespace tensordiff {
namespace {

namespace fs = std::filesystem;
using namespace test_writers;

// Sizes and values of a small model, any but the same for each seed.
Arrays random_model(unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const auto size = [&] { return 2 + random() % 9; };
  const uint64_t wide = size() + 10, narrow = size();
  Arrays arrays = {{"embed.weight", {size() + 20, narrow}, {}},
                   {"layers.0.up.weight", {wide, narrow}, {}},
                   {"layers.0.up.bias", {wide}, {}},
                   {"layers.0.down.weight", {narrow, wide}, {}},
                   {"norm.weight", {narrow}, {}}};
  for (NamedArray& array : arrays) {
    uint64_t count = 1;
    for (const uint64_t axis : array.shape) count *= axis;
    for (uint64_t i = 0; i < count; ++i) array.values.push_back(normal(random));
  }
  return arrays;
}

void expect_same(const std::string& a, const std::string& b, std::size_t tensors) {
  SCOPED_TRACE(a + " against " + b);
  Request request;
  request.a = a;
  request.b = b;
  const Result<Report> report = compare_models(request);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report.value().pairs.size(), tensors);
  EXPECT_TRUE(report.value().only_a.empty());
  EXPECT_TRUE(report.value().only_b.empty());
  for (const PairRow& row : report.value().pairs) {
    EXPECT_LE(row.comparison.status, Status::equal) << row.a.name << " and " << row.b.name;
    EXPECT_EQ(row.comparison.diff.max_abs.value_or(1), 0) << row.a.name;
  }
}

TEST(CrossFormat, SameWeightsAreTheSameInEveryFormat) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  const Arrays model = random_model(seed);
  const fs::path folder = fs::temp_directory_path() / fmt::format("tensordiff_{}", getpid());
  fs::create_directories(folder);
  for (const FileWriter& writer : kWriters)
    std::ofstream(folder / writer.file, std::ios::binary) << writer.write(model);
  for (const FileWriter& a : kWriters)
    for (const FileWriter& b : kWriters)
      if (a.file != b.file)
        expect_same((folder / a.file).string(), (folder / b.file).string(), model.size());
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tensordiff
