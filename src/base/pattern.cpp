#include "base/pattern.h"

#include <re2/re2.h>

#include "base/text.h"

namespace tensordiff {

struct Pattern::Compiled {
  Compiled(std::string_view expression, const RE2::Options& options)
      : regex(re2::StringPiece(expression.data(), expression.size()), options) {}
  RE2 regex;
};

namespace {

constexpr std::string_view kNoBacktracking = " (there are no lookaround and no backreferences)";

// Whether the engine stumbled over (?=, (?!, (?<= or (?<!, or over \1 to \9.
bool needs_backtracking(const RE2& regex) {
  const std::string& at = regex.error_arg();
  const bool escape = regex.error_code() == RE2::ErrorBadEscape;
  return at.starts_with("(?") || (escape && at.size() == 2 && at[1] >= '1' && at[1] <= '9');
}

}  // namespace

Result<Pattern> Pattern::make(std::string_view expression, std::string_view written) {
  RE2::Options options(RE2::Latin1);
  options.set_log_errors(false);  // What is wrong is for the caller to say.
  Pattern pattern;
  pattern.compiled_ = std::make_shared<const Compiled>(expression, options);
  const RE2& regex = pattern.compiled_->regex;
  if (regex.ok()) return pattern;
  return Error("'{}' is not a regular expression: {}{}",
               printable(written.empty() ? expression : written), printable(regex.error()),
               needs_backtracking(regex) ? kNoBacktracking : "");
}

bool Pattern::found_in(std::string_view text) const {
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), compiled_->regex);
}

std::optional<Pattern::Groups> Pattern::search(std::string_view text) const {
  const RE2& regex = compiled_->regex;
  const int count = 1 + regex.NumberOfCapturingGroups();
  std::vector<re2::StringPiece> found(static_cast<std::size_t>(count));
  if (!regex.Match(re2::StringPiece(text.data(), text.size()), 0, text.size(), RE2::UNANCHORED,
                   found.data(), count))
    return std::nullopt;
  Groups groups;
  for (const re2::StringPiece& piece : found)
    groups.push_back(piece.data() ? std::optional(std::string_view(piece.data(), piece.size()))
                                  : std::nullopt);
  return groups;
}

}  // namespace tensordiff
