// A regular expression that somebody else wrote, searched in time linear in the text.
//
// Expressions and names both come from files and users: an engine that backtracks could be kept
// busy for ever by a short one. This one refuses what needs backtracking, which is lookaround and
// backreferences. Text is bytes, so that names that are not UTF-8 can be searched as well.

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tensordiff {

class Pattern {
 public:
  // An error says what is wrong with the expression, and quotes it as the user wrote it where
  // that is not the same.
  static Result<Pattern> make(std::string_view expression, std::string_view written = {});

  // Whether the expression is found anywhere in the text.
  bool found_in(std::string_view text) const;

  // What each group holds at the first place where it is found, the whole at 0; nothing where it
  // is not found. A group that takes no part has no value.
  using Groups = std::vector<std::optional<std::string_view>>;
  std::optional<Groups> search(std::string_view text) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace tensordiff
