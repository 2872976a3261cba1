#include "serve/roots.h"

#include <algorithm>

namespace fs = std::filesystem;

namespace tensordiff::serve {
namespace {

constexpr std::size_t kEntriesMax = 1000;
// A folder larger than this is not sorted through.
constexpr std::size_t kEntriesSeenMax = 100'000;

}  // namespace

Result<Listing> list_folder(const Roots& roots, const fs::path& folder, const std::string& prefix) {
  Listing listing;
  TRY(roots.list(folder.string(), [&](Roots::Entry entry) {
    if (entry.outside || !entry.name.starts_with(prefix) ||
        (entry.name.starts_with('.') && !prefix.starts_with('.')))
      return true;
    const std::string path = (folder / entry.name).string();
    listing.entries.push_back(
        {std::move(entry.name), path, entry.folder, entry.folder ? 0 : entry.bytes});
    return listing.entries.size() < kEntriesSeenMax;
  }));
  std::ranges::sort(listing.entries, {}, [](const Listing::Entry& entry) {
    return std::pair(!entry.folder, entry.name);
  });
  listing.more = listing.entries.size() > kEntriesMax;
  if (listing.more) listing.entries.resize(kEntriesMax);
  return listing;
}

Listing list_roots(const Roots& roots) {
  Listing listing;
  for (const fs::path& root : roots.folders())
    listing.entries.push_back({root.filename().string(), root.string(), true, 0});
  return listing;
}

}  // namespace tensordiff::serve
