#include "analyze/group_sums.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <optional>

#include "base/parallel.h"
#include "compare/kernels/decode.h"
#include "compare/kernels/products.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr std::size_t kTile = 2048;
constexpr uint64_t kChunkElements = uint64_t{1} << 20;

// The buffers of one thread: one tile of each side, as floats where both fit them.
struct Scratch {
  alignas(64) float narrow_a[kTile], narrow_b[kTile];
  alignas(64) double wide_a[kTile], wide_b[kTile];
  std::vector<std::byte> bytes_a, bytes_b;
};

GroupSum sum_of(const kernels::Products& found) { return {found.aa, found.bb, found.dd, found.ab}; }

// Floats without a copy where the elements are that, aligned.
const float* as_float(DType dtype, const std::byte* raw, std::size_t count, float* room) {
  if (dtype == DType::f32 && reinterpret_cast<uintptr_t>(raw) % alignof(float) == 0)
    return reinterpret_cast<const float*>(raw);
  kernels::decode(dtype, raw, count, room);
  return room;
}

struct Sides {
  const Reader& a;
  const Reader& b;
  const Grouping& grouping;
};

// Adds one tile, whose first element is at `position`, to its groups.
template <class T>
struct TileOf {
  const T* a;
  const T* b;
  std::size_t count;
  uint64_t position;
};
template <class T>
void add_tile(const TileOf<T>& tile, const Grouping& grouping, std::vector<GroupSum>& totals) {
  for (std::size_t done = 0; done < tile.count;) {
    const uint64_t at = tile.position + done;
    const auto length = static_cast<std::size_t>(
        std::min<uint64_t>(tile.count - done, grouping.run - at % grouping.run));
    totals[at / grouping.run % grouping.groups].add(
        sum_of(kernels::products(tile.a + done, tile.b + done, length)));
    done += length;
  }
}

// Adds the elements [first, end) to their groups.
void add_range(const Sides& sides, uint64_t first, uint64_t end, std::vector<GroupSum>& totals) {
  thread_local Scratch room;
  const DType a = sides.a.view().dtype, b = sides.b.view().dtype;
  const bool narrow = kernels::fits_float(a) && kernels::fits_float(b);
  for (uint64_t at = first; at < end; at += kTile) {
    const auto count = static_cast<std::size_t>(std::min<uint64_t>(kTile, end - at));
    const std::byte* raw_a = sides.a.raw(at, count, room.bytes_a);
    const std::byte* raw_b = sides.b.raw(at, count, room.bytes_b);
    if (narrow) {
      add_tile<float>({as_float(a, raw_a, count, room.narrow_a),
                       as_float(b, raw_b, count, room.narrow_b), count, at},
                      sides.grouping, totals);
    } else {
      decode(a, raw_a, count, room.wide_a);
      decode(b, raw_b, count, room.wide_b);
      add_tile<double>({room.wide_a, room.wide_b, count, at}, sides.grouping, totals);
    }
  }
}

}  // namespace

void GroupSum::add(const GroupSum& other) {
  aa += other.aa;
  bb += other.bb;
  dd += other.dd;
  ab += other.ab;
}

std::optional<double> GroupSum::relative() const {
  return aa > 0 ? std::optional(std::sqrt(dd / aa)) : std::nullopt;
}

Extents extents_of(const Shape& shape) {
  if (shape.size() < 2) return {1, shape.empty() ? 1 : shape[0]};
  Extents extents{shape[0], 1};
  for (std::size_t axis = 1; axis < shape.size(); ++axis) extents.columns *= shape[axis];
  return extents;
}

Result<std::vector<GroupSum>> group_sums(const AlignedPair& pair, const Grouping& grouping) {
  assert(grouping.run > 0 && grouping.groups > 0 && grouping.groups <= kGroupsMax);
  if (is_complex(pair.a.dtype) || is_complex(pair.b.dtype)) return Error("complex values");
  const Reader a = TRY(Reader::open(pair.a).in("A"));
  const Reader b = TRY(Reader::open(pair.b).in("B"));
  const uint64_t elements = pair.a.elements();
  std::vector<GroupSum> totals(grouping.groups);
  // Whole runs, so that without wrapping around no two chunks touch one group.
  const uint64_t chunk = std::max<uint64_t>(1, kChunkElements / grouping.run) * grouping.run;
  const uint64_t chunks = (elements + chunk - 1) / chunk;
  const bool wraps = elements / grouping.run > grouping.groups;
  std::vector<std::vector<GroupSum>> parts(wraps ? chunks : 0);
  for_each_index(chunks, [&](std::size_t which) {
    const uint64_t first = which * chunk;
    const uint64_t end = std::min(elements, first + chunk);
    if (!wraps) return add_range({a, b, grouping}, first, end, totals);
    parts[which].resize(grouping.groups);
    add_range({a, b, grouping}, first, end, parts[which]);
  });
  for (const std::vector<GroupSum>& part : parts)
    for (std::size_t group = 0; group < part.size(); ++group) totals[group].add(part[group]);
  if (!a.intact() || !b.intact()) return Error("the file was cut short while it was read");
  return totals;
}

}  // namespace tensordiff
