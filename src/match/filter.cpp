#include "match/filter.h"

#include <algorithm>
#include <regex>

#include "base/text.h"

namespace tensordiff {
namespace {

// Whether `name` starts with `pattern`, in which '*' stands for any text.
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

}  // namespace

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
  const auto starts = [&](const std::string& path) { return starts_with_glob(name, path); };
  if (!paths_.empty() && std::ranges::none_of(paths_, starts)) return false;
  return !ignore_ || !std::regex_search(name.begin(), name.end(), ignore_->regex);
}

void NameFilter::apply(Catalog& catalog) const {
  std::erase_if(catalog.tensors, [&](const Tensor& tensor) { return !passes(tensor.name); });
}

}  // namespace tensordiff
