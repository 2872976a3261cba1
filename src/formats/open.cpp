// From a path or some bytes to a catalog: finds the format by content and asks it.

#include <algorithm>
#include <filesystem>

#include "base/byte_owner.h"
#include "base/parallel.h"
#include "base/remote_files.h"
#include "base/text.h"
#include "formats/archive.h"
#include "formats/config.h"
#include "formats/detect.h"
#include "formats/format.h"
#include "formats/limits.h"
#include "formats/recorded_names.h"
#include "formats/shards.h"
#include "formats/zip_archive.h"
#include "naming/naming.h"
#include "packed/packed.h"

namespace tensordiff {
namespace {

namespace fs = std::filesystem;

// Files that are often met where a model is meant, to say more than "unknown".
constexpr std::pair<std::string_view, std::string_view> kOtherFiles[] = {
    {"lmgg", "ggml, a format from before GGUF"},
    {"fmgg", "ggmf, a format from before GGUF"},
    {"tjgg", "ggjt, a format from before GGUF"},
    {"algg", "ggla, a format from before GGUF"},
    {"\x7f"
     "ELF",
     "a program"},
    {"\x89PNG", "PNG"},
    {"%PDF", "PDF"},
    {"7z\xbc\xaf", "7-Zip"},
    {"version https://git-lfs", "a Git LFS pointer, not the file itself"},
};

std::string format_names() {
  std::string names;
  for (const Format* format : formats::kAll)
    names += (names.empty() ? "" : ", ") + std::string(format->name);
  return names;
}

Error unknown_format(ByteView file) {
  if (file.empty()) return Error("an empty file");
  const std::string_view text = as_text(file);
  for (const auto& [signature, meaning] : kOtherFiles)
    if (text.starts_with(signature)) return Error("it looks like {}, which is not read", meaning);
  return Error("not of a known format: it starts with '{}'", printable(text.substr(0, 16)));
}

// A file that starts as one thing and ends as a zip is two files to two readers. The start decides,
// and the user is told: such files are made to show a scanner something else than a loader.
bool is_also_zip(const Bytes& file) {
  if (formats::zip.recognises(file) || file.size() < 22) return false;
  const std::string_view tail = as_text(file.view.last(std::min<uint64_t>(file.size(), 65557)));
  return tail.find("PK\5\6") != std::string_view::npos && read_zip(file, {}).ok();
}

Result<void> check_size(uint64_t bytes, const Limits& limits) {
  if (bytes <= limits.input_bytes_max) return {};
  return limit_hit("input", fmt::format("{} are more than {}", human_bytes(bytes),
                                        human_bytes(limits.input_bytes_max)));
}

// Other files in or below the folder of a file that the user named, never through a link.
std::function<Result<ByteSource>(std::string_view)> siblings_in(const fs::path& folder,
                                                                const Roots& roots) {
  return [folder, roots](std::string_view name) -> Result<ByteSource> {
    return ByteSource(
        TRY(roots.map_beneath(folder.string(), name).in(fmt::format("'{}'", printable(name)))));
  };
}

// The user named one of the files of a split GGUF model: all of them, by the names they must have.
Result<Catalog> open_split(const fs::path& path, const PartName& part, const OpenOptions& options) {
  Archive archive;
  uint64_t bytes = 0;
  for (uint64_t i = 1; i <= part.count; ++i) {
    Result<Bytes> file = options.roots.map((path.parent_path() / part.other(i)).string());
    if (!file.ok()) continue;  // Said to be missing with the others.
    bytes += file.value().size();
    archive.files.push_back({part.other(i), ByteSource(std::move(file).value())});
  }
  TRY(check_size(bytes, options.limits));
  Catalog catalog = TRY(open_files(std::move(archive), options.limits, 0));
  catalog.format = formats::gguf.name;
  return catalog;
}

// The user named one shard: it is read alone, and the others should be there too.
void look_for_others(const fs::path& path, const PartName& part, const Roots& roots,
                     Catalog& catalog) {
  std::vector<std::string> there;
  if (is_remote(path.string())) {  // A request for each, only to say so.
    catalog.problems.push_back(
        {"", fmt::format("one of {} shards; the others are not read", part.count), Severity::note});
    return;
  }
  for (uint64_t i = 0; i <= part.count; ++i)
    if (roots.look((path.parent_path() / part.other(i)).string()).ok())
      there.push_back(part.other(i));
  report_missing_parts(there, {}, catalog.problems);
  if (there.size() > 1)
    catalog.problems.push_back(
        {"", fmt::format("one of {} shards; the others are not read", part.count), Severity::note});
}

Result<Catalog> open_file(const std::string& path, const OpenOptions& options) {
  const Bytes file = TRY(options.roots.map(path));
  const std::optional<PartName> part = part_name(fs::path(shown_input(path)).filename().string());
  if (options.format.empty() && part && formats::gguf.recognises(file))
    return open_split(path, *part, options);
  TRY(check_size(file.size(), options.limits));
  const Result<const Format*> format = detect(file);
  if (!file.intact()) return Error("{}", damage_of(file));
  if (options.format.empty() && !format.ok())
    return Error("{}; the formats are: {}", format.error().message(), format_names());
  const fs::path folder =
      is_remote(path) ? fs::path(remote_parent(path)) : fs::path(path).parent_path();
  const Input input{shown_input(path), ByteSource(file), options.limits, 0,
                    siblings_in(folder, options.roots)};
  Catalog catalog = TRY(open_input(input, options.format));
  if (part) look_for_others(path, *part, options.roots, catalog);
  return catalog;
}

Result<Catalog> open_folder(const std::string& path, const OpenOptions& options) {
  if (!options.format.empty()) return Error("a folder: '--format' is for a single file");
  Archive archive = TRY(walk_folder(path, options));
  Catalog catalog = TRY(open_files(std::move(archive), options.limits, 0));
  catalog.format = "folder";
  return catalog;
}

// The shards of an index whose folder cannot be listed. What is not there is told by the index.
Result<Archive> named_shards(const std::string& folder, const ShardIndex& index,
                             const OpenOptions& options) {
  if (index.shards.size() > options.limits.members_max)
    return limit_hit("members", fmt::format("more than {} files", options.limits.members_max));
  const std::vector<std::string> names(index.shards.begin(), index.shards.end());
  std::vector<Result<Bytes>> shards(names.size(), Error("cancelled"));
  for_each_index(names.size(),
                 [&](std::size_t i) { shards[i] = options.roots.map_beneath(folder, names[i]); });
  Archive archive;
  uint64_t bytes = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!shards[i].ok()) {
      archive.problems.push_back({names[i], shards[i].error().message()});
      continue;
    }
    bytes += shards[i].value().size();
    archive.files.push_back({names[i], ByteSource(std::move(shards[i]).value())});
  }
  TRY(check_size(bytes, options.limits));
  return archive;
}

bool can_be_listed(const std::string& folder) {
  const Result<const RemoteFiles*> files = remote_files();
  return !is_remote(folder) || !files.ok() || files.value()->lists(folder);
}

// The user named an index: only the shards it speaks of, not all of its folder.
Result<Catalog> open_index(const std::string& path, const OpenOptions& options) {
  const Bytes file = TRY(options.roots.map(path));
  const std::string name = fs::path(shown_input(path)).filename().string();
  Result<ShardIndex> parsed = ShardIndex::parse(name, as_text(file.view));
  if (!file.intact()) return Error("{}", damage_of(file));
  const ShardIndex index = TRY(std::move(parsed));
  std::string folder =
      is_remote(path) ? remote_parent(path) : fs::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  Archive archive;
  if (can_be_listed(folder)) {
    archive = TRY(walk_folder(folder, options));
  } else {
    archive = TRY(named_shards(folder, index, options));
    archive.files.push_back({name, ByteSource(file)});
  }
  std::erase_if(archive.files, [&](const ArchiveFile& other) {
    return other.path != name && !index.shards.contains(other.path);
  });
  Catalog catalog = TRY(open_files(std::move(archive), options.limits, 0));
  catalog.format = "shards";
  return catalog;
}

}  // namespace

Result<const Format*> format_named(std::string_view name) {
  for (const Format* format : formats::kAll)
    if (format->name == name) return format;
  return Error("no format '{}'; there are: {}", printable(name), format_names());
}

Result<const Format*> detect(const Bytes& file) {
  for (const Format* format : formats::kAll)
    if (format->recognises(file)) return format;
  return unknown_format(file.view);
}

// Mapped when somebody looks into it.
Result<Archive> walk_folder(const std::string& folder, const OpenOptions& options) {
  Archive archive;
  uint64_t bytes = 0;
  const uint64_t most = options.limits.members_max;
  const auto roots = std::make_shared<const Roots>(options.roots);
  TRY(roots->walk(folder, [&](Roots::Entry entry) {
    std::string path = is_remote(folder) ? remote_child(folder, entry.name)
                                         : (fs::path(folder) / entry.name).string();
    bytes += entry.bytes;
    archive.files.push_back(
        {std::move(entry.name),
         ByteSource(entry.bytes, [roots, path = std::move(path)] { return roots->map(path); })});
    return archive.files.size() <= most;
  }));
  if (archive.files.size() > most)
    return limit_hit("members", fmt::format("more than {} files", most));
  TRY(check_size(bytes, options.limits));
  std::ranges::sort(archive.files, {}, &ArchiveFile::path);
  return archive;
}

Result<Catalog> open_input(const Input& input, std::string_view name) {
  const Bytes file = TRY(input.source.open());
  const Result<const Format*> found = name.empty() ? detect(file) : format_named(name);
  if (!file.intact()) return Error("{}", damage_of(file));  // Not what its lack was taken for.
  const Format* format = TRY(Result<const Format*>(found));
  Result<Catalog> opened = format->open(input);
  if (!file.intact()) return Error("{}", damage_of(file));
  Catalog catalog = TRY(std::move(opened));
  if (catalog.format.empty()) catalog.format = format->name;
  if (name.empty() && is_also_zip(file))
    catalog.problems.push_back(
        {"", fmt::format("ambiguous: it starts as {} and ends as zip; read as {}", format->name,
                         format->name)});
  if (!file.intact()) return Error("{}", damage_of(file));
  return catalog;
}

Result<Catalog> open_model(const std::string& path, const OpenOptions& options) {
  if (path == "-") return Error("reading from standard input is not supported");
  const std::string shown = shown_input(path);
  const Result<Roots::Entry> found = options.roots.look(path);
  if (!found.ok()) return Error("{}: {}", printable(shown), found.error().message());
  const bool is_folder = found.value().folder;
  Result<Catalog> catalog = is_folder               ? open_folder(path, options)
                            : is_shard_index(shown) ? open_index(path, options)
                                                    : open_file(path, options);
  if (!catalog.ok()) return std::move(catalog).error().in(printable(shown));
  catalog.value().path = shown;
  catalog.value().beside = [path, is_folder,
                            roots = options.roots](std::string_view name) -> Result<Bytes> {
    const std::optional<std::string> place =
        is_remote(path) ? remote_companion(path, is_folder, name) : companion(path, name);
    if (!place) return Error("{}: no such file belongs to the input", printable(name));
    return roots.map(*place);
  };
  if (Result<Bytes> config = catalog.value().beside("config.json"); config.ok())
    add_config(ByteSource(std::move(config).value()), options.limits, catalog.value());
  std::vector<Trace> traces;
  if (is_folder) traces = add_traces(options.limits, catalog.value());
  unpack(catalog.value());
  read_places(catalog.value());
  read_classes(traces, catalog.value());
  std::ranges::stable_sort(catalog.value().problems, std::greater(), &Problem::severity);
  return catalog;
}

}  // namespace tensordiff
