// Which files the server may look at: those beneath its roots, after all links are followed.

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace tensordiff::serve {

class Roots {
 public:
  // Folders, or the folders of files. One that does not exist is an error.
  static Result<Roots> make(const std::vector<std::string>& paths);

  const std::vector<std::filesystem::path>& folders() const { return folders_; }
  bool contains(const std::filesystem::path& canonical) const;

  // The path without links and dots, if it lies beneath a root. `outside` tells that it does not
  // from that there is nothing of that name.
  struct Found {
    std::filesystem::path path;  // Empty: not allowed, or not there.
    bool outside = false;
  };
  Found find(const std::string& path) const;

  // An error when a folder has a link to a file that lies beneath no root: opening the folder would
  // follow it.
  Result<void> check_links(const std::filesystem::path& folder) const;

  struct Entry {
    std::string name;
    std::string path;
    bool folder = false;
    uint64_t bytes = 0;
  };
  struct Listing {
    std::vector<Entry> entries;  // Folders first, then by name.
    bool more = false;
  };
  // What is in a folder and starts with `prefix`, hidden files only if it starts with a dot.
  Result<Listing> list(const std::filesystem::path& folder, const std::string& prefix) const;
  Listing list_roots() const;

 private:
  std::vector<std::filesystem::path> folders_;
};

}  // namespace tensordiff::serve
