#include "diagnose/operators/weights.h"

#include <algorithm>
#include <set>

#include "align/view.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr uint64_t kVectorMax = uint64_t{1} << 24;

// The role of a projection, that of the fused tensor it may be part of, and which part.
struct Naming {
  std::string_view word;
  Role role;
  Role fused;    // `other`: none.
  int part = 0;  // From the front; below 0 from the back, as keys and values are smaller.
};

Naming naming_of(Projection projection) {
  switch (projection) {
    case Projection::query:
      return {"query", Role::query, Role::fused_qkv, 0};
    case Projection::key:
      return {"key", Role::key, Role::fused_qkv, -2};
    case Projection::value:
      return {"value", Role::value, Role::fused_qkv, -1};
    case Projection::attention_output:
      return {"attention output", Role::attention_output, Role::other, 0};
    case Projection::gate:
      return {"gate", Role::gate, Role::gate_up, 0};
    case Projection::up:
      return {"up", Role::up, Role::gate_up, -1};
    case Projection::down:
      return {"down", Role::mlp_output, Role::other, 0};
    default:
      return {"logits", Role::logits, Role::other, 0};
  }
}

// The part of a fused axis of `total` that is `size` long. Nothing where it does not fit in.
std::optional<uint64_t> start_of(const Naming& naming, uint64_t total, uint64_t size) {
  const auto from_back = static_cast<uint64_t>(naming.part < 0 ? -naming.part : 0);
  if (total <= size || size * std::max<uint64_t>(1, from_back) > total) return std::nullopt;
  return naming.part < 0 ? total - from_back * size : 0;
}

void add_both_ways(const View& view, uint64_t out, uint64_t in, std::vector<View>& found) {
  constexpr uint64_t kSwapped[] = {1, 0};
  if (view.shape == Shape{out, in}) found.push_back(view);
  if (view.shape == Shape{in, out}) found.push_back(permuted(view, kSwapped));
}

// Some of the values of a vector; nothing where it has not as many.
std::vector<double> part_of(const View& view, uint64_t start, uint64_t size) {
  const Result<Reader> reader = Reader::open(view);
  if (!reader.ok() || size > kVectorMax || start + size > view.shape[0]) return {};
  std::vector<double> values(size);
  reader.value().values(start, size, values.data());
  return values;
}

}  // namespace

std::string_view name_of(Projection projection) { return naming_of(projection).word; }

Weights::Weights(const Catalog& catalog) {
  auto named = std::make_shared<std::map<std::string, View, std::less<>>>();
  for (const Tensor& tensor : catalog.tensors) {
    const Place& place = tensor.place;
    if (!tensor.fault.empty() || !tensor.shards.empty() || is_complex(tensor.view.dtype)) continue;
    named->emplace(tensor.name, tensor.view);
    if (place.known && place.parameter != Param::none && place.layer != Place::kAll)
      tensors_.emplace(Key(place.layer, place.expert, place.step, place.parameter), tensor.view);
  }
  named_ = std::move(named);
}

std::vector<int64_t> Weights::layers() const {
  std::set<int64_t> layers;
  for (const auto& [key, view] : tensors_)
    if (std::get<0>(key) != Place::kNone) layers.insert(std::get<0>(key));
  return {layers.begin(), layers.end()};
}

const View* Weights::find(std::optional<int64_t> layer, Role role, Param parameter) const {
  const auto found =
      tensors_.find(Key(layer.value_or(Place::kNone), Place::kNone, role, parameter));
  return found == tensors_.end() ? nullptr : &found->second;
}

std::vector<View> Weights::matrices(std::optional<int64_t> layer, Projection projection,
                                    uint64_t out, uint64_t in) const {
  const Naming naming = naming_of(projection);
  std::vector<View> found;
  if (const View* view = find(layer, naming.role, Param::weight))
    add_both_ways(*view, out, in, found);
  const View* fused = find(layer, naming.fused, Param::weight);
  if (!found.empty() || !fused || fused->shape.size() != 2) return found;
  for (const std::size_t axis : {0, 1}) {
    const std::optional<uint64_t> start = start_of(naming, fused->shape[axis], out);
    if (start && fused->shape[1 - axis] == in)
      add_both_ways(narrowed(*fused, axis, *start, out), out, in, found);
  }
  return found;
}

uint64_t Weights::inner_size(std::optional<int64_t> layer, uint64_t width) const {
  for (const auto& [role, parts] : {std::pair<Role, uint64_t>{Role::up, 1}, {Role::gate_up, 2}}) {
    const View* view = find(layer, role, Param::weight);
    if (!view || view->shape.size() != 2) continue;
    if (view->shape[1] == width) return view->shape[0] / parts;
    if (view->shape[0] == width) return view->shape[1] / parts;
  }
  return 0;
}

std::vector<double> Weights::bias(std::optional<int64_t> layer, Projection projection,
                                  uint64_t out) const {
  const Naming naming = naming_of(projection);
  const View* own = find(layer, naming.role, Param::bias);
  const View* fused = own ? nullptr : find(layer, naming.fused, Param::bias);
  const View* source = own ? own : fused;
  if (!source || source->shape.size() != 1) return {};
  const std::optional<uint64_t> start =
      own ? std::optional<uint64_t>(0) : start_of(naming, source->shape[0], out);
  return start ? part_of(*source, *start, out) : std::vector<double>();
}

std::vector<double> Weights::vector(std::optional<int64_t> layer, Role role, Param parameter,
                                    uint64_t size) const {
  const View* source = find(layer, role, parameter);
  if (!source || source->shape != Shape{size}) return {};
  return part_of(*source, 0, size);
}

}  // namespace tensordiff
