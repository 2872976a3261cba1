// Names that differ in their numbers alone are one entry of the index, which keeps it small: a
// model has thousands of tensors and some dozens of kinds of them.

#include "match/nearest.h"

#include <map>
#include <unordered_set>

#include "match/name_index.h"

namespace tensordiff {
namespace {

// Names looked at in all, and for one name at least.
constexpr std::size_t kLooksMax = 1 << 21;
constexpr std::size_t kLooksMin = 32;

using Numbers = std::vector<std::string>;
using SameWords = std::map<Numbers, std::size_t>;  // Tensors with the same words, by their numbers.

struct Kinds {
  std::vector<NameWords> words;
  std::vector<SameWords> tensors;
};

Kinds kinds_of(const Catalog& catalog) {
  Kinds kinds;
  std::map<std::vector<std::string>, std::size_t> numbers;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    NameWords name = name_words(catalog.tensors[i].pairing_name());
    const auto [at, added] = numbers.emplace(name.words, kinds.words.size());
    if (added) {
      kinds.words.push_back(name);
      kinds.tensors.emplace_back();
    }
    kinds.tensors[at->second].emplace(std::move(name.numbers), i);
  }
  return kinds;
}

std::map<Shape, std::size_t> by_shape(const Catalog& catalog) {
  std::map<Shape, std::size_t> result;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i)
    result.emplace(catalog.tensors[i].view.shape, i);
  return result;
}

// Tensors by their numbers in the catalog.
using Indexes = std::unordered_set<std::size_t>;

std::string_view why_no_pair(const Likeliest& found, const Tensor& own, const Tensor& nearest,
                             double threshold) {
  if (own.shards.empty() && nearest.shards.empty() && own.elements() != nearest.elements())
    return "it has another size";
  if (name_words(own.pairing_name()).numbers != name_words(nearest.pairing_name()).numbers)
    return "it has another number";
  if (found.score - found.next < kClearlyMost) return "another name is as similar";
  return found.score < threshold ? "they are not similar enough" : "";
}

}  // namespace

void find_nearest(const Catalog& own, const OtherSide& other, std::vector<Leftover>& leftovers) {
  if (leftovers.empty() || other.catalog.tensors.empty()) return;
  const Kinds kinds = kinds_of(other.catalog);
  const std::map<Shape, std::size_t> shapes = by_shape(other.catalog);
  Indexes free;
  for (const Leftover& left : other.leftovers) free.insert(left.tensor);
  NameIndex index(kinds.words);
  NameIndex::Search search{.margin = kClearlyMost};
  search.looks_max = std::max(kLooksMax / leftovers.size(), kLooksMin);
  std::map<std::vector<std::string>, Likeliest> known;
  for (Leftover& left : leftovers) {
    const Tensor& tensor = own.tensors[left.tensor];
    const NameWords name = name_words(tensor.pairing_name());
    const auto [at, added] = known.try_emplace(name.words);
    if (added) at->second = index.find(name, search);
    left.likeness = at->second.score;
    if (left.likeness > 0) {
      const SameWords& kind = kinds.tensors[at->second.index];
      const auto same = kind.find(name.numbers);
      left.nearest = same != kind.end() ? same->second : kind.begin()->second;
      left.why = free.contains(*left.nearest)
                     ? why_no_pair(at->second, tensor, other.catalog.tensors[*left.nearest],
                                   other.threshold)
                     : "it has a partner";
    } else if (const auto same = shapes.find(tensor.view.shape); same != shapes.end()) {
      left.nearest = same->second;
    }
  }
}

}  // namespace tensordiff
