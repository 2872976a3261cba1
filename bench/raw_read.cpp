// The floor that a comparison is measured against: N threads read two mapped files and XOR them,
// and do nothing else. Prints the seconds it took.
//
//   raw_read THREADS A B

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "base/byte_source.h"

using tensordiff::Bytes;
using tensordiff::Result;

namespace {

// Eight sums, so that additions do not wait for each other; with the widest vectors there are.
#if defined(__x86_64__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), optimize("O3")))
#endif
uint64_t
xor_of(const std::byte* bytes, std::size_t size) {
  uint64_t sums[8] = {};
  for (std::size_t at = 0; at + 64 <= size; at += 64) {
    uint64_t words[8];
    std::memcpy(words, bytes + at, sizeof words);
    for (int i = 0; i < 8; ++i) sums[i] ^= words[i];
  }
  uint64_t all = 0;
  for (const uint64_t sum : sums) all ^= sum;
  return all;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return std::fputs("usage: raw_read THREADS A B\n", stderr), 2;
  const std::size_t threads = std::strtoul(arguments[1], nullptr, 10);
  const auto start = std::chrono::steady_clock::now();
  const Result<Bytes> a = tensordiff::map_file(arguments[2]);
  const Result<Bytes> b = tensordiff::map_file(arguments[3]);
  if (!a.ok() || !b.ok() || threads == 0) return std::fputs("cannot read\n", stderr), 2;

  std::vector<uint64_t> sums(threads);
  std::vector<std::thread> running;
  for (std::size_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      for (const Bytes* file : {&a.value(), &b.value()}) {
        const std::size_t begin = file->size() * t / threads;
        const std::size_t end = file->size() * (t + 1) / threads;
        sums[t] ^= xor_of(file->view.data() + begin, end - begin);
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  uint64_t all = 0;
  for (const uint64_t sum : sums) all ^= sum;
  std::printf("%.6f %016llx\n", took.count(), static_cast<unsigned long long>(all));
  return 0;
}
