#include "tensor/catalog.h"

#include <unordered_map>
#include <unordered_set>

namespace tensordiff {

std::string_view name_of(Severity severity) {
  constexpr std::string_view kNames[] = {"note", "suspicious", "dangerous", "unreadable",
                                         "missing"};
  return kNames[static_cast<std::size_t>(severity)];
}

uint64_t Catalog::elements() const {
  uint64_t sum = 0;
  for (const Tensor& tensor : tensors) sum += tensor.elements();
  return sum;
}

uint64_t Catalog::bytes() const {
  uint64_t sum = 0;
  for (const Tensor& tensor : tensors) sum += tensor.bytes();
  return sum;
}

void make_names_unique(Catalog& catalog) {
  std::unordered_set<std::string> taken;
  std::unordered_map<std::string, int> copies;
  for (Tensor& tensor : catalog.tensors) {
    const std::string wanted = tensor.name;
    while (!taken.insert(tensor.name).second)
      tensor.name = fmt::format("{} ({})", wanted, ++copies.try_emplace(wanted, 1).first->second);
  }
}

}  // namespace tensordiff
