// The number of a pass in front of names, where a dump has several passes in one: "step_3/…" of
// files, "0.…" of a list.

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

class PassNames {
 public:
  explicit PassNames(const Catalog& catalog);

  // Whether most names have a mark.
  bool any() const { return form_ != Form::none; }
  // The name as it is, of pass 0, where it has none.
  PassName read(std::string_view name) const;

 private:
  enum class Form : uint8_t { none, word, number };
  static std::optional<PassName> read(std::string_view name, Form form);

  Form form_ = Form::none;
};

}  // namespace tensordiff
