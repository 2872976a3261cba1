// Which tensors take part at all: --path and --ignore-keys-regex.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/pattern.h"
#include "base/result.h"
#include "tensor/catalog.h"

namespace tensordiff {

// Whether a name starts with a pattern, in which `*` stands for any text.
bool starts_with_glob(std::string_view name, std::string_view pattern);

// The filters as the user gave them: "--path 'x' --ignore-keys-regex 'y'".
std::string filter_text(const std::vector<std::string>& paths, const std::string& ignore_regex);

class NameFilter {
 public:
  // `paths`: a name passes when it starts with one of these, in which `*` stands for any text; no
  // path lets all pass. `ignore_regex`: names in which it is found do not pass; empty: none.
  static Result<NameFilter> make(std::vector<std::string> paths, const std::string& ignore_regex);

  bool passes(std::string_view name) const;

  // Removes the tensors that do not pass. An error when it was called off.
  Result<void> apply(Catalog& catalog) const;

 private:
  std::vector<std::string> paths_;
  std::optional<Pattern> ignore_;
};

}  // namespace tensordiff
