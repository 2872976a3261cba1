#include "dumps/excerpt.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "align/view.h"
#include "dumps/summaries.h"
#include "match/meaning.h"
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

// The view in another shape: without a batch of one (Megatron has it behind the tokens), its
// features as heads, its last tokens only.
std::optional<View> in_shape(View view, Shape shape) {
  const bool one_token = shape.size() == 1;  // Axes of one in front are not told.
  if (one_token) shape.insert(shape.begin(), 1);
  while (view.shape.size() > 2 && view.shape[0] == 1) view = squeezed(std::move(view), 0);
  if (view.shape.size() > 2 && view.shape[1] == 1) view = squeezed(std::move(view), 1);
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

// Llama's queries and keys behind RoPE have pairs of features side by side in llama.cpp, and the
// halves of a head one behind the other elsewhere: the view with pairs.
std::optional<View> in_pairs(const View& view) {
  constexpr uint64_t kFeaturesMax = 1024;  // Of a head: each becomes a part of the view.
  const std::size_t axis = view.shape.size() - 1;
  const uint64_t size = view.shape[axis];
  if (size < 4 || size % 2 != 0 || size > kFeaturesMax) return std::nullopt;
  std::vector<View> pieces;
  for (uint64_t i = 0; i < size; ++i)
    pieces.push_back(narrowed(view, axis, i % 2 * (size / 2) + i / 2, 1));
  return concatenated(pieces, axis);
}

std::optional<double> squares_apart(const View& x, const View& y) {
  const Result<Reader> of_x = Reader::open(x), of_y = Reader::open(y);
  if (!of_x.ok() || !of_y.ok() || x.shape != y.shape || is_complex(x.dtype) || is_complex(y.dtype))
    return std::nullopt;
  std::vector<double> values_x(x.elements()), values_y(x.elements());
  of_x.value().values(0, values_x.size(), values_x.data());
  of_y.value().values(0, values_y.size(), values_y.data());
  double sum = 0;
  for (std::size_t i = 0; i < values_x.size(); ++i)
    sum += (values_x[i] - values_y[i]) * (values_x[i] - values_y[i]);
  return sum;
}

// What is shown of a whole tensor: of queries and keys in the order that comes nearer.
View shown_of(const View& whole, const Tensor& excerpt,
              const std::vector<std::vector<Stretch>>& shown) {
  constexpr double kNearer = 0.25;  // Half as far off: no mistake of the log makes it come nearer.
  View plain = only(whole, shown);
  const Role role = excerpt.place.step;
  if ((role != Role::query_final && role != Role::key_final) || whole.shape.size() != 3)
    return plain;
  const std::optional<View> paired = in_pairs(whole);
  if (!paired) return plain;
  View turned = only(*paired, shown);
  const View log = only(excerpt.view, shown);
  const std::optional<double> off = squares_apart(plain, log), other = squares_apart(turned, log);
  return off && other && *other < kNearer * *off ? std::move(turned) : std::move(plain);
}

using Key = std::tuple<int32_t, int32_t, int32_t, int32_t, Role>;

std::optional<Key> key_of(const Tensor& tensor) {
  const Place& place = tensor.place;
  const bool is_result = place.parameter == Param::none && tensor.fault.empty() &&
                         tensor.shards.empty() && place.step != Role::other;
  if (!is_result) return std::nullopt;
  return Key(place.layer, place.expert, place.call, place.pass, place.step);
}

std::multimap<Key, Tensor*> steps_of(Catalog& catalog) {
  std::multimap<Key, Tensor*> steps;
  for (Tensor& tensor : catalog.tensors) {
    if (is_excerpt(tensor)) continue;
    if (const std::optional<Key> key = key_of(tensor)) steps.emplace(*key, &tensor);
  }
  return steps;
}

std::size_t show(Catalog& excerpts, Catalog& other) {
  const std::multimap<Key, Tensor*> partners = steps_of(other);
  std::size_t count = 0;
  for (Tensor& tensor : excerpts.tensors) {
    if (!is_excerpt(tensor)) continue;
    const std::vector<std::vector<Stretch>> shown = shown_in(tensor.view);
    const auto restrict_all = [&](const Key& key) {
      for (auto [at, end] = partners.equal_range(key); at != end; ++at)
        if (std::optional<View> view = in_shape(at->second->view, tensor.view.shape)) {
          at->second->view = shown_of(*view, tensor, shown);
          at->second->tokens = nullptr;
        }
    };
    if (std::optional<Key> key = key_of(tensor)) {
      restrict_all(*key);
      Role& role = std::get<Role>(*key);  // A module and its last projection give the same.
      const Role twin = twin_of(role);
      if (std::exchange(role, twin) != twin) restrict_all(*key);
    }
    tensor.view = only(std::move(tensor.view), shown);
    ++count;
  }
  return count;
}

}  // namespace

void keep_what_is_shown(Catalog& a, Catalog& b, std::vector<std::string>& notes) {
  for (auto [some, other] : {std::pair(&a, &b), std::pair(&b, &a)})
    if (has_statistics(*other) && std::erase_if(some->tensors, is_excerpt) > 0)
      notes.push_back("tensors that are printed in part have no statistics to compare");
  if (summarise_both(a, b, notes)) return;
  const std::size_t count = show(a, b) + show(b, a);
  if (count > 0)
    notes.push_back(
        fmt::format("{} tensors are printed in part: what is not shown of them is not "
                    "compared",
                    count));
}

}  // namespace tensordiff
