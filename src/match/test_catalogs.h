// Catalogs of named tensors with values, and pairs as text, for tests of strategies.

#pragma once

#include <string>
#include <vector>

#include "match/matcher.h"
#include "naming/naming.h"
#include "tensor/test_views.h"

namespace tensordiff {

using Names = std::vector<std::string>;

struct Named {
  std::string name;
  Shape shape;
  unsigned seed;
};

inline Catalog catalog_of(const std::vector<Named>& tensors) {
  Catalog catalog;
  for (const Named& each : tensors)
    catalog.tensors.push_back({each.name, noise_view(each.shape, each.seed), ""});
  read_places(catalog);
  return catalog;
}

// Every tensor with the same shape and other values.
inline Catalog catalog_of(const Names& names) {
  std::vector<Named> tensors;
  for (const std::string& name : names)
    tensors.push_back({name, {4, 4}, static_cast<unsigned>(tensors.size())});
  return catalog_of(tensors);
}

inline Names pairs_text(const Matching& matching, const Catalog& a, const Catalog& b) {
  Names result;
  for (const Pair& pair : matching.pairs) {
    std::string text = a.tensors[pair.a].name;
    if (pair.section_a) text += "[" + pair.section_a->label + "]";
    text += "=" + b.tensors[pair.b].name;
    if (pair.section_b) text += "[" + pair.section_b->label + "]";
    result.push_back(std::move(text));
  }
  return result;
}

// What one strategy pairs.
inline Names pairs_of(const Matcher& matcher, const Catalog& a, const Catalog& b,
                      MatchOptions options = {}) {
  options.strategies = {std::string(matcher.name)};
  const Result<Matching> matching = match(a, b, options);
  EXPECT_TRUE(matching.ok()) << (matching.ok() ? "" : matching.error().message());
  return matching.ok() ? pairs_text(matching.value(), a, b) : Names{};
}

}  // namespace tensordiff
