// Settings that stand in files: .tensordiff.yaml in the working folder or one above it, and
// tensordiff/config.yaml in the user's own config folder.
//
// A key is the long name of an option without its dashes. The user's own file is applied first,
// then the folder's, then the command line: the last one wins. An unknown key is an error, and so
// is one that would write a file or run a program, since a folder may come from somebody else. What
// could weaken a verdict is ignored in a folder's file until the user trusts it (cli/trust.h).

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/yaml.h"
#include "cli/command.h"

namespace tensordiff {

struct ConfigEntry {
  std::string key;                  // "atol"
  std::vector<std::string> values;  // As on the command line; none for a switch.
  bool off = false;                 // A switch set to false.
  std::string file;
  std::size_t line = 0;
  bool ignored = false;  // Since nobody trusts the file.
};

struct Config {
  struct File {
    std::string path;
    bool found = false;
    bool trusted = false;  // The user's own always is.
  };
  std::vector<File> files;           // Where it was looked for, the user's own first.
  std::vector<ConfigEntry> entries;  // In the order in which they are applied.
};

Result<Config> load_config();

// Trusts the settings of a folder as they are now, or no longer. The file; empty `folder`: the
// nearest one from the working folder up.
Result<std::string> set_trust(const std::string& folder, bool trusted);

// One line for each file that sets something of the command: what is in force, what is ignored.
std::string in_force_text(const Config& config, const Command& command);

// The options in a map, checked against those of compare; keys in `others` are somebody else's.
// Files that they name lie relative to `file`, the one that the map stands in.
Result<std::vector<ConfigEntry>> options_in(const Yaml& map, const std::string& file,
                                            std::span<const std::string_view> others = {});

// Applies what the command knows of it; the rest is for other commands.
Result<void> apply_config(const std::vector<ConfigEntry>& entries, const Command& command,
                          Settings& settings);

}  // namespace tensordiff
