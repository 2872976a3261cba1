#include "formats/archive.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/parallel.h"
#include "base/text.h"
#include "formats/detect.h"
#include "formats/folder.h"
#include "formats/inflate.h"
#include "formats/limits.h"
#include "formats/member_name.h"
#include "formats/shards.h"

namespace tensordiff {
namespace {

constexpr std::size_t kReasonsMax = 3;  // In the message of an archive that holds nothing readable.

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string_view extension_of(std::string_view path) {
  const std::string_view name = file_name(path);
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos || dot == 0 ? std::string_view() : name.substr(dot);
}

// Left out without a word: what systems leave behind, and text that goes with models.
bool is_passed_over(std::string_view path) {
  constexpr std::string_view kText[] = {".json", ".txt", ".md",  ".yaml", ".yml",  ".toml",
                                        ".csv",  ".log", ".cfg", ".ini",  ".html", ".py"};
  for (const std::string_view component : split(path, '/'))
    if (component.starts_with('.') || component == "__MACOSX") return true;
  const std::string extension = lower(extension_of(path));
  return std::ranges::find(kText, extension) != std::end(kText);
}

// Text that says in which order a dump was made.
bool is_document(std::string_view path) { return file_name(path) == "dump.json"; }

// Text that may stand for tensors: msprobe's statistics, and those of TransformerEngine.
bool may_be_statistics(std::string_view path) {
  return is_document(path) || file_name(path).find("_globalrank-") != std::string_view::npos;
}

// Called a text and none, but of a format: what somebody may want to pass by.
bool is_disguised(const ArchiveFile& file) {
  constexpr std::size_t kHead = 64;
  if (file_name(file.path).starts_with('.')) return false;
  const Result<Bytes> bytes = file.source.open();
  if (!bytes.ok()) return false;
  if (may_be_statistics(file.path)) return formats::statistics.recognises(bytes.value());
  const std::string_view head = as_text(bytes.value().view).substr(0, kHead);
  const bool text = std::ranges::none_of(head, [](char c) {
    return (c >= 0 && c < ' ' && c != '\n' && c != '\r' && c != '\t') || c == '\x80';
  });
  return !text && std::ranges::any_of(formats::kAll, [&](const Format* format) {
    return format->recognises(bytes.value());
  });
}

// Asked several times for each of many thousand files.
bool is_known_extension(std::string_view extension) {
  static const std::set<std::string_view> known = [] {
    std::set<std::string_view> all;
    for (const Format* format : formats::kAll)
      for (const std::string_view each : split(format->extensions, ' ')) all.insert(each);
    return all;
  }();
  return known.contains(extension) || known.contains(lower(extension));
}

// The paths of files turned into stems, all at once because they depend on each other.
class Stems {
 public:
  explicit Stems(const std::vector<Shard>& files) {
    for (const Shard& file : files) {
      const std::string_view extension = extension_of(file.path);
      if (!is_folder(file.path) && !is_known_extension(extension)) unknown_.insert(extension);
    }
    for (const Shard& file : files) ++uses_[without_extension(file.path)];
    if (!files.empty()) common_ = files[0].path.substr(0, files[0].path.rfind('/') + 1);
    for (const Shard& file : files)
      while (!file.path.starts_with(common_))
        common_.resize(common_.empty() ? 0 : common_.rfind('/', common_.size() - 2) + 1);
  }

  // Two files that differ only in their extension keep it.
  std::string of(std::string_view path) const {
    if (is_folder(path)) {
      const std::string below = below_common(path);
      return below.substr(0, below.size() - (below.empty() ? 0 : 1));
    }
    const std::string_view bare = without_extension(path);
    return below_common(uses_.at(bare) > 1 ? path : bare);
  }

  std::string below_common(std::string_view path) const {
    return std::string(path.starts_with(common_) ? path.substr(common_.size()) : path);
  }

 private:
  // A folder that is one model, with its last '/'.
  static bool is_folder(std::string_view path) { return path.empty() || path.ends_with('/'); }

  // An ending that is no format's is an extension only when all files share it: "fc.weight" and
  // "fc.bias" are two names.
  std::string_view without_extension(std::string_view path) const {
    for (const std::string_view packed : {".gz", ".zst", ".xz", ".bz2"})
      if (path.ends_with(packed)) path.remove_suffix(packed.size());
    const std::string_view extension = extension_of(path);
    if (is_known_extension(extension) || unknown_.size() == 1) path.remove_suffix(extension.size());
    return path;
  }

  std::set<std::string_view> unknown_;
  std::map<std::string_view, int> uses_;
  std::string common_;
};

// Tensors that lie in a member inflated to memory get it through the member's own source: inflated
// again when read, but not held until then, or an archive would be in memory whole.
void let_go(const Bytes& inflated, const ByteSource& member, Catalog& catalog) {
  if (inflated.size() > kInflateInMemoryMax) return;  // In a temporary file: no memory held.
  const std::less_equal<const std::byte*> before;
  for (Tensor& tensor : catalog.tensors) {
    for (Part& part : tensor.view.parts) {
      if (!part.source.ready()) continue;
      const Result<Bytes> bytes = part.source.open();
      if (!bytes.ok()) continue;
      const ByteView inside = bytes.value().view;
      if (!before(inflated.view.data(), inside.data()) ||
          !before(inside.data() + inside.size(), inflated.view.data() + inflated.size()))
        continue;
      const auto offset = static_cast<uint64_t>(inside.data() - inflated.view.data());
      part.source = member.slice(offset, inside.size());
    }
  }
}

// Opens the files of one archive and puts what they hold into one catalog.
class Collector {
 public:
  Collector(Archive archive, const Limits& limits, int depth)
      : files_(std::move(archive.files)), limits_(limits), depth_(depth) {
    catalog_.problems = std::move(archive.problems);
    for (const ArchiveFile& file : files_) by_path_->try_emplace(file.path, file.source);
  }

  Result<Catalog> collect() {
    open_folders();
    // All at once, since none needs another; what they hold is kept in the order of the files.
    std::vector<std::optional<Opened>> opened(files_.size());
    for_each_index(files_.size(), [&](std::size_t i) { opened[i] = open_file(files_[i]); });
    if (called_off()) return Error("cancelled");
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const ArchiveFile& file = files_[i];
      if (claimed_.contains(file.path)) continue;
      if (is_shard_index(file.path)) read_index(file);
      if (is_data_of_index(file.path)) continue;
      if (is_document(file.path)) catalog_.documents.push_back({file.path, file.source});
      if (opened[i]) keep(file.path, std::move(*opened[i]));
    }
    if (opened_.empty()) open_texts();
    if (opened_.empty()) return nothing_readable();
    look_for_missing_parts();
    for (const ShardIndex& index : indexes_) check_shards(index, shards_of(index), catalog_);
    merge();
    make_names_unique(catalog_);
    return std::move(catalog_);
  }

 private:
  // "p.data-00000-of-00001" is read by way of "p.index".
  bool is_data_of_index(std::string_view path) const {
    const std::size_t at = path.rfind(".data-");
    return at != std::string_view::npos && model_of_shard(path.substr(at)) &&
           by_path_->contains(std::string(path.substr(0, at)) + ".index");
  }

  void problem(std::string where, std::string message, Severity severity = Severity::unreadable) {
    catalog_.problems.push_back({std::move(where), std::move(message), severity});
  }

  void look_for_missing_parts() {
    std::vector<std::string> paths;
    std::set<std::string> indexed;
    for (const ArchiveFile& file : files_)
      if (!is_data_of_index(file.path)) paths.push_back(file.path);
    for (const ShardIndex& index : indexes_)
      indexed.insert(index.shards.begin(), index.shards.end());
    report_missing_parts(paths, indexed, catalog_.problems);
  }

  void read_index(const ArchiveFile& file) {
    if (file.source.size() > limits_.json_bytes_max)
      return problem(file.path, limit_hit("json", fmt::format("an index of more than {}",
                                                              human_bytes(limits_.json_bytes_max)))
                                    .message());
    const Result<Bytes> bytes = file.source.open();
    if (!bytes.ok()) return problem(file.path, bytes.error().message());
    Result<ShardIndex> index = ShardIndex::parse(file.path, as_text(bytes.value().view));
    if (!index.ok()) return problem(file.path, "index not used: " + index.error().message());
    indexes_.push_back(std::move(index).value());
  }

  // A file as far as it can be told by itself.
  struct Opened {
    Result<Catalog> catalog;
    Severity severity = Severity::unreadable;  // Where it could not be opened.
  };

  // Nothing where it is no part of the model. Many threads may open a file each.
  std::optional<Opened> open_file(const ArchiveFile& file) const {
    if (claimed_.contains(file.path) || is_data_of_index(file.path)) return std::nullopt;
    if (is_passed_over(file.path) && !is_disguised(file)) return std::nullopt;
    // Held while it is opened, so that it is unpacked once.
    const Result<Bytes> bytes = file.source.open();
    if (!bytes.ok()) return Opened{bytes.error()};
    const Limits limits = limits_inside(limits_, file.source.size(), file.packed);
    Opened opened{open_input({file.path, file.source, limits, depth_, sibling_of(file.path)})};
    if (opened.catalog.ok()) {
      if (!file.source.ready()) let_go(bytes.value(), file.source, opened.catalog.value());
    } else if (!is_known_extension(extension_of(file.path)) && !detect(bytes.value()).ok()) {
      // What no reader knows, under a name that promises nothing, is no part of the model.
      opened.severity = Severity::note;
    }
    return opened;
  }

  void keep(const std::string& path, Opened opened) {
    if (!opened.catalog.ok())
      return problem(path, opened.catalog.error().message(), opened.severity);
    keep(path, std::move(opened.catalog).value());
  }

  // Where nothing else is in it, texts may be all there is: statistics, printed values,
  // log-probabilities.
  void open_texts() {
    constexpr const Format* kTexts[] = {&formats::polygraphy, &formats::log_probs,
                                        &formats::eval_callback, &formats::statistics_table};
    for (const ArchiveFile& file : files_) {
      if (claimed_.contains(file.path) || file_name(file.path).starts_with('.')) continue;
      const Result<Bytes> bytes = file.source.open();
      if (!bytes.ok() || !is_passed_over(file.path)) continue;
      const auto* format = std::ranges::find_if(
          kTexts, [&](const Format* each) { return each->recognises(bytes.value()); });
      if (format == std::end(kTexts)) continue;
      const Limits limits = limits_inside(limits_, file.source.size(), file.packed);
      const Input input{file.path, file.source, limits, depth_, sibling_of(file.path)};
      keep(file.path, Opened{(*format)->open(input)});
    }
  }

  // The outermost first: an array of zarr may lie in a group, and is read with it.
  void open_folders() {
    std::vector<std::pair<const FolderFormat*, std::string>> heads;
    for (const ArchiveFile& file : files_)
      for (const FolderFormat* format : folders::kAll)
        if (format->starts(file_name(file.path))) heads.emplace_back(format, file.path);
    std::ranges::stable_sort(heads, {},
                             [](const auto& head) { return std::ranges::count(head.second, '/'); });
    for (const auto& [format, path] : heads) open_folder(*format, path);
  }

  // Opens the folder that holds a file. It is opened once, whatever file of it comes first.
  void open_folder(const FolderFormat& format, const std::string& head) {
    if (claimed_.contains(head)) return;
    Folder folder{head.substr(0, head.rfind('/') + 1), {}, limits_};
    for (auto file = by_path_->lower_bound(folder.path);
         file != by_path_->end() && file->first.starts_with(folder.path); ++file) {
      folder.files.emplace(file->first.substr(folder.path.size()), file->second);
      if (format.owns(folder.files.rbegin()->first)) claimed_.insert(file->first);
    }
    Result<Catalog> opened = format.open(folder);
    const std::string where = folder.path.empty() ? std::string(format.name) : folder.path;
    if (!opened.ok()) return problem(where, opened.error().message());
    keep(folder.path, std::move(opened).value());
  }

  void keep(const std::string& path, Catalog catalog) {
    for (const Problem& found : catalog.problems)
      problem(path.empty() || found.where.empty() ? path + found.where : path + ": " + found.where,
              found.message, found.severity);
    catalog.problems.clear();
    opened_.push_back({path, std::move(catalog)});
  }

  // Files beside a member are members: the file system is never asked.
  std::function<Result<ByteSource>(std::string_view)> sibling_of(const std::string& path) const {
    const std::string folder = path.substr(0, path.rfind('/') + 1);
    return [folder, files = by_path_](std::string_view name) -> Result<ByteSource> {
      const auto found = files->find(folder + std::string(name));
      if (found == files->end() || !member_name_fault(name).empty())
        return Error("no file '{}' beside it", printable(name));
      return found->second;
    };
  }

  std::vector<Shard*> shards_of(const ShardIndex& index) {
    std::vector<Shard*> shards;
    for (Shard& file : opened_)
      if (index.shards.contains(file.path)) shards.push_back(&file);
    return shards;
  }

  // The stem of the model that a file belongs to: its own, or that of all shards together.
  std::string model_stem(const Shard& file, const Stems& stems) const {
    for (const ShardIndex& index : indexes_)
      if (index.shards.contains(file.path)) return stems.below_common(index.model());
    const std::string stem = stems.of(file.path);
    return std::string(model_of_shard(stem).value_or(stem));
  }

  void merge() {
    for (Shard& file : opened_)  // The first of several may hold nothing else.
      if (file.catalog.tensors.empty())
        for (Metadata& entry : file.catalog.metadata) add_metadata(std::move(entry));
    std::erase_if(opened_, [](const Shard& file) { return file.catalog.tensors.empty(); });
    const Stems stems(opened_);
    std::set<std::string> models;
    for (const Shard& file : opened_) models.insert(model_stem(file, stems));
    for (Shard& file : opened_) {
      const std::string stem = stems.of(file.path);
      const bool as_it_is = models.size() == 1;
      for (Tensor& tensor : file.catalog.tensors) {
        if (tensor.name.empty())
          tensor.name = stem;
        else if (const std::string model = model_stem(file, stems); !as_it_is && !model.empty())
          tensor.name = model + "." + tensor.name;
        catalog_.tensors.push_back(std::move(tensor));
      }
      for (Metadata& entry : file.catalog.metadata) add_metadata(std::move(entry));
    }
    if (models.size() == 1) check_split(catalog_);
  }

  // Shards repeat what the first of them says of the model.
  void add_metadata(Metadata entry) {
    if (keys_.insert(entry.key).second) catalog_.metadata.push_back(std::move(entry));
  }

  Error nothing_readable() const {
    if (catalog_.problems.empty())
      return Error("no tensor files found ({} file{} checked)", files_.size(),
                   files_.size() == 1 ? "" : "s");
    std::string reasons;
    for (const Problem& found : catalog_.problems) {
      if (&found - catalog_.problems.data() == kReasonsMax) break;
      reasons += fmt::format("; '{}': {}", printable(found.where), found.message);
    }
    return Error("nothing in it could be read{}", reasons);
  }

  std::vector<ArchiveFile> files_;
  const Limits& limits_;
  int depth_;
  std::shared_ptr<std::map<std::string, ByteSource>> by_path_ =
      std::make_shared<std::map<std::string, ByteSource>>();
  std::set<std::string> claimed_;  // Files that were read as part of a folder.
  std::vector<ShardIndex> indexes_;
  std::vector<Shard> opened_;
  std::set<std::string> keys_;
  Catalog catalog_;
};

}  // namespace

Result<Catalog> open_files(Archive archive, const Limits& limits, int depth) {
  keep_latest(archive);
  return Collector(std::move(archive), limits, depth).collect();
}

Result<void> check_nesting(const Input& archive) {
  if (static_cast<uint64_t>(archive.depth) < archive.limits.nesting_max) return {};
  return limit_hit("nesting", fmt::format("an archive inside {} others", archive.depth));
}

}  // namespace tensordiff
