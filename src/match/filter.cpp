#include "match/filter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/parallel.h"
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

std::string filter_text(const std::vector<std::string>& paths, const std::string& ignore_regex) {
  std::string out;
  for (const std::string& path : paths)
    out += fmt::format("{}--path '{}'", out.empty() ? "" : " ", printable(path));
  if (!ignore_regex.empty())
    out +=
        fmt::format("{}--ignore-keys-regex '{}'", out.empty() ? "" : " ", printable(ignore_regex));
  return out;
}

Result<NameFilter> NameFilter::make(std::vector<std::string> paths,
                                    const std::string& ignore_regex) {
  NameFilter filter;
  filter.paths_ = std::move(paths);
  if (!ignore_regex.empty()) filter.ignore_ = TRY(Pattern::make(ignore_regex));
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
  return !ignore_ || !ignore_->found_in(name);
}

Result<void> NameFilter::apply(Catalog& catalog) const {
  std::erase_if(catalog.tensors,
                [&](const Tensor& tensor) { return !called_off() && !passes(tensor.name); });
  if (called_off()) return Error("cancelled");
  return {};
}

}  // namespace tensordiff
