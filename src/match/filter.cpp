#include "match/filter.h"

#include <algorithm>
#include <regex>

#include "base/text.h"

namespace tensordiff {

bool starts_with_glob(std::string_view name, std::string_view pattern) {
  const std::vector<std::string_view> pieces = split(pattern, '*');
  if (!name.starts_with(pieces[0])) return false;
  name.remove_prefix(pieces[0].size());
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    const std::size_t at = name.find(pieces[i]);
    if (at == std::string_view::npos) return false;
    name.remove_prefix(at + pieces[i].size());
  }
  return true;
}

struct NameFilter::Pattern {
  std::regex regex;
};

Result<NameFilter> NameFilter::make(std::vector<std::string> paths,
                                    const std::string& ignore_regex) {
  NameFilter filter;
  filter.paths_ = std::move(paths);
  if (ignore_regex.empty()) return filter;
  try {
    const auto flags = std::regex::ECMAScript | std::regex::optimize;
    filter.ignore_ = std::make_shared<const Pattern>(Pattern{std::regex(ignore_regex, flags)});
  } catch (const std::regex_error& error) {
    return Error("'{}' is not a regular expression: {}", printable(ignore_regex), error.what());
  }
  return filter;
}

bool NameFilter::passes(std::string_view name) const {
  // diffai puts all tensors below "tensor", and so do the paths of those who come from it.
  constexpr std::string_view kRoot = "tensor.";
  const auto starts = [&](const std::string& path) {
    if (starts_with_glob(name, path)) return true;
    return path.starts_with(kRoot) &&
           starts_with_glob(name, std::string_view(path).substr(kRoot.size()));
  };
  if (!paths_.empty() && std::ranges::none_of(paths_, starts)) return false;
  // std::regex goes as deep as a name is long: one of a megabyte would end the program.
  constexpr std::size_t kSearched = 2000;
  const std::string_view head = name.substr(0, kSearched);
  return !ignore_ || !std::regex_search(head.begin(), head.end(), ignore_->regex);
}

void NameFilter::apply(Catalog& catalog) const {
  std::erase_if(catalog.tensors, [&](const Tensor& tensor) { return !passes(tensor.name); });
}

}  // namespace tensordiff
