// The members of a zip file, found through its central directory. Stored members are slices of the
// file; deflated ones are inflated when somebody opens their source.

#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/format.h"

namespace tensordiff {

struct ZipMember {
  std::string name;
  ByteSource source;
  bool stored = true;  // Not compressed: the source lies in the file as it is.
};

struct ZipArchive {
  std::vector<ZipMember> members;  // Files only, in the order of the central directory.
  std::vector<Problem> problems;   // Links skipped, checksums that do not match, odd flags.
  std::unordered_map<std::string, std::size_t> by_name;

  const ZipMember* find(const std::string& name) const;
};

Result<ZipArchive> read_zip(const Bytes& file, const Limits& limits);

}  // namespace tensordiff
