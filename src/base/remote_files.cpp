#include "base/remote_files.h"

#include <algorithm>
#include <atomic>

namespace tensordiff {
namespace {

std::atomic<const RemoteFiles*> table = nullptr;

bool is_scheme_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+';
}

// Where the path of an address begins: after its host.
std::size_t path_begin(std::string_view url) {
  const std::size_t slash = url.find('/', url.find("://") + 3);
  return std::min(slash, url.size());
}

// Elsewhere a question mark is part of a name.
bool has_query(std::string_view url) {
  return url.starts_with("http://") || url.starts_with("https://");
}

std::string_view without_query(std::string_view url) {
  return has_query(url) ? url.substr(0, url.find_first_of("?#")) : url;
}

bool is_plain(char c) {
  return is_scheme_letter(c) ? c != '+' : c == '-' || c == '.' || c == '_' || c == '~' || c == '/';
}

}  // namespace

void set_remote_files(const RemoteFiles* files) { table = files; }

Result<const RemoteFiles*> remote_files() {
  if (const RemoteFiles* files = table) return files;
  return Error("remote inputs are turned off here");
}

bool is_remote(std::string_view path) {
  const std::size_t mark = path.find("://");
  return mark != std::string_view::npos && mark > 0 &&
         std::ranges::all_of(path.substr(0, mark), is_scheme_letter);
}

std::string remote_parent(std::string_view url) {
  url = without_query(url);
  const std::size_t begin = path_begin(url);
  std::size_t slash = url.rfind('/');
  if (slash == std::string_view::npos || slash < begin) slash = url.size();
  return std::string(url.substr(0, std::max(slash, begin)));
}

std::string remote_child(std::string_view url, std::string_view name) {
  url = without_query(url);
  while (url.ends_with('/') && !url.ends_with("://")) url.remove_suffix(1);
  std::string child = std::string(url) + "/";
  if (!has_query(url)) return child + std::string(name);
  for (const char c : name) {
    if (is_plain(c))
      child += c;
    else
      child += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return child;
}

std::string shown_input(const std::string& path) {
  const RemoteFiles* files = table;
  return files && is_remote(path) ? files->shown(path) : path;
}

}  // namespace tensordiff
