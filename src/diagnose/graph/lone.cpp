#include "diagnose/graph/lone.h"

#include <algorithm>

namespace tensordiff {

std::vector<Lone> lone_tensors(const Catalog& catalog, std::span<const Leftover> leftovers,
                               const std::vector<Site>& sites, std::size_t Row::*capture) {
  std::vector<std::size_t> wanted;
  for (const Leftover& left : leftovers) wanted.push_back(left.tensor);
  for (const Site& site : sites)
    if (site.comparison.status == Status::incomparable) wanted.push_back(site.*capture);
  std::ranges::sort(wanted);
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  std::vector<Lone> found;
  for (const std::size_t at : wanted) {
    const Tensor& tensor = catalog.tensors[at];
    // What lies in pieces on several ranks is not put together here.
    if (tensor.fault.empty() && tensor.shards.empty() && is_float(tensor.view.dtype))
      found.push_back({tensor.name, at, tensor.view});
  }
  return found;
}

}  // namespace tensordiff
