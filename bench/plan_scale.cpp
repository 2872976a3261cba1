// Plans comparisons that are too large for one machine, and says how long planning takes and how
// evenly the bytes are shared out. No file is read: only sizes are made up, from a fixed seed.
//
// Each process plans its own part alone, so that is what is timed; all parts are planned to find
// the largest one. A tensor is split between chunks of 1,048,576 elements, as compare/ does.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <vector>

#include "parts/plan.h"

namespace tensordiff {
namespace {

constexpr uint64_t kChunkElements = 1048576;

struct Job {
  const char* name;
  std::vector<uint64_t> elements;
  std::vector<uint64_t> bytes;  // Of both sides.
};

// Dumps of a run: every rank wrote as many files, from 1 KiB to 16 MiB, spread evenly on a
// logarithmic scale.
Job dumps(std::size_t files, std::size_t ranks) {
  Job job{"dumps: 10,000 files x 512 ranks", {}, {}};
  std::mt19937_64 random(25);
  std::uniform_real_distribution<double> exponent(10, 24);
  for (std::size_t i = 0; i < files * ranks; ++i) {
    const auto bytes = static_cast<uint64_t>(std::exp2(exponent(random)));
    job.elements.push_back(bytes / 4);
    job.bytes.push_back(2 * bytes);
  }
  return job;
}

// A mixture of experts of 1.3 TB: 61 layers with 256 experts in bf16, and a large vocabulary.
Job checkpoint() {
  Job job{"checkpoint: 1.3 TB x 2", {}, {}};
  const auto add = [&](uint64_t rows, uint64_t columns) {
    job.elements.push_back(rows * columns);
    job.bytes.push_back(2 * 2 * rows * columns);
  };
  add(129280, 7168);
  for (int layer = 0; layer < 61; ++layer) {
    for (int expert = 0; expert < 257; ++expert) add(2048, 7168), add(2048, 7168), add(7168, 2048);
    add(1536, 7168), add(24576, 1536), add(576, 7168), add(32768, 512), add(7168, 16384);
    add(7168, 1), add(7168, 1), add(256, 7168);
  }
  add(129280, 7168);
  return job;
}

// What a part reads, once its slices are rounded to chunks.
double bytes_of(const std::vector<Slice>& slices, const Job& job) {
  double bytes = 0;
  for (const Slice& slice : slices) {
    const uint64_t chunks = (job.elements[slice.pair] + kChunkElements - 1) / kChunkElements;
    const UnitRange mine = units_in(slice.share, chunks);
    if (chunks == 0) continue;
    bytes += static_cast<double>(job.bytes[slice.pair]) *
             static_cast<double>(mine.end - mine.begin) / static_cast<double>(chunks);
  }
  return bytes;
}

void plan(const Job& job, uint64_t parts) {
  using Clock = std::chrono::steady_clock;
  std::vector<uint64_t> costs = job.bytes;
  for (uint64_t& cost : costs) cost += 65536;
  double slowest = 0, most = 0, total = 0;
  for (uint64_t part = 1; part <= parts; ++part) {
    const auto start = Clock::now();
    const std::vector<Slice> slices = plan_part(costs, {part, parts});
    slowest = std::max(slowest, std::chrono::duration<double>(Clock::now() - start).count());
    const double bytes = bytes_of(slices, job);
    most = std::max(most, bytes);
    total += bytes;
  }
  fmt::print(
      "{{\"job\": \"{}\", \"pairs\": {}, \"bytes\": {:.0f}, \"parts\": {}, "
      "\"plan_seconds\": {:.4f}, \"largest_over_mean\": {:.4f}}}\n",
      job.name, job.bytes.size(), total, parts, slowest,
      most / (total / static_cast<double>(parts)));
}

}  // namespace
}  // namespace tensordiff

int main() {
  using namespace tensordiff;
  const Job many = dumps(10'000, 512);
  for (const uint64_t parts : {16, 512}) plan(many, parts);
  const Job large = checkpoint();
  for (const uint64_t parts : {16, 256, 1024}) plan(large, parts);
}
