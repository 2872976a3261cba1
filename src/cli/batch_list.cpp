#include "cli/batch_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/remote_files.h"
#include "base/text.h"
#include "formats/detect.h"

namespace tensordiff {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kListKeys[] = {"options", "runs"};
constexpr std::string_view kRunKeys[] = {"name", "a", "b"};

std::string text_at(const Yaml& map, std::string_view key) {
  const Yaml* node = map.find(key);
  return node ? node->text : "";
}

std::string beside(const std::string& file, const std::string& path) {
  return path.empty() || is_remote(path) || fs::path(path).is_absolute()
             ? path
             : (fs::path(file).parent_path() / path).string();
}

Result<BatchRun> run_in(const Yaml& node, const std::string& file,
                        const std::vector<ConfigEntry>& common) {
  BatchRun run;
  run.options = common;
  for (ConfigEntry& entry : TRY(options_in(node, file, kRunKeys)))
    run.options.push_back(std::move(entry));
  run.a = beside(file, text_at(node, "a"));
  run.b = beside(file, text_at(node, "b"));
  run.name = text_at(node, "name");
  if (run.a.empty() || run.b.empty()) return node.wrong("a run needs both 'a' and 'b'");
  if (run.name.empty()) run.name = text_at(node, "b");
  return run;
}

// Whether a file has tensors, by its content. What is called like a format and is none stays: a
// model that was cut off must be told. Text is called like anything.
bool is_tensor_file(const fs::path& path) {
  constexpr std::string_view kText[] = {".json", ".jsonl", ".txt", ".log"};
  const Result<Bytes> bytes = map_file(path.string());
  if (!bytes.ok() || detect(bytes.value()).ok()) return true;
  const std::string extension = lower(path.extension().string());
  if (extension.empty() || std::ranges::find(kText, extension) != std::end(kText)) return false;
  return std::ranges::any_of(formats::kAll, [&](const Format* format) {
    const std::vector<std::string_view> known = split(format->extensions, ' ');
    return std::ranges::find(known, extension) != known.end();
  });
}

// Whether there is something to compare: a tensor file, or a folder with one in it or below.
bool has_tensors(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return is_tensor_file(path);
  for (fs::recursive_directory_iterator each(path, error), end; !error && each != end;
       each.increment(error))
    if (each->is_regular_file(error) && is_tensor_file(each->path())) return true;
  return static_cast<bool>(error);  // What cannot be looked into is told when it is compared.
}

// Name -> path of each entry that is not hidden and has tensors.
Result<std::map<std::string, std::string>> entries_of(const std::string& folder) {
  std::error_code error;
  std::map<std::string, std::string> entries;
  for (fs::directory_iterator each(folder, error), end; !error && each != end;
       each.increment(error)) {
    const std::string name = each->path().filename().string();
    if (!name.starts_with('.') && has_tensors(each->path())) entries[name] = each->path().string();
  }
  if (error) return Error("{}: {}", printable(folder), error.message());
  return entries;
}

std::string stem_of(const std::string& name) { return fs::path(name).stem().string(); }

// Pairs what is left by its stem, where only one on each side has it.
void pair_by_stem(std::map<std::string, std::string>& a, std::map<std::string, std::string>& b,
                  std::vector<BatchRun>& runs) {
  std::map<std::string, std::vector<std::string>> stems_a, stems_b;
  for (const auto& [name, path] : a) stems_a[stem_of(name)].push_back(name);
  for (const auto& [name, path] : b) stems_b[stem_of(name)].push_back(name);
  for (const auto& [stem, names] : stems_a) {
    const auto found = stems_b.find(stem);
    if (found == stems_b.end() || names.size() != 1 || found->second.size() != 1) continue;
    runs.push_back({stem, a[names[0]], b[found->second[0]], {}});
    a.erase(names[0]);
    b.erase(found->second[0]);
  }
}

}  // namespace

Result<std::vector<BatchRun>> parse_batch(std::string_view text, const std::string& file) {
  const Yaml list = TRY(Yaml::parse(text));
  TRY(list.only(kListKeys));
  std::vector<ConfigEntry> common;
  if (const Yaml* options = list.find("options")) common = TRY(options_in(*options, file));
  const Yaml* runs = list.find("runs");
  if (!runs || !runs->is_list()) return list.wrong("'runs' has to be a list");
  std::vector<BatchRun> all;
  std::set<std::string> names;
  for (const Yaml& node : runs->items) {
    all.push_back(TRY(run_in(node, file, common)));
    if (!names.insert(all.back().name).second)
      return node.wrong(fmt::format("a second run is called '{}'", printable(all.back().name)));
  }
  return all;
}

Result<std::vector<BatchRun>> match_folders(const std::string& a, const std::string& b) {
  std::map<std::string, std::string> left = TRY(entries_of(a));
  std::map<std::string, std::string> right = TRY(entries_of(b));
  std::vector<BatchRun> runs;
  for (auto each = left.begin(); each != left.end();) {
    const auto found = right.find(each->first);
    if (found == right.end()) {
      ++each;
      continue;
    }
    runs.push_back({each->first, each->second, found->second, {}});
    right.erase(found);
    each = left.erase(each);
  }
  pair_by_stem(left, right, runs);
  for (const auto& [name, path] : left) runs.push_back({name, path, "", {}});
  for (const auto& [name, path] : right) runs.push_back({name, "", path, {}});
  std::ranges::stable_sort(runs, {}, &BatchRun::name);
  return runs;
}

}  // namespace tensordiff
