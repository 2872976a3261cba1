// From a path or some bytes to a catalog: finds the format by content and asks it.

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "formats/archive.h"
#include "formats/config.h"
#include "formats/detect.h"
#include "formats/format.h"
#include "formats/limits.h"
#include "formats/shards.h"
#include "formats/zip_archive.h"
#include "naming/naming.h"

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
std::function<Result<ByteSource>(std::string_view)> siblings_in(const fs::path& folder) {
  return [folder](std::string_view name) -> Result<ByteSource> {
    return ByteSource(
        TRY(map_beneath(folder.string(), name).in(fmt::format("'{}'", printable(name)))));
  };
}

// The user named one of the files of a split GGUF model: all of them, by the names they must have.
Result<Catalog> open_split(const fs::path& path, const OpenOptions& options) {
  const std::string stem = path.stem().string();
  const std::string model(*model_of_shard(stem));
  const uint64_t count = *shards_of_model(stem);
  Archive archive;
  std::string missing;
  uint64_t bytes = 0;
  for (uint64_t i = 1; i <= count; ++i) {
    const std::string name = fmt::format("{}-{:05}-of-{:05}.gguf", model, i, count);
    Result<Bytes> file = map_file((path.parent_path() / name).string());
    if (!file.ok() && missing.empty()) missing = name;
    if (!file.ok()) continue;
    bytes += file.value().size();
    archive.files.push_back({name, ByteSource(std::move(file).value())});
  }
  TRY(check_size(bytes, options.limits));
  if (!missing.empty())
    archive.problems.push_back(
        {missing, fmt::format("missing, the first of {} of {} files that are",
                              count - archive.files.size(), count)});
  Catalog catalog = TRY(open_files(std::move(archive), options.limits, 0));
  catalog.format = formats::gguf.name;
  return catalog;
}

bool is_split_gguf(const fs::path& path, const Bytes& file) {
  return shards_of_model(path.stem().string()).value_or(0) > 1 && formats::gguf.recognises(file);
}

Result<Catalog> open_file(const std::string& path, const OpenOptions& options) {
  const Bytes file = TRY(map_file(path));
  if (options.format.empty() && is_split_gguf(path, file)) return open_split(path, options);
  TRY(check_size(file.size(), options.limits));
  if (const Result<const Format*> format = detect(file); options.format.empty() && !format.ok())
    return Error("{}; the formats are: {}", format.error().message(), format_names());
  const fs::path folder = fs::path(path).parent_path();
  const Input input{path, ByteSource(file), options.limits, 0, siblings_in(folder)};
  return open_input(input, options.format);
}

Result<Catalog> open_folder(const std::string& path, const OpenOptions& options) {
  if (!options.format.empty()) return Error("a folder: '--format' is for a single file");
  Archive archive = TRY(walk_folder(path, options.limits));
  Catalog catalog = TRY(open_files(std::move(archive), options.limits, 0));
  catalog.format = "folder";
  return catalog;
}

// The user named an index: only the shards it speaks of, not all of its folder.
Result<Catalog> open_index(const std::string& path, const OpenOptions& options) {
  const Bytes file = TRY(map_file(path));
  const std::string name = fs::path(path).filename().string();
  const ShardIndex index = TRY(ShardIndex::parse(name, as_text(file.view)));
  const fs::path folder = fs::path(path).parent_path();
  Archive archive = TRY(walk_folder(folder.empty() ? "." : folder.string(), options.limits));
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

// Mapped when somebody looks into it. Links to files are followed, for a folder the user named is
// the user's own (model caches are made of links); links to folders are not, for they can go round.
Result<Archive> walk_folder(const std::string& folder, const Limits& limits) {
  Archive archive;
  uint64_t bytes = 0;
  std::error_code fault;
  fs::recursive_directory_iterator entries(folder, fault);
  for (; !fault && entries != fs::recursive_directory_iterator(); entries.increment(fault)) {
    std::error_code ignored;
    const uint64_t size = entries->is_regular_file(ignored) ? entries->file_size(ignored) : 0;
    if (!entries->is_regular_file(ignored)) continue;
    const std::string path = entries->path().string();
    archive.files.push_back({entries->path().lexically_relative(folder).generic_string(),
                             ByteSource(size, [path] { return map_file(path); })});
    bytes += size;
    if (archive.files.size() > limits.members_max)
      return limit_hit("members", fmt::format("more than {} files", limits.members_max));
  }
  if (fault) return Error("cannot list the folder: {}", fault.message());
  TRY(check_size(bytes, limits));
  std::ranges::sort(archive.files, {}, &ArchiveFile::path);
  return archive;
}

Result<Catalog> open_input(const Input& input, std::string_view name) {
  const Bytes file = TRY(input.source.open());
  const Format* format = TRY(name.empty() ? detect(file) : format_named(name));
  Catalog catalog = TRY(format->open(input));
  if (catalog.format.empty()) catalog.format = format->name;
  if (name.empty() && is_also_zip(file))
    catalog.problems.push_back(
        {"", fmt::format("ambiguous: it starts as {} and ends as zip; read as {}", format->name,
                         format->name)});
  if (!file.intact()) return Error("the file was cut short while it was read");
  return catalog;
}

Result<Catalog> open_model(const std::string& path, const OpenOptions& options) {
  if (path == "-") return Error("reading from standard input is not supported");
  std::error_code fault;
  const fs::file_status status = fs::status(path, fault);
  if (!fs::exists(status)) return Error("{}: no such file or folder", printable(path));
  Result<Catalog> catalog = fs::is_directory(status) ? open_folder(path, options)
                            : is_shard_index(path)   ? open_index(path, options)
                                                     : open_file(path, options);
  if (!catalog.ok()) return std::move(catalog).error().in(printable(path));
  catalog.value().path = path;
  read_places(catalog.value());
  if (const std::optional<std::string> config = companion(path, "config.json"))
    if (Result<Bytes> bytes = map_file(*config); bytes.ok())
      add_config(ByteSource(std::move(bytes).value()), options.limits, catalog.value());
  return catalog;
}

}  // namespace tensordiff
