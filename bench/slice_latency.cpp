// How long it takes to read a slice of a mapped tensor, at random places, in row-major order and
// transposed. Prints microseconds: layout, values read, median, 99th of a hundred.
//
//   slice_latency FILE      (any file; it is taken for one large matrix of f32)

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <vector>

#include "align/view.h"
#include "tensor/reader.h"

using namespace tensordiff;

namespace {

void measure(const char* layout, const View& view, std::size_t count, std::mt19937_64& random) {
  std::vector<double> values(count);
  std::vector<double> micros;
  for (int i = 0; i < 500; ++i) {
    const uint64_t first = random() % (view.elements() - count);
    const auto start = std::chrono::steady_clock::now();
    const Result<Reader> reader = Reader::open(view);
    reader.value().values(first, count, values.data());
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    micros.push_back(took.count());
  }
  std::ranges::sort(micros);
  std::printf("%s %zu %.1f %.1f\n", layout, count, micros[micros.size() / 2],
              micros[micros.size() * 99 / 100]);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return std::fputs("usage: slice_latency FILE\n", stderr), 2;
  Result<Bytes> file = map_file(arguments[1]);
  if (!file.ok()) return std::fprintf(stderr, "%s\n", file.error().message().c_str()), 2;
  const uint64_t side = 4096;
  const uint64_t rows = file.value().size() / 4 / side;
  const View matrix =
      contiguous_view(DType::f32, {rows, side}, ByteSource(std::move(file).value())).value();
  const View transposed = permuted(matrix, std::vector<uint64_t>{1, 0});
  std::mt19937_64 random(1);
  for (const std::size_t values : {10, 100, 1000, 10'000}) {
    measure("row-major", matrix, values, random);
    measure("transposed", transposed, values, random);
  }
  return 0;
}
