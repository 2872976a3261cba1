// What the page shows of the folders beneath the roots.

#pragma once

#include <string>
#include <vector>

#include "base/roots.h"

namespace tensordiff::serve {

struct Listing {
  struct Entry {
    std::string name;
    std::string path;
    bool folder = false;
    uint64_t bytes = 0;
  };
  std::vector<Entry> entries;  // Folders first, then by name.
  bool more = false;
};

// What is in a folder and starts with `prefix`, hidden files only if it starts with a dot.
Result<Listing> list_folder(const Roots& roots, const std::filesystem::path& folder,
                            const std::string& prefix);
Listing list_roots(const Roots& roots);

}  // namespace tensordiff::serve
