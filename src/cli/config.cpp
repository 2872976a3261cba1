#include "cli/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/byte_source.h"
#include "base/text.h"

namespace tensordiff {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolderFile = ".tensordiff.yaml";
// What writes files, lifts a limit, or makes no sense in one.
constexpr std::string_view kCommandLineOnly[] = {"out",        "save-pairs", "limit",
                                                 "limit-size", "help",       "no-config"};
// What options call an argument that is a file.
constexpr std::string_view kFileArguments[] = {"FILE", "RUN", "MODEL", "FOLDER"};

template <class Range>
bool contains(const Range& range, std::string_view word) {
  return std::ranges::find(range, word) != std::end(range);
}

std::string user_file() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  std::string folder = variable("XDG_CONFIG_HOME");
  if (folder.empty() && !variable("HOME").empty()) folder = variable("HOME") + "/.config";
  return folder.empty() ? "" : folder + "/tensordiff/config.yaml";
}

// The nearest one, from the working folder up; where there is none, the working folder's own.
std::string folder_file() {
  std::error_code ignored;
  const fs::path here = fs::current_path(ignored);
  for (fs::path folder = here;; folder = folder.parent_path()) {
    if (fs::is_regular_file(folder / kFolderFile, ignored)) return (folder / kFolderFile).string();
    if (folder == folder.parent_path()) break;
  }
  return (here / kFolderFile).string();
}

Result<bool> flag_in(const Yaml& node) {
  const std::string word = lower(node.text);
  if (word == "true" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "no" || word == "off") return false;
  return node.wrong("true or false is expected here");
}

std::string beside(const std::string& file, const std::string& path) {
  const fs::path whole = fs::path(path);
  return whole.is_absolute() ? path : (fs::path(file).parent_path() / whole).string();
}

Result<ConfigEntry> entry_in(const Yaml::Member& member, const Option& option,
                             const std::string& file) {
  ConfigEntry entry{member.key, {}, false, file, member.line};
  const Yaml& node = member.value;
  if (option.argument.empty()) {
    entry.off = !TRY(flag_in(node));
    return entry;
  }
  const bool list = node.is_list();
  if (!list && !node.is_text()) return node.wrong("a value is expected here");
  for (const Yaml& item : list ? node.items : std::vector<Yaml>{node}) {
    if (!item.is_text()) return item.wrong("a value is expected here");
    // A folder may come from somebody else, who must not choose what is run.
    if (member.key == "match" && item.text.find("exec:") != std::string::npos)
      return item.wrong("a program is named on the command line only");
    const bool is_file = contains(kFileArguments, option.argument);
    entry.values.push_back(is_file ? beside(file, item.text) : item.text);
  }
  if (option.argument == "LIST" && list)
    entry.values = {fmt::format("{}", fmt::join(entry.values, ","))};
  return entry;
}

Result<std::vector<ConfigEntry>> entries_of(const std::string& file) {
  const Bytes bytes = TRY(map_file(file));
  const Yaml yaml = TRY(Yaml::parse(as_text(bytes.view)));
  if (yaml.kind == Yaml::Kind::null) return std::vector<ConfigEntry>();
  return options_in(yaml, file);
}

}  // namespace

Result<std::vector<ConfigEntry>> options_in(const Yaml& map, const std::string& file,
                                            std::span<const std::string_view> others) {
  if (!map.is_map()) return map.wrong("keys and values are expected here");
  std::vector<ConfigEntry> entries;
  for (const Yaml::Member& member : map.members) {
    if (contains(others, member.key)) continue;
    const Option* option = find_option(commands::compare, member.key);
    Yaml here;
    here.line = member.line;
    if (!option) {
      const std::string known =
          others.empty() ? "" : fmt::format(" beside {}", fmt::join(others, ", "));
      return here.wrong(fmt::format("unknown key '{}'; keys are the options of compare{}",
                                    printable(member.key), known));
    }
    if (contains(kCommandLineOnly, member.key))
      return here.wrong(fmt::format("'{}' is for the command line only", member.key));
    entries.push_back(TRY(entry_in(member, *option, file)));
  }
  return entries;
}

Result<Config> load_config() {
  Config config;
  for (const std::string& file : {user_file(), folder_file()}) {
    if (file.empty()) continue;
    std::error_code error;
    // A pipe of that name would have us wait for ever.
    const bool found = fs::is_regular_file(file, error);
    config.files.push_back({file, found});
    if (!found) continue;
    for (ConfigEntry& entry : TRY(entries_of(file).in(printable(file))))
      config.entries.push_back(std::move(entry));
  }
  return config;
}

Result<void> apply_config(const std::vector<ConfigEntry>& entries, const Command& command,
                          Settings& settings) {
  for (const ConfigEntry& entry : entries) {
    const std::string key = entry.off ? "no-" + entry.key : entry.key;
    const Option* option = find_option(command, key);
    // Each command has forms of its own; those of compare are meant.
    if (!option || (key == "output" && &command != &commands::compare)) continue;
    const std::string where =
        fmt::format("{}: line {}: {}", printable(entry.file), entry.line, key);
    if (option->argument.empty()) TRY(option->apply(settings, "--" + key).in(where));
    for (const std::string& value : entry.values) TRY(option->apply(settings, value).in(where));
    settings.given.push_back({key, fmt::format("{}", fmt::join(entry.values, ", ")),
                              fmt::format("{}:{}", entry.file, entry.line)});
  }
  return {};
}

}  // namespace tensordiff
