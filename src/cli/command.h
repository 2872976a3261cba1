// A command of the program, its options as rows, and the list of commands.
//
// To add one: write cli/<name>.cpp and add it to the list below. Help and completions are made from
// the rows.

#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/settings.h"

namespace tensordiff {

// Exit status, as diff(1): trouble wins over difference.
inline constexpr int kSame = 0;
inline constexpr int kDifferent = 1;
inline constexpr int kTrouble = 2;

struct Option {
  std::string_view flags;     // "-o,--output"
  std::string_view argument;  // What it takes, "FORMAT"; empty for a switch.
  std::string_view help;
  // Gets the argument; a switch gets its own long name, "--stats".
  Result<void> (*apply)(Settings& settings, std::string_view argument);
};

struct OptionGroup {
  std::string_view title;
  std::span<const Option> options;
};

struct Command {
  std::string_view name;
  std::string_view usage;
  std::string_view summary;
  std::span<const OptionGroup* const> groups;
  // Long names of the options that --help shows, without dashes; empty: all. --help-all shows all.
  std::span<const std::string_view> usual = {};
  // Gets settings that the options were applied to, and what was given beside them.
  int (*run)(const Settings& settings, const std::vector<std::string>& inputs);
};

namespace commands {

extern const Command compare;
extern const Command show;
extern const Command check;
extern const Command merge;
extern const Command digest;
extern const Command conversion;
extern const Command logits;
extern const Command runs;
extern const Command trend;
extern const Command batch;
extern const Command serve;
extern const Command demo;
extern const Command config;
extern const Command git;
extern const Command completions;

inline constexpr const Command* kAll[] = {&compare,    &merge,  &digest, &show,  &check,
                                          &conversion, &logits, &runs,   &trend, &batch,
                                          &serve,      &demo,   &config, &git,   &completions};

}  // namespace commands

// The options of compare, a file for each group: cli/options_<group>.cpp.
namespace option_groups {

extern const OptionGroup input;
extern const OptionGroup pairing;
extern const OptionGroup tolerance;
extern const OptionGroup what;
extern const OptionGroup diagnosis;
extern const OptionGroup analyses;
extern const OptionGroup output;
extern const OptionGroup speed;
extern const OptionGroup server;  // Of serve and demo.
extern const OptionGroup common;  // Every command takes these.

}  // namespace option_groups

// The option of this long name, "atol"; nullptr where the command has none.
const Option* find_option(const Command& command, std::string_view name);

// The long names of its options, "atol".
std::vector<std::string_view> option_names(const Command& command);

// Reads the options, then runs the command or shows its help. The exit status.
int run_command(const Command& command, const std::vector<std::string>& arguments);

// Says on stderr what went wrong. Returns kTrouble.
int fail(const Error& error);

}  // namespace tensordiff
