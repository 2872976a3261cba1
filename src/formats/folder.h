// Models that are several files which mean something only together: a DCP checkpoint, the
// partitions of ZeRO, the chunks of a zarr array.
//
// A Format opens one file; a FolderFormat opens the files of one folder, on disk or in an archive.
// It sees them by the paths they have there and never asks the file system.

#pragma once

#include <map>
#include <string>
#include <string_view>

#include "formats/format.h"

namespace tensordiff {

struct Folder {
  std::string path;                                      // With its last '/'; for messages only.
  std::map<std::string, ByteSource, std::less<>> files;  // All below it, by path from here.
  const Limits& limits;

  // A file directly in the folder. `name` may come from a file: it is looked up and nothing else.
  Result<ByteSource> file(std::string_view name) const;
};

struct FolderFormat {
  std::string_view name;
  std::string_view summary;               // One line for docs/formats.md.
  bool (*starts)(std::string_view file);  // Whether a file of this name makes its folder a model.
  bool (*owns)(std::string_view path);    // Whether a file is part of it, not one of its own.
  Result<Catalog> (*open)(const Folder& folder);
};

namespace folders {

extern const FolderFormat torch_dcp;
extern const FolderFormat torch_zero;
extern const FolderFormat zarr;
extern const FolderFormat llama_debug;

inline constexpr const FolderFormat* kAll[] = {&torch_dcp, &torch_zero, &zarr, &llama_debug};

}  // namespace folders

// Checkpoints of several steps in one folder, and a file that says which is the latest, as
// DeepSpeed ("latest") and Megatron ("latest_checkpointed_iteration.txt") keep them: only that one
// is read. Gives what is left; says in `problems` what is not.
struct Archive;
void keep_latest(Archive& archive);

}  // namespace tensordiff
