// Which files may be opened: all of them, as on a command line, or only those beneath some folders,
// as in a server.
//
// Every file of an input is opened through here, when it is first opened and whenever it is opened
// again: the input itself, its shards, external data, and the JSON files beside it. A path is
// followed to the file it means, links included; that file must lie beneath a root; and then it is
// opened by a walk that follows no link at all. Whoever swaps a folder for a link in between gets
// an error.

#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"

namespace tensordiff {

class Roots {
 public:
  Roots() = default;  // Everything may be opened.
  // Folders, or the folders of files. One that does not exist is an error.
  static Result<Roots> make(const std::vector<std::string>& paths);

  const std::vector<std::filesystem::path>& folders() const { return folders_; }
  bool contains(const std::filesystem::path& canonical) const;
  void add(const Roots& others);

  // The path without links and dots, if it lies beneath a root. `outside` tells that it does not
  // from that there is nothing of that name.
  struct Found {
    std::filesystem::path path;  // Empty: not allowed, or not there.
    bool outside = false;
  };
  Found find(const std::string& path) const;

  struct Entry {
    std::string name;  // Of an entry of a folder: its path from there, with '/'.
    uint64_t bytes = 0;
    uint64_t time = 0;  // Of the last change, in nanoseconds.
    bool folder = false;
    bool outside = false;  // A link that leads outside the roots: opening it fails.
  };
  // What a path is. It is an error where there is nothing that may be opened.
  Result<Entry> look(const std::string& path) const;

  // Maps a regular file for reading. Anything else (a pipe, a device) is an error.
  Result<Bytes> map(const std::string& path) const;

  // The same for a name that did not come from the user but from a file, such as "data/part.bin": a
  // file in the folder or below it, and reached through no symbolic link.
  Result<Bytes> map_beneath(const std::string& folder, std::string_view name) const;

  // All files in a folder and below, in no order, until `take` says false. Links to files are
  // followed, for model caches are made of them; links to folders are not, for they can go round.
  Result<void> walk(const std::string& folder, const std::function<bool(Entry)>& take) const;

  // What is directly in a folder: files and folders, links followed.
  Result<void> list(const std::string& folder, const std::function<bool(Entry)>& take) const;

  class Descriptor;

 private:
  Result<Descriptor> open(const std::string& path, int flags) const;
  Result<Entry> look_at_link(const std::string& path) const;

  bool bounded_ = false;
  std::vector<std::filesystem::path> folders_;
};

}  // namespace tensordiff
