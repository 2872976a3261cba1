// A weight as its direction and its length: w = g · v / |v|, as torch.nn.utils stores it.
//
//   X.weight_g, X.weight_v                                  weight_norm
//   X.parametrizations.weight.original0, …original1         parametrizations.weight_norm
//
// g has one axis of v, or one element for all of it. Which axis it is the shape of g tells; where
// it leaves a choice, as for a square matrix, the values do.

#include <cmath>
#include <mutex>

#include "base/text.h"
#include "convert/merge_parts.h"
#include "packed/window.h"

namespace tensordiff {
namespace {

// The name of the weight, where this is the name of its direction, and that of its length.
struct Names {
  std::string weight, length;
};

std::optional<Names> names_of_direction(std::string_view name) {
  constexpr std::string_view kOld = "_v", kNew = ".original1", kWord = "parametrizations.";
  if (name.ends_with(kOld)) {
    const std::string stem(name.substr(0, name.size() - kOld.size()));
    return Names{stem, stem + "_g"};
  }
  const std::size_t word = name.find(kWord);
  if (!name.ends_with(kNew) || word == std::string_view::npos) return std::nullopt;
  const std::string stem(name.substr(0, name.size() - kNew.size()));
  return Names{stem.substr(0, word) + stem.substr(word + kWord.size()), stem + ".original0"};
}

// The axes of v that g may have; the rank of v for one length of all of it.
std::vector<std::size_t> axes_of(const Shape& length, const Shape& direction) {
  uint64_t lengths = 1;
  std::vector<std::size_t> axes;
  for (const uint64_t size : length) lengths *= size;
  for (std::size_t axis = 0; axis < direction.size(); ++axis) {
    if (direction[axis] != lengths || lengths == 1) continue;
    const bool placed = length.size() == direction.size();
    if (!placed || length[axis] == lengths) axes.push_back(axis);
  }
  if (lengths == 1) axes.push_back(direction.size());
  return axes;
}

struct Normed {
  std::size_t direction, length;
  std::string weight;
};

std::vector<Normed> normed_weights(const Catalog& catalog) {
  std::unordered_map<std::string_view, std::size_t> by_name;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i)
    by_name.emplace(catalog.tensors[i].name, i);
  std::vector<Normed> found;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    const Tensor& tensor = catalog.tensors[i];
    std::optional<Names> names = names_of_direction(tensor.name);
    if (!names || !tensor.fault.empty() || tensor.view.shape.size() < 2) continue;
    const auto length = by_name.find(names->length);
    if (length == by_name.end()) continue;
    const Tensor& of_length = catalog.tensors[length->second];
    if (!of_length.fault.empty() || axes_of(of_length.view.shape, tensor.view.shape).empty())
      continue;
    found.push_back({i, length->second, std::move(names->weight)});
  }
  return found;
}

// 1 / |v| for each entry of the axis, computed when the first of them is asked for.
class Lengths {
 public:
  Lengths(const Shape& shape, std::size_t axis) {
    for (std::size_t i = axis + 1; i < shape.size(); ++i) inner_ *= shape[i];
    count_ = axis < shape.size() ? shape[axis] : 1;
    if (axis >= shape.size()) inner_ = element_count(shape).value_or(1);
  }

  uint64_t entry_of(uint64_t element) const { return element / inner_ % count_; }

  double at(const Reader& direction, uint64_t entry) {
    std::call_once(once_, [&] { compute(direction); });
    return lengths_[entry];
  }

 private:
  void compute(const Reader& direction) {
    constexpr uint64_t kRun = 4096;
    const uint64_t elements = direction.view().elements();
    lengths_.assign(count_, 0);
    std::vector<double> values(kRun);
    for (uint64_t first = 0; first < elements; first += kRun) {
      const std::size_t run = std::min<uint64_t>(kRun, elements - first);
      direction.values(first, run, values.data());
      for (std::size_t i = 0; i < run; ++i) lengths_[entry_of(first + i)] += values[i] * values[i];
    }
    for (double& length : lengths_) length = std::sqrt(length);
  }

  uint64_t inner_ = 1, count_ = 1;
  std::once_flag once_;
  std::vector<double> lengths_;
};

View merged(const View& direction, const View& length, std::size_t axis) {
  Packed packed{{direction, length}, {}};
  packed.decode = [lengths = std::make_shared<Lengths>(direction.shape, axis)](
                      std::span<const Reader> in, uint64_t first, int64_t step, std::size_t count,
                      float* out) {
    Window v(in[0], step), g(in[1], 0);
    for (std::size_t i = 0; i < count; ++i) {
      const uint64_t element = first + i * static_cast<uint64_t>(step);
      const uint64_t entry = lengths->entry_of(element);
      const double norm = lengths->at(in[0], entry);
      out[i] = static_cast<float>(norm > 0 ? v.at(element) * g.at(entry) / norm : 0);
    }
  };
  return merged_view(direction, std::move(packed));
}

}  // namespace

void name_normed_weights(Catalog& a, Catalog& b) {
  const std::vector<Normed> of_a = normed_weights(a), of_b = normed_weights(b);
  // As many on both sides are compared as they are stored.
  if (of_a.size() == of_b.size()) return;
  for (const auto& [side, weights] : {std::pair(&a, &of_a), std::pair(&b, &of_b)})
    for (const Normed& each : *weights) side->tensors[each.direction].known_as = each.weight;
}

WaysOf weight_norm_ways(const MergeSide& side) {
  WaysOf merges;
  for (const Normed& each : normed_weights(side.own)) {
    if (!side.partner.contains(each.direction) || !side.is_free[each.length]) continue;
    const View& direction = side.own.tensors[each.direction].view;
    const View& length = side.own.tensors[each.length].view;
    for (const std::size_t axis : axes_of(length.shape, direction.shape))
      merges[each.direction].push_back(
          {{{MergeKind::weight_norm, side.side, 0}, merged(direction, length, axis), {each.length}},
           {{each.length}, axis, 0, false, false}});
  }
  return merges;
}

}  // namespace tensordiff
