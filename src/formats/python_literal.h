// Python literals as numpy writes them into its headers: read, never evaluated.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace tensordiff {

// A string, a whole number, a bool, None, or a dict, list or tuple of such.
struct PythonLiteral {
  struct Sequence {
    std::vector<PythonLiteral> items;
  };
  struct Dict {
    std::vector<std::string> keys;  // Only strings are keys here.
    std::vector<PythonLiteral> values;
  };
  std::variant<std::monostate, bool, int64_t, std::string, Sequence, Dict> value;

  template <class T>
  const T* as() const {
    return std::get_if<T>(&value);
  }
  // The value of a key of a dict; nullptr when there is none.
  const PythonLiteral* find(std::string_view key) const;
};

Result<PythonLiteral> parse_python_literal(std::string_view text);

}  // namespace tensordiff
