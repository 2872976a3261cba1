#include "analyze/patch.h"

#include <algorithm>
#include <cmath>

#include "analyze/group_sums.h"

namespace tensordiff {
namespace {

constexpr std::size_t kValueRun = 64;

// The splitmix64 generator, as a function of the step.
uint64_t scatter(uint64_t step) {
  uint64_t bits = (step + 1) * 0x9e3779b97f4a7c15ULL;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111ebULL;
  return bits ^ bits >> 31;
}

// Starts of the runs of columns that a patch takes.
std::vector<uint64_t> column_runs(uint64_t columns, std::size_t wanted) {
  if (columns <= wanted) return {0};
  std::vector<uint64_t> runs = spread(columns / kPatchRun, wanted / kPatchRun);
  for (uint64_t& run : runs) run *= kPatchRun;
  return runs;
}

// Tells the processor which bytes are read soon: runs lie so far apart that each would have to be
// waited for. A hint, where elements lie in place; else nothing.
class Ahead {
 public:
  explicit Ahead(const Reader& reader) : item_(item_bytes(reader.view().dtype)) {
    const View& view = reader.view();
    if (view.terms <= 1 && view.contiguous() && is_plain(view.dtype) && !view.parts[0].packed)
      first_ = reader.data() + view.parts[0].offset * item_;
  }

  void at(uint64_t position, std::size_t count) const {
    constexpr std::size_t kLine = 64;
    if (!first_) return;
    const std::byte* from = first_ + position * item_;
    for (std::size_t done = 0; done < count * item_; done += kLine) __builtin_prefetch(from + done);
  }

 private:
  std::size_t item_;
  const std::byte* first_ = nullptr;
};

// Elements as float64, the real part of complex ones.
void read_real(const Reader& reader, uint64_t first, std::size_t count, std::vector<double>& out) {
  out.resize(out.size() + count);
  reader.values(first, count, out.data() + out.size() - count);
}

}  // namespace

std::vector<uint64_t> spread(uint64_t count, std::size_t wanted) {
  std::vector<uint64_t> places(std::min<uint64_t>(count, wanted));
  for (std::size_t i = 0; i < places.size(); ++i) {
    // Of the i-th of so many equal stretches, some place. No tensor has more than 2^40 elements.
    const uint64_t start = count * i / places.size();
    const uint64_t end = count * (i + 1) / places.size();
    places[i] = start + scatter(i) % (end - start);
  }
  return places;
}

bool is_sampled(const Shape& shape, const PatchSize& size) {
  const Extents extents = extents_of(shape);
  return extents.rows > size.rows || extents.columns > size.columns;
}

Result<Dense> read_patch(const View& view, const PatchSize& size) {
  const Extents extents = extents_of(view.shape);
  if (view.elements() == 0) return Dense{};
  const Reader reader = TRY(Reader::open(view));
  const std::vector<uint64_t> runs = column_runs(extents.columns, size.columns);
  const std::size_t length = extents.columns <= size.columns ? extents.columns : kPatchRun;
  const std::vector<uint64_t> rows = spread(extents.rows, size.rows);
  Dense patch{0, runs.size() * length, {}};
  patch.values.reserve(rows.size() * patch.columns);
  const Ahead ahead(reader);
  for (const uint64_t row : rows) {
    const uint64_t next = rows[std::min(++patch.rows, rows.size() - 1)];
    for (const uint64_t run : runs) ahead.at(next * extents.columns + run, length);
    for (const uint64_t run : runs)
      read_real(reader, row * extents.columns + run, length, patch.values);
  }
  for (double& value : patch.values)
    if (!std::isfinite(value)) value = 0;
  if (!reader.intact()) return Error("the file was cut short while it was read");
  return patch;
}

Result<std::vector<double>> read_values(const View& view, std::size_t wanted) {
  const uint64_t elements = view.elements();
  std::vector<double> values;
  if (elements == 0) return values;
  const Reader reader = TRY(Reader::open(view));
  if (elements <= wanted) {
    read_real(reader, 0, elements, values);
  } else {
    const std::vector<uint64_t> runs = spread(elements / kValueRun, wanted / kValueRun);
    const Ahead ahead(reader);
    values.reserve(runs.size() * kValueRun);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      ahead.at(runs[std::min(i + 2, runs.size() - 1)] * kValueRun, kValueRun);
      read_real(reader, runs[i] * kValueRun, kValueRun, values);
    }
  }
  if (!reader.intact()) return Error("the file was cut short while it was read");
  return values;
}

}  // namespace tensordiff
