// Files that are compressed as a whole: model.safetensors.gz, dumps.tar.zst. What is inside goes
// through a fixed window into a temporary file without a name, and is opened by its content.

#pragma once

#include "formats/format.h"

namespace tensordiff {

// Where a decompressor puts what it makes. It holds the limits on size and on growth.
class Sink {
 public:
  static Result<Sink> create(uint64_t packed_bytes, const Limits& limits);

  Result<void> add(ByteView piece);
  Result<Bytes> finish() && { return std::move(file_).map(); }

 private:
  Sink(SpillFile file, uint64_t packed_bytes, const Limits& limits)
      : file_(std::move(file)), packed_bytes_(packed_bytes), limits_(limits) {}

  SpillFile file_;
  uint64_t packed_bytes_;
  const Limits& limits_;
};

// Makes all of it plain. Damage, a cut and bytes behind the end are errors.
using Unpack = Result<void> (*)(ByteView packed, Sink& sink);

// Opens what is inside. `ending` is put behind the name of its format: "tar" + ".zst".
Result<Catalog> open_compressed(const Input& input, Unpack unpack, std::string_view ending);

// What every decompressor says of a file that is not as it was.
Error cut_short();
Error bytes_behind(uint64_t count);

}  // namespace tensordiff
