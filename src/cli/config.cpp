#include "cli/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/byte_source.h"
#include "base/suggest.h"
#include "base/text.h"
#include "cli/trust.h"

namespace tensordiff {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolderFile = ".tensordiff.yaml";
// What writes files, lifts a limit, or makes no sense in one.
constexpr std::string_view kCommandLineOnly[] = {"out",  "save-pairs", "limit", "limit-size",
                                                 "help", "no-config",  "part"};
// What options call an argument that is a file.
constexpr std::string_view kFileArguments[] = {"FILE", "RUN", "MODEL", "FOLDER"};

// What a folder may set without being trusted: how the result looks and how it is computed. All
// else could turn a difference into agreement, or hide it.
constexpr std::string_view kHarmless[] = {"color",
                                          "threads",
                                          "output",
                                          "sort",
                                          "sort-by-change-magnitude",
                                          "verbose",
                                          "brief",
                                          "stats",
                                          "top",
                                          "stream",
                                          "memory-limit",
                                          "include-charts",
                                          "explain",
                                          "review-friendly",
                                          "markdown-output",
                                          "generate-report"};

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

struct SettingsFile {
  Bytes bytes;
  std::vector<ConfigEntry> entries;

  // With the files that it names. Of a model or a run the name has to do.
  TrustedFile to_trust(const std::string& path) const {
    TrustedFile file{path, as_text(bytes.view), {}};
    for (const ConfigEntry& entry : entries) {
      const Option* option = find_option(commands::compare, entry.key);
      if (option && option->argument == "FILE")
        file.named.insert(file.named.end(), entry.values.begin(), entry.values.end());
    }
    return file;
  }
};

Result<SettingsFile> read_settings(const std::string& path) {
  SettingsFile file{TRY(map_file(path)), {}};
  const Yaml yaml = TRY(Yaml::parse(as_text(file.bytes.view)));
  if (yaml.kind != Yaml::Kind::null) file.entries = TRY(options_in(yaml, path));
  return file;
}

std::string value_text(const ConfigEntry& entry) {
  if (entry.values.empty()) return entry.off ? entry.key + "=false" : entry.key;
  return fmt::format("{}={}", entry.key, fmt::join(entry.values, ","));
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
      std::vector<std::string_view> names = option_names(commands::compare);
      names.insert(names.end(), others.begin(), others.end());
      const std::string_view meant = nearest_word(member.key, names);
      return here.wrong(fmt::format(
          "unknown key '{}'; keys are the options of compare{}{}", printable(member.key), known,
          meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant)));
    }
    if (contains(kCommandLineOnly, member.key))
      return here.wrong(fmt::format("'{}' is for the command line only", member.key));
    entries.push_back(TRY(entry_in(member, *option, file)));
  }
  return entries;
}

Result<Config> load_config() {
  Config config;
  const std::string own = user_file();
  for (const std::string& file : {own, folder_file()}) {
    if (file.empty()) continue;
    std::error_code error;
    // A pipe of that name would have us wait for ever.
    const bool found = fs::is_regular_file(file, error);
    config.files.push_back({file, found, file == own});
    if (!found) continue;
    SettingsFile settings = TRY(read_settings(file).in(printable(file)));
    bool& trusted = config.files.back().trusted;
    trusted = trusted || is_trusted(settings.to_trust(file));
    for (ConfigEntry& entry : settings.entries) {
      entry.ignored = !trusted && !contains(kHarmless, entry.key);
      config.entries.push_back(std::move(entry));
    }
  }
  return config;
}

Result<std::string> set_trust(const std::string& folder, bool trusted) {
  const std::string file =
      folder.empty() ? folder_file() : (fs::path(folder) / kFolderFile).string();
  if (!trusted) {
    TRY(distrust(file));
    return file;
  }
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return Error("{}: no such file", printable(file));
  const SettingsFile settings = TRY(read_settings(file).in(printable(file)));
  TRY(trust(settings.to_trust(file)));
  return file;
}

std::string in_force_text(const Config& config, const Command& command) {
  std::string out;
  for (const Config::File& file : config.files) {
    std::string in_force, ignored;
    for (const ConfigEntry& entry : config.entries) {
      const std::string key = entry.off ? "no-" + entry.key : entry.key;
      if (entry.file != file.path || !find_option(command, key)) continue;
      std::string& list = entry.ignored ? ignored : in_force;
      list += fmt::format("{}{}", list.empty() ? "" : ", ", printable(value_text(entry)));
    }
    if (in_force.empty() && ignored.empty()) continue;
    out += fmt::format("tensordiff: settings of {}: {}{}{}\n", printable(file.path, 1000),
                       in_force.empty() ? "none in effect" : in_force + " in effect",
                       ignored.empty() ? ""
                                       : "; ignored, since the file is not trusted "
                                         "(tensordiff config trust): ",
                       ignored);
  }
  return out;
}

Result<void> apply_config(const std::vector<ConfigEntry>& entries, const Command& command,
                          Settings& settings) {
  for (const ConfigEntry& entry : entries) {
    if (entry.ignored) continue;
    const std::string key = entry.off ? "no-" + entry.key : entry.key;
    const Option* option = find_option(command, key);
    // Each command has forms of its own; those of compare are meant.
    if (!option || (key == "output" && &command != &commands::compare)) continue;
    const std::string where =
        fmt::format("{}: line {}: {}", printable(entry.file), entry.line, key);
    if (option->argument.empty()) TRY(option->apply(settings, "--" + key).in(where));
    for (const std::string& value : entry.values) TRY(option->apply(settings, value).in(where));
    const std::string origin = fmt::format("{}:{}", entry.file, entry.line);
    if (option->argument.empty()) settings.given.push_back({key, "", origin});
    for (const std::string& value : entry.values) settings.given.push_back({key, value, origin});
  }
  return {};
}

}  // namespace tensordiff
