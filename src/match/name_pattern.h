// A regular expression of the user's that says where in a name the layer and the stage stand.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tensordiff {

struct LayerStage;

class NamePattern {
 public:
  // Named groups, (?<layer>...) or (?P<layer>...), say what is what: `layer` is a number, `stage`
  // what it is within the layer. `key` stands for both: names with one key belong together. An
  // error says what is wrong with the expression.
  static Result<NamePattern> make(const std::string& regex);

  // Nothing where the expression is not found in the name, or its layer is not a number.
  std::optional<LayerStage> place(std::string_view name) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace tensordiff
