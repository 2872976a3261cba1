#include "formats/shared_bytes.h"

#include <algorithm>

#include "base/text.h"

namespace tensordiff {
namespace {

// From the first element of a part to the last. Between them there may be others', where it is a
// view with gaps.
struct Stretch {
  const std::byte* begin;
  const std::byte* end;
  std::size_t tensor;
};

void add_stretches(const Tensor& tensor, std::size_t index, std::vector<Stretch>& stretches) {
  const DType dtype = tensor.view.dtype;
  for (const Part& part : tensor.view.parts) {
    const std::optional<uint64_t> count = element_count(part.shape);
    if (!part.source.ready() || count.value_or(0) == 0) continue;
    const Result<Bytes> bytes = part.source.open();
    if (!bytes.ok()) continue;
    const ByteView all = bytes.value().view;
    uint64_t last = part.offset;
    for (std::size_t axis = 0; axis < part.shape.size(); ++axis)
      last += (part.shape[axis] - 1) * static_cast<uint64_t>(part.strides[axis]);
    const uint64_t begin = stored_bytes(dtype, part.offset);
    const uint64_t end = std::min<uint64_t>(stored_bytes(dtype, last + 1), all.size());
    if (begin < end) stretches.push_back({all.data() + begin, all.data() + end, index});
  }
}

}  // namespace

std::vector<Problem> shared_bytes(const Catalog& catalog) {
  std::vector<Stretch> stretches;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i)
    if (catalog.tensors[i].fault.empty()) add_stretches(catalog.tensors[i], i, stretches);
  std::ranges::sort(stretches, {}, [](const Stretch& s) { return std::pair(s.begin, s.tensor); });

  std::vector<Problem> shared;
  const Stretch* furthest = nullptr;
  for (const Stretch& stretch : stretches) {
    if (furthest && stretch.begin < furthest->end && stretch.tensor != furthest->tensor) {
      const bool same = stretch.begin == furthest->begin && stretch.end == furthest->end;
      shared.push_back({catalog.tensors[stretch.tensor].name,
                        fmt::format("{} '{}'", same ? "the same bytes as" : "shares bytes with",
                                    printable(catalog.tensors[furthest->tensor].name))});
    }
    if (!furthest || stretch.end > furthest->end) furthest = &stretch;
  }
  return shared;
}

}  // namespace tensordiff
