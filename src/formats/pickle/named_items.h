// Lists that hold tensors with their names beside them, as hooks append them:
//
//   [("model.norm", tensor), …]       [{"name": "model.norm", "output": tensor}, …]
//
// and objects with such attributes. The name is then the key, in place of the number in the list.

#pragma once

#include <string>
#include <vector>

#include "formats/pickle/rebuild.h"

namespace tensordiff::pickle {

struct NamedItem {
  std::string name;  // With the key of the tensor behind it, where there are several.
  NodeId value;
};

// Nothing where an item has no name, or no tensor. Names that come several times have the number of
// the time in front: those of one pass stand together.
std::vector<NamedItem> named_items(const Rebuilder& rebuilder, std::span<const NodeId> items);

}  // namespace tensordiff::pickle
