#include "match/name_features.h"

#include <unordered_map>
#include <unordered_set>

#include "naming/numbered_name.h"

namespace tensordiff {
namespace {

using Features = std::array<std::string, kFeatures>;

// All paths that modules lie in.
using Paths = std::unordered_set<std::string>;

Paths containers_of(const std::vector<std::string>& names) {
  Paths paths;
  for (const std::string& name : names)
    for (std::size_t end = last_mark(name, last_mark(name, name.size())); end > 0;
         end = last_mark(name, end))
      if (!paths.insert(name.substr(0, end)).second) break;
  return paths;
}

Features features_of(const std::string& name, const Paths& containers) {
  Features features;
  const std::size_t leaf = last_mark(name, name.size());
  const std::size_t near = last_mark(name, leaf);
  features[kModule] = name.substr(0, leaf);
  features[kLeaf] = name.substr(leaf);
  features[kNear] = name.substr(near);
  // A number alone counts layers; one behind a word is part of it: "fc_1" is not "fc_2".
  const std::string_view last = std::string_view(name).substr(near, leaf - near);
  const bool counts = last.find_first_not_of("./0123456789") == std::string_view::npos;
  features[kKind] = numbered_name(counts ? features[kModule] : name.substr(0, near)).pattern +
                    (counts ? features[kLeaf] : features[kNear]);
  // A parameter of a block itself, beside its modules: "h.0.scale".
  const std::size_t end = containers.contains(features[kModule]) ? leaf : near;
  const std::size_t digit = name.substr(0, end).find_last_of("0123456789");
  if (digit != std::string::npos)
    features[kContainer] = name.substr(0, name.find_first_of("./", digit));
  return features;
}

}  // namespace

std::size_t last_mark(std::string_view name, std::size_t before) {
  const std::size_t at = name.substr(0, before).find_last_of("./");
  return at == std::string_view::npos ? 0 : at;
}

std::vector<Words> words_of(const std::vector<std::string>& names) {
  std::unordered_map<std::string, uint32_t> numbers = {{"", 0}};
  const Paths containers = containers_of(names);
  std::vector<Words> result(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Features features = features_of(names[i], containers);
    for (std::size_t k = 0; k < kFeatures; ++k)
      result[i][k] =
          numbers.emplace(features[k], static_cast<uint32_t>(numbers.size())).first->second;
  }
  return result;
}

}  // namespace tensordiff
