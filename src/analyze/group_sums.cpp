#include "analyze/group_sums.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <optional>

#include "base/parallel.h"
#include "compare/kernels/decode.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr std::size_t kTile = 2048;
constexpr uint64_t kChunkElements = uint64_t{1} << 20;

// The buffers of one thread.
struct Scratch {
  alignas(64) float narrow[kTile];
  double a[kTile], b[kTile];
  std::vector<std::byte> bytes;
};

void fetch(const Reader& reader, uint64_t first, std::size_t count, double* values, Scratch& room) {
  const DType dtype = reader.view().dtype;
  const std::byte* raw = reader.raw(first, count, room.bytes);
  if (!kernels::fits_float(dtype)) return decode(dtype, raw, count, values);
  kernels::decode(dtype, raw, count, room.narrow);
  std::copy(room.narrow, room.narrow + count, values);
}

GroupSum careful_sum(const double* a, const double* b, std::size_t count) {
  GroupSum sum;
  for (std::size_t i = 0; i < count; ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) continue;
    const double d = b[i] - a[i];
    sum.aa += a[i] * a[i];
    sum.bb += b[i] * b[i];
    sum.dd += d * d;
    sum.ab += a[i] * b[i];
  }
  return sum;
}

// Two of each sum, side by side; only where something is not finite is every element looked at.
GroupSum sum_of(const double* a, const double* b, std::size_t count) {
  double aa[2] = {}, bb[2] = {}, dd[2] = {}, ab[2] = {};
  const std::size_t even = count - count % 2;
  for (std::size_t i = 0; i < even; i += 2) {
    for (std::size_t lane = 0; lane < 2; ++lane) {
      const double x = a[i + lane], y = b[i + lane], d = y - x;
      aa[lane] += x * x;
      bb[lane] += y * y;
      dd[lane] += d * d;
      ab[lane] += x * y;
    }
  }
  GroupSum sum{aa[0] + aa[1], bb[0] + bb[1], dd[0] + dd[1], ab[0] + ab[1]};
  if (!std::isfinite(sum.aa + sum.bb)) return careful_sum(a, b, count);
  sum.add(careful_sum(a + even, b + even, count - even));
  return sum;
}

struct Sides {
  const Reader& a;
  const Reader& b;
  const Grouping& grouping;
};

// Adds the elements [first, end) to their groups.
void add_range(const Sides& sides, uint64_t first, uint64_t end, std::vector<GroupSum>& totals) {
  thread_local Scratch room;
  const Grouping& grouping = sides.grouping;
  for (uint64_t at = first; at < end; at += kTile) {
    const auto count = static_cast<std::size_t>(std::min<uint64_t>(kTile, end - at));
    fetch(sides.a, at, count, room.a, room);
    fetch(sides.b, at, count, room.b, room);
    for (std::size_t done = 0; done < count;) {
      const uint64_t position = at + done;
      const auto length = static_cast<std::size_t>(
          std::min<uint64_t>(count - done, grouping.run - position % grouping.run));
      const uint64_t group = position / grouping.run % grouping.groups;
      totals[group].add(sum_of(room.a + done, room.b + done, length));
      done += length;
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
  const Reader a = TRY(Reader::open(pair.a).in("a"));
  const Reader b = TRY(Reader::open(pair.b).in("b"));
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
