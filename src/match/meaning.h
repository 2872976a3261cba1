// Tensors by what their names mean in the common conventions.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "match/canonical.h"

namespace tensordiff {

// A meaning that several tensors have is no key; two of them are kept to be told. An encoder and a
// decoder have the same parts, which are told apart by the name of the tower where there are both.
struct Meanings {
  std::map<CanonicalName, std::size_t> tensors;
  std::vector<std::pair<std::size_t, std::size_t>> ambiguous;  // Two for each meaning.
};

Meanings meanings_of(const std::vector<std::string>& names, const std::vector<std::size_t>& free);

}  // namespace tensordiff
