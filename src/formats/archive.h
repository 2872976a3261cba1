// What an archive or a folder makes of the files in it: one catalog.
//
// Every file is opened by its content. Names: the path below the folders that all files share,
// without the extension, is the file's stem. A tensor without a name of its own (a file that holds
// just one) is named by the stem: "0_query", "rank_0/0_key". Named tensors get the stem in front,
// "encoder.fc1.weight", unless all of them are of one model: one file, or the shards of one.

#pragma once

#include <string>
#include <vector>

#include "formats/format.h"

namespace tensordiff {

struct ArchiveFile {
  std::string path;  // Inside the archive or folder, with '/'. For names and messages only.
  ByteSource source;
  uint64_t packed = source.size();  // Bytes that it takes in the archive.
};

// What a container was found to hold.
struct Archive {
  std::vector<ArchiveFile> files;
  std::vector<Problem> problems;  // Members that the container itself had to leave out.
};

// Opens all files of an archive or a folder, which lie in `depth` archives. A file that cannot be
// opened is a Problem; it is an Error when no file could be.
Result<Catalog> open_files(Archive archive, const Limits& limits, int depth);

// What an archive format asks first: an archive in an archive in an archive is refused.
Result<void> check_nesting(const Input& archive);

}  // namespace tensordiff
