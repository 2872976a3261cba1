#include "serve/roots.h"

#include <algorithm>

#include "base/text.h"

namespace fs = std::filesystem;

namespace tensordiff::serve {
namespace {

constexpr std::size_t kEntriesMax = 1000;
constexpr std::size_t kEntriesSeenMax =
    100'000;  // A folder larger than this is not sorted through.

bool is_beneath(const fs::path& path, const fs::path& folder) {
  const auto [end, _] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end();
}

}  // namespace

Result<Roots> Roots::make(const std::vector<std::string>& paths) {
  Roots roots;
  for (const std::string& path : paths) {
    std::error_code fault;
    fs::path folder = fs::canonical(path, fault);
    if (fault) return Error("{}: {}", printable(path), fault.message());
    if (!fs::is_directory(folder, fault)) folder = folder.parent_path();
    if (std::ranges::find(roots.folders_, folder) == roots.folders_.end())
      roots.folders_.push_back(folder);
  }
  return roots;
}

bool Roots::contains(const fs::path& canonical) const {
  return std::ranges::any_of(folders_,
                             [&](const fs::path& root) { return is_beneath(canonical, root); });
}

Roots::Found Roots::find(const std::string& path) const {
  Found found;
  if (path.empty() || path.find('\0') != std::string::npos) return found;
  std::error_code fault;
  const fs::path canonical = fs::weakly_canonical(path, fault);
  if (fault) return found;
  // Says nothing of what lies outside, not even whether it is there.
  found.outside = !contains(canonical);
  if (!found.outside && fs::exists(canonical, fault)) found.path = canonical;
  return found;
}

Result<void> Roots::check_links(const fs::path& folder) const {
  std::error_code fault;
  if (!fs::is_directory(folder, fault)) return {};
  fs::recursive_directory_iterator entries(folder, fault);
  for (; !fault && entries != fs::recursive_directory_iterator(); entries.increment(fault)) {
    std::error_code ignored;
    if (!entries->is_symlink(ignored)) continue;
    const fs::path target = fs::canonical(entries->path(), ignored);
    if (!ignored && fs::is_regular_file(target, ignored) && !contains(target))
      return Error("'{}' is a link to a file outside the roots",
                   printable(entries->path().lexically_relative(folder).string()));
  }
  if (fault) return Error("cannot list the folder: {}", fault.message());
  return {};
}

Result<Roots::Listing> Roots::list(const fs::path& folder, const std::string& prefix) const {
  Listing listing;
  std::error_code fault;
  fs::directory_iterator entries(folder, fault);
  for (; !fault && entries != fs::directory_iterator(); entries.increment(fault)) {
    std::error_code ignored;
    const std::string name = entries->path().filename().string();
    if (!name.starts_with(prefix) || (name.starts_with('.') && !prefix.starts_with('.'))) continue;
    const bool is_folder = entries->is_directory(ignored);
    if (!is_folder && !entries->is_regular_file(ignored)) continue;
    const uint64_t bytes = is_folder ? 0 : entries->file_size(ignored);
    listing.entries.push_back({name, entries->path().string(), is_folder, bytes});
    if (listing.entries.size() == kEntriesSeenMax) break;
  }
  if (fault) return Error("cannot list the folder: {}", fault.message());
  std::ranges::sort(listing.entries, {},
                    [](const Entry& entry) { return std::pair(!entry.folder, entry.name); });
  listing.more = listing.entries.size() > kEntriesMax;
  if (listing.more) listing.entries.resize(kEntriesMax);
  return listing;
}

Roots::Listing Roots::list_roots() const {
  Listing listing;
  for (const fs::path& root : folders_)
    listing.entries.push_back({root.filename().string(), root.string(), true, 0});
  return listing;
}

}  // namespace tensordiff::serve
