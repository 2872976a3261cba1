#include "dumps/excerpt.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "align/view.h"
#include "base/parallel.h"
#include "formats/statistics.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

// One element that stands for all of a box: the reader's mark for what was not printed.
bool is_gap(const Part& part, DType dtype) {
  return part.source.size() == item_bytes(dtype) &&
         std::ranges::all_of(part.strides, [](int64_t stride) { return stride == 0; });
}

bool is_excerpt(const Tensor& tensor) {
  const View& view = tensor.view;
  return view.parts.size() > 1 && std::ranges::any_of(view.parts, [&](const Part& part) {
           return is_gap(part, view.dtype);
         });
}

struct Stretch {
  uint64_t first = 0, count = 0;
};

// What is shown along each axis.
std::vector<std::vector<Stretch>> shown_in(const View& view) {
  std::vector<std::vector<Stretch>> shown;
  for (std::size_t axis = 0; axis < view.shape.size(); ++axis) {
    std::map<uint64_t, uint64_t> found;
    for (const Part& part : view.parts)
      if (!is_gap(part, view.dtype)) found.emplace(part.origin[axis], part.shape[axis]);
    std::vector<Stretch>& stretches = shown.emplace_back();
    for (const auto& [first, count] : found) stretches.push_back({first, count});
  }
  return shown;
}

View only(View view, const std::vector<std::vector<Stretch>>& shown) {
  for (std::size_t axis = 0; axis < shown.size(); ++axis) {
    std::vector<View> pieces;
    for (const auto [first, count] : shown[axis])
      pieces.push_back(narrowed(view, axis, first, count));
    view = pieces.size() == 1 ? std::move(pieces[0]) : concatenated(pieces, axis);
  }
  return view;
}

// The view in another shape: without a batch of one, its features as heads, its last tokens only.
std::optional<View> in_shape(View view, Shape shape) {
  const bool one_token = shape.size() == 1;  // Axes of one in front are not told.
  if (one_token) shape.insert(shape.begin(), 1);
  while (view.shape.size() > 2 && view.shape[0] == 1) view = squeezed(std::move(view), 0);
  if (view.shape.size() < 2 || shape.size() < 2) return std::nullopt;
  if (view.shape.size() == 2 && shape.size() == 3 && shape[1] > 0 && shape[2] > 0 &&
      view.shape[1] == shape[1] * shape[2])
    view = split(view, 1, std::span(shape).subspan(1));
  if (view.shape[0] > shape[0] && shape[0] > 0) {
    const uint64_t first = view.shape[0] - shape[0];
    view = narrowed(std::move(view), 0, first, shape[0]);
  }
  if (view.shape != shape) return std::nullopt;
  return one_token ? squeezed(std::move(view), 0) : std::move(view);
}

using Key = std::tuple<int32_t, int32_t, int32_t, int32_t, Role>;

std::optional<Key> key_of(const Tensor& tensor) {
  const Place& place = tensor.place;
  const bool is_result = place.parameter == Param::none && tensor.fault.empty() &&
                         tensor.shards.empty() && place.step != Role::other;
  if (!is_result) return std::nullopt;
  return Key(place.layer, place.expert, place.call, place.pass, place.step);
}

// Steps that a side has once.
std::map<Key, Tensor*> steps_of(Catalog& catalog) {
  std::map<Key, Tensor*> steps;
  for (Tensor& tensor : catalog.tensors)
    if (const std::optional<Key> key = key_of(tensor)) {
      const auto [at, is_new] = steps.emplace(*key, &tensor);
      if (!is_new) at->second = nullptr;
    }
  return steps;
}

std::size_t show(Catalog& excerpts, Catalog& other) {
  const std::map<Key, Tensor*> partners = steps_of(other);
  std::size_t count = 0;
  for (Tensor& tensor : excerpts.tensors) {
    if (!is_excerpt(tensor)) continue;
    const std::vector<std::vector<Stretch>> shown = shown_in(tensor.view);
    const std::optional<Key> key = key_of(tensor);
    const auto partner = key ? partners.find(*key) : partners.end();
    if (partner != partners.end() && partner->second && !is_excerpt(*partner->second))
      if (std::optional<View> view = in_shape(partner->second->view, tensor.view.shape)) {
        partner->second->view = only(std::move(*view), shown);
        partner->second->tokens = nullptr;
      }
    tensor.view = only(std::move(tensor.view), shown);
    ++count;
  }
  return count;
}

bool has_statistics(const Tensor& tensor) { return tensor.made_from == kProbeStatistics; }

// Largest, smallest and mean value, and the Euclidean norm.
std::optional<View> statistics_of(const View& view) {
  const Result<Reader> reader = Reader::open(view);
  const uint64_t count = view.elements();
  if (!reader.ok() || count == 0 || is_complex(view.dtype)) return std::nullopt;
  constexpr uint64_t kBlock = 1 << 14;
  std::vector<double> values(std::min(count, kBlock));
  double largest = -INFINITY, smallest = INFINITY, sum = 0, squares = 0;
  for (uint64_t first = 0; first < count; first += kBlock) {
    const uint64_t size = std::min(kBlock, count - first);
    reader.value().values(first, size, values.data());
    for (const double value : std::span(values).first(size)) {
      largest = std::max(largest, value), smallest = std::min(smallest, value);
      sum += value, squares += value * value;
    }
  }
  const double told[] = {largest, smallest, sum / static_cast<double>(count), std::sqrt(squares)};
  std::string bytes(std::size(told) * item_bytes(DType::f32), '\0');
  encode(DType::f32, told, std::size(told), reinterpret_cast<std::byte*>(bytes.data()));
  Result<View> made =
      contiguous_view(DType::f32, {std::size(told)}, ByteSource(bytes_of(std::move(bytes))));
  return made.ok() ? std::optional(std::move(made).value()) : std::nullopt;
}

void summarise(Catalog& catalog) {
  for_each_index(catalog.tensors.size(), [&](std::size_t i) {
    Tensor& tensor = catalog.tensors[i];
    if (!tensor.fault.empty() || !tensor.shards.empty() || has_statistics(tensor)) return;
    std::optional<View> statistics = statistics_of(tensor.view);
    if (!statistics) return;
    tensor.view = std::move(*statistics);
    tensor.made_from = kProbeStatistics;
    tensor.tokens = nullptr;
  });
  catalog.tokens.clear();
}

// Gives both sides statistics where one has nothing else.
bool summarise_both(Catalog& a, Catalog& b) {
  const bool of_a = !a.tensors.empty() && std::ranges::all_of(a.tensors, has_statistics);
  const bool of_b = !b.tensors.empty() && std::ranges::all_of(b.tensors, has_statistics);
  if (of_a == of_b) return of_a;
  summarise(of_a ? b : a);
  return true;
}

}  // namespace

void keep_what_is_shown(Catalog& a, Catalog& b, std::vector<std::string>& notes) {
  if (summarise_both(a, b)) {
    notes.push_back(fmt::format("what is compared of each tensor is its {}", kProbeStatistics));
    return;
  }
  const std::size_t count = show(a, b) + show(b, a);
  if (count > 0)
    notes.push_back(
        fmt::format("{} tensors are printed in part: what is not shown of them is not "
                    "compared",
                    count));
}

}  // namespace tensordiff
