// The sorted tables of keys and values that TensorFlow keeps checkpoints in, in LevelDB's format.

#pragma once

#include <string>
#include <vector>

#include "base/byte_source.h"
#include "base/result.h"
#include "formats/format.h"

namespace tensordiff {

struct TableEntry {
  std::string key;
  Bytes value;
};

// By what its last eight bytes are.
bool is_table(const Bytes& file);

// All entries, in the order of their keys.
Result<std::vector<TableEntry>> read_table(const Bytes& file, const Limits& limits);

}  // namespace tensordiff
