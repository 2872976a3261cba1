// The number of a pass in names, where a dump has several passes in one: "step_3/…" of files, "0.…"
// of a list in front of them, "….mlp.0" behind them, of hooks that append to a list of each module.

#pragma once

#include <optional>
#include <string_view>

#include "tensor/catalog.h"

namespace tensordiff {

// A name without the mark of its pass.
struct PassName {
  int32_t pass = 0;
  std::string rest;
};

// Whether a module of this path may give several tensors at once.
bool gives_tuples(std::string_view path);

class PassNames {
 public:
  explicit PassNames(const Catalog& catalog);

  // Whether most names have a mark.
  bool any() const { return form_ != Form::none; }
  // The name as it is, of pass 0, where it has none.
  PassName read(std::string_view name) const;

 private:
  enum class Form : uint8_t { none, word, number, behind };
  static std::optional<PassName> read(std::string_view name, Form form);

  Form form_ = Form::none;
};

}  // namespace tensordiff
