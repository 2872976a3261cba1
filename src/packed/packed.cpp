#include "packed/packed.h"

#include <unordered_set>

#include "base/text.h"

namespace tensordiff {
namespace {

constexpr std::size_t kProblemsMax = 8;  // A model has hundreds of weights that all fail alike.

struct Found {
  std::size_t tensor;
  Unpacked weight;
};

// The first packing that knows a tensor.
Result<std::optional<Unpacked>> unpacked(const Siblings& siblings) {
  for (const Packing* packing : packings::kAll) {
    std::optional<Unpacked> weight = TRY(packing->unpack(siblings).in(packing->name));
    if (weight) return weight;
  }
  return std::optional<Unpacked>();
}

std::vector<Found> find_packed(Catalog& catalog, const Siblings::Index& index) {
  std::vector<Found> found;
  std::size_t failed = 0;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    const Tensor& tensor = catalog.tensors[i];
    if (!tensor.fault.empty()) continue;
    Result<std::optional<Unpacked>> weight = unpacked(Siblings(tensor, index, catalog.metadata));
    if (!weight.ok() && ++failed <= kProblemsMax)
      catalog.problems.push_back(
          {printable(tensor.name), fmt::format("not dequantized: {}", weight.error().message())});
    if (weight.ok() && weight.value()) found.push_back({i, std::move(*weight.value())});
  }
  if (failed > kProblemsMax)
    catalog.problems.push_back(
        {"", fmt::format("and {} more packed weights that were not dequantized",
                         failed - kProblemsMax)});
  return found;
}

}  // namespace

std::optional<std::string> Siblings::stem(std::string_view ending) const {
  const std::string_view name = tensor_.name;
  if (name.size() <= ending.size() || !name.ends_with(ending)) return std::nullopt;
  return std::string(name.substr(0, name.size() - ending.size()));
}

const Tensor* Siblings::named(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() || !found->second->fault.empty() ? nullptr : found->second;
}

std::string_view Siblings::setting(std::string_view key) const {
  for (const Metadata& entry : metadata_)
    if (entry.key.ends_with(key) && entry.key.find("quantization_config.") != std::string::npos &&
        entry.key.substr(0, entry.key.size() - key.size()).ends_with('.'))
      return entry.value;
  return "";
}

View turned(View view) {
  const std::size_t last = view.shape.size() - 1;
  std::swap(view.shape[last - 1], view.shape[last]);
  for (Part& part : view.parts) {
    std::swap(part.shape[last - 1], part.shape[last]);
    std::swap(part.strides[last - 1], part.strides[last]);
  }
  return view;
}

void unpack(Catalog& catalog) {
  Siblings::Index index;
  for (const Tensor& tensor : catalog.tensors) index.emplace(tensor.name, &tensor);
  std::vector<Found> found = find_packed(catalog, index);
  const Tensor* first = catalog.tensors.data();
  std::unordered_set<std::size_t> levels;
  for (const Found& each : found) levels.insert(each.tensor);
  // Nothing moves in the list, so that pointers into it stay good.
  for (Found& each : found) {
    Tensor& tensor = catalog.tensors[each.tensor];
    for (const Tensor* part : each.weight.with) {
      const auto at = static_cast<std::size_t>(part - first);
      if (!levels.contains(at)) catalog.tensors[at].auxiliary = "part of packed weights";
    }
    tensor.view = std::move(each.weight.view);
    tensor.made_from = std::move(each.weight.from);
    // Where the weight is there unpacked too, that one has the name. A name by what reads the
    // levels says more than theirs.
    if (tensor.known_as.empty() && each.weight.name != tensor.name &&
        !index.contains(each.weight.name))
      tensor.known_as = std::move(each.weight.name);
  }
}

}  // namespace tensordiff
