#include "formats/folder.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/text.h"
#include "formats/archive.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTagBytesMax = 256;

// The name of the folder that a file "latest" or its like speaks of.
std::optional<std::string> tag_of(const ArchiveFile& file, std::string_view name) {
  if (name != "latest" && name != "latest_checkpointed_iteration.txt") return std::nullopt;
  if (file.source.size() > kTagBytesMax) return std::nullopt;
  const Result<Bytes> bytes = file.source.open();
  if (!bytes.ok()) return std::nullopt;
  std::string_view tag = as_text(bytes.value().view);
  while (!tag.empty() && (tag.back() == '\n' || tag.back() == ' ')) tag.remove_suffix(1);
  if (name != "latest" && all_digits(tag)) return fmt::format("iter_{:0>7}", tag);
  return std::string(tag);
}

// Whether a folder's name is that of one step among others.
bool is_step(std::string_view folder) {
  return folder.starts_with("global_step") || folder.starts_with("iter_") || folder == "release";
}

}  // namespace

Result<ByteSource> Folder::file(std::string_view name) const {
  const auto found = files.find(name);
  if (found == files.end() || name.find('/') != std::string_view::npos)
    return Error("no file '{}' beside it", printable(name));
  return found->second;
}

void keep_latest(Archive& archive) {
  std::vector<Problem> notes;
  std::set<std::string> left_out, tags;
  for (const ArchiveFile& file : archive.files) {
    const std::size_t slash = file.path.rfind('/') + 1;
    const std::optional<std::string> tag = tag_of(file, std::string_view(file.path).substr(slash));
    if (!tag) continue;
    const std::string above = file.path.substr(0, slash);
    const std::string kept = above + *tag + "/";
    const auto is_kept = [&](const ArchiveFile& f) { return f.path.starts_with(kept); };
    tags.insert(file.path);
    if (std::ranges::none_of(archive.files, is_kept)) {
      notes.push_back(
          {file.path, fmt::format("it names '{}', which is not there", printable(*tag))});
      continue;
    }
    for (const ArchiveFile& other : archive.files) {
      if (is_kept(other) || !other.path.starts_with(above)) continue;
      const std::string_view below = std::string_view(other.path).substr(above.size());
      const std::size_t end = below.find('/');
      if (end != std::string_view::npos && is_step(below.substr(0, end)))
        left_out.insert(above + std::string(below.substr(0, end)) + "/");
    }
  }
  for (const std::string& step : left_out)
    notes.push_back({step, "left out: it is not the latest checkpoint in its folder"});
  std::erase_if(archive.files, [&](const ArchiveFile& file) {
    return tags.contains(file.path) || std::ranges::any_of(left_out, [&](const std::string& step) {
             return file.path.starts_with(step);
           });
  });
  archive.problems.insert(archive.problems.end(), notes.begin(), notes.end());
}

}  // namespace tensordiff
