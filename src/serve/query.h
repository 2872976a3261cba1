// Reads what stands in a URL: percent signs, and the words behind the question mark.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tensordiff::serve {

// %2F becomes '/'. What is not a hexadecimal number stays as it is; a zero byte does not.
std::string percent_decoded(std::string_view text);

class Query {
 public:
  explicit Query(std::string_view text);

  // The value of the last word of that name; nothing where there is none.
  std::optional<std::string_view> find(std::string_view name) const;
  std::string_view text(std::string_view name, std::string_view fallback = {}) const;
  Result<uint64_t> count(std::string_view name, uint64_t fallback, uint64_t most) const;
  Result<std::optional<double>> number(std::string_view name) const;

 private:
  struct Word {
    std::string name, value;
  };
  std::vector<Word> words_;
};

// Digits and nothing else.
std::optional<uint64_t> parse_digits(std::string_view text);

}  // namespace tensordiff::serve
