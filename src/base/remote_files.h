// How Roots reaches inputs on other machines ("https://…", "s3://…"): through a table of functions
// that src/remote fills in. While nobody has put a table here, such inputs are refused; the server
// leaves it so unless it is told otherwise.

#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/roots.h"

namespace tensordiff {

struct RemoteFiles {
  Result<Roots::Entry> (*look)(const std::string& url);
  Result<Bytes> (*map)(const std::string& url);
  Result<void> (*walk)(const std::string& url, const std::function<bool(Roots::Entry)>& take);
  bool (*lists)(const std::string& url);  // Whether its folders can be walked.
  // The address as it may be shown: without what could be a password or a signature.
  std::string (*shown)(const std::string& url);
};

// nullptr: remote inputs are refused. The table must last as long as the program.
void set_remote_files(const RemoteFiles* files);

// The table, or why there is none.
Result<const RemoteFiles*> remote_files();

// Whether an input is named by an address: letters, "://", and more.
bool is_remote(std::string_view path);

// "https://host/a/b?x" -> "https://host/a"; the address itself where nothing is above it.
std::string remote_parent(std::string_view url);

// The address of a file below a folder. The name was checked.
std::string remote_child(std::string_view url, std::string_view name);

// An input as reports may show it: a path as it is.
std::string shown_input(const std::string& path);

}  // namespace tensordiff
