// What two files say of themselves beside their tensors, where that differs.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tensor/catalog.h"

namespace tensordiff {

struct MetadataChange {
  std::string key;
  std::optional<std::string> a, b;  // Nothing where that side does not have the key.
};

// By key. Files of different formats speak of different things: of those, only keys that both have.
std::vector<MetadataChange> list_metadata_changes(const Catalog& a, const Catalog& b);

}  // namespace tensordiff
