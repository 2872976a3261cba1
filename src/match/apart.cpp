#include "match/apart.h"

namespace tensordiff {

void take_apart(const std::vector<NamePair>& apart, const Catalog& a, const Catalog& b,
                Matching& matching) {
  for (const NamePair& names : apart) {
    std::erase_if(matching.pairs, [&](const Pair& pair) {
      const bool is_it = a.tensors[pair.a].name == names.a && b.tensors[pair.b].name == names.b;
      if (is_it) matching.only_a.push_back({pair.a});
      if (is_it) matching.only_b.push_back({pair.b});
      return is_it;
    });
  }
}

}  // namespace tensordiff
