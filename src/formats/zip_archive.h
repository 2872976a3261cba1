// The members of a zip file, found through its central directory. Stored members are slices of the
// file; deflated ones are inflated, and their checksum verified, when somebody opens their source.
//
// A member that cannot be read (an unknown method, a local header that contradicts the directory,
// bytes it shares with another member) is listed all the same: its source fails with the reason.

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
  bool stored = true;   // Not compressed: the source lies in the file as it is.
  uint64_t packed = 0;  // Bytes that it takes in the file.
  uint32_t crc32 = 0;   // As recorded. Writers may leave it 0 for stored members.
};

struct ZipArchive {
  std::vector<ZipMember> members;  // Files only, in the order of the central directory.
  std::vector<Problem> problems;   // Links and bad names left out, odd flags, bytes at the end.
  std::unordered_map<std::string, std::size_t> by_name;

  const ZipMember* find(const std::string& name) const;
};

Result<ZipArchive> read_zip(const Bytes& file, const Limits& limits);

// What opening leaves alone: checksums of members, and bytes that belong to none.
std::vector<Problem> audit_zip(const Bytes& file, const Limits& limits);

// Reads the whole member and compares its checksum with the recorded one. Not done on opening,
// because that must not read tensors.
Result<void> verify_checksum(const ZipMember& member);

}  // namespace tensordiff
