// Reads the options of a command, shows its help, and runs it. The only file that knows CLI11.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "base/parallel.h"
#include "base/suggest.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/config.h"
#include "cli/remote_options.h"
#include "cli/terminal.h"
#include "cli/values.h"
#include "formats/limits.h"
#include "remote/policy.h"
#include "report/text_chart.h"

namespace tensordiff {
namespace {

Result<void> apply_format(Settings& settings, std::string_view name) {
  std::vector<std::string_view> names;
  for (const Format* format : formats::kAll) names.push_back(format->name);
  settings.open.format = names[TRY(parse_word(name, names))];
  return {};
}

Result<void> apply_color(Settings& settings, std::string_view choice) {
  constexpr std::string_view kChoices[] = {"auto", "always", "never"};
  settings.color = static_cast<ColorChoice>(TRY(parse_word(choice, kChoices)));
  return {};
}

constexpr Option kCommon[] = {
    {"--format", "NAME", "format of the input (default: detect it)", apply_format},
    {"--limit-size", "BYTES", "refuse larger inputs, e.g. 500MB, 2GiB (default: no limit)",
     [](Settings& settings, std::string_view text) -> Result<void> {
       settings.open.limits.input_bytes_max = TRY(parse_size(text));
       return {};
     }},
    {"--limit", "NAME=N", "set a reader limit, e.g. pickle=1GiB; see docs/formats.md",
     [](Settings& settings, std::string_view text) -> Result<void> {
       const std::size_t equals = text.find('=');
       if (equals == std::string_view::npos) return Error("not of the form NAME=N");
       const uint64_t value = TRY(parse_size(text.substr(equals + 1)));
       return set_limit(settings.open.limits, text.substr(0, equals), value);
     }},
    {"--out", "FILE", "write the result to a file (default: stdout)",
     [](Settings& settings, std::string_view file) -> Result<void> {
       settings.out = file;
       return {};
     }},
    {"--color", "WHEN", "auto (default), always or never; NO_COLOR is honoured", apply_color},
    {"--threads", "N", "number of threads (default: one per core)",
     [](Settings& settings, std::string_view text) -> Result<void> {
       settings.threads = TRY(parse_count(text));
       return {};
     }},
    {"--no-config", "", "ignore config files; see tensordiff config",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.config = false;
       return {};
     }},
    {"-q,--quiet", "", "print nothing; only set the exit status",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.quiet = true;
       return {};
     }},
    {"-h,--help", "", "show this help", nullptr},
    {"--help-all", "", "show every option", nullptr},
};

std::vector<const OptionGroup*> all_groups(const Command& command) {
  std::vector<const OptionGroup*> groups(command.groups.begin(), command.groups.end());
  groups.push_back(&option_groups::remote);
  groups.push_back(&option_groups::common);
  return groups;
}

std::string_view long_name(const Option& option) {
  return option.flags.substr(option.flags.find("--") + 2);
}

constexpr std::size_t kHelpColumn = 30;  // What an option does stands from here on.
constexpr std::size_t kHelpWidth = 80;   // Of a terminal that nobody made wider.

std::string help_line(const Option& option) {
  // Long options stand below each other, also where a short one is missing.
  std::string flags(option.flags.starts_with("--") ? "    " : "");
  flags += option.flags;
  if (const std::size_t comma = flags.find(','); comma != std::string::npos)
    flags.insert(comma + 1, " ");
  if (!option.argument.empty()) flags += fmt::format(" {}", option.argument);
  const std::string indent(kHelpColumn, ' ');
  const std::string gap = flags.size() + 2 < kHelpColumn ? "" : "\n" + indent;
  return fmt::format("  {:<{}}{}{}\n", flags, kHelpColumn - 2, gap,
                     wrapped(option.help, kHelpWidth, indent, kHelpColumn));
}

std::string help_text(const Command& command, bool all) {
  std::string out = fmt::format("usage: {}\n\n{}\n", command.usage, command.summary);
  std::size_t hidden = 0;
  for (const OptionGroup* group : all_groups(command)) {
    std::string lines;
    for (const Option& option : group->options) {
      const bool usual = command.usual.empty() ||
                         std::ranges::find(command.usual, long_name(option)) != command.usual.end();
      if (all || usual)
        lines += help_line(option);
      else
        ++hidden;
    }
    if (!lines.empty()) out += fmt::format("\n{}:\n{}", group->title, lines);
  }
  if (hidden > 0)
    out += fmt::format("{} more options, analyses included: tensordiff {} --help-all\n", hidden,
                       command.name);
  return out;
}

struct ParsedLine {
  Settings settings;
  std::vector<std::string> inputs;
  bool help = false;
  bool help_all = false;
};

// Options take effect in the order in which they were given, so that the last one wins.
Result<void> apply_in_order(const CLI::App& app, const std::map<const CLI::Option*, Option>& rows,
                            ParsedLine& line) {
  std::map<const CLI::Option*, std::size_t> seen;
  for (const CLI::Option* given : app.parse_order()) {
    const auto found = rows.find(given);
    if (found == rows.end()) continue;
    const Option& row = found->second;
    const std::size_t occurrence = seen[given]++;
    if (!row.apply) {
      line.help = true;
      line.help_all |= row.flags == "--help-all";
      continue;
    }
    const std::string_view name = row.flags.substr(row.flags.find("--"));
    const std::string argument(row.argument.empty() ? name : given->results()[occurrence]);
    TRY(row.apply(line.settings, argument).in(name));
    line.settings.given.push_back(
        {std::string(name.substr(2)), row.argument.empty() ? "" : argument});
  }
  return {};
}

// Names the option that was meant. `otherwise`: what is wrong where all options are known.
Error unknown_option(const Command& command, const std::vector<std::string>& arguments,
                     std::string_view otherwise) {
  const std::vector<std::string_view> names = option_names(command);
  for (const std::string& argument : arguments) {
    if (!argument.starts_with("--")) continue;
    const std::string_view name = std::string_view(argument).substr(2, argument.find('=') - 2);
    if (name.empty() || std::ranges::find(names, name) != names.end()) continue;
    const std::string_view meant = nearest_word(name, names);
    return Error("unknown option '--{}'{}", printable(name),
                 meant.empty() ? "" : fmt::format("; did you mean '--{}'?", meant));
  }
  return Error("{}", otherwise);
}

// Files first, so that the command line has the last word.
Result<void> read_config(const Command& command, Settings& settings) {
  if (command.groups.empty()) return {};
  const Config config = TRY(load_config());
  TRY(apply_config(config.entries, command, settings));
  // tensordiff config shows all of it anyway.
  if (&command != &commands::config) say(in_force_text(config, command));
  return {};
}

Result<ParsedLine> parse(const Command& command, const std::vector<std::string>& arguments) {
  ParsedLine line;
  // Telling CLI11 of all options takes as long as comparing two small files does.
  if (std::ranges::none_of(arguments, [](const auto& word) { return word.starts_with('-'); })) {
    line.inputs = arguments;
    TRY(read_config(command, line.settings));
    return line;
  }
  CLI::App app;
  app.set_help_flag();
  app.add_option("inputs", line.inputs);
  std::map<const CLI::Option*, Option> rows;
  for (const OptionGroup* group : all_groups(command)) {
    for (const Option& row : group->options) {
      const std::string flags(row.flags);
      CLI::Option* option = row.argument.empty() ? app.add_flag(flags) : app.add_option(flags);
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      if (!row.argument.empty()) option->expected(1)->allow_extra_args(false);
      rows.emplace(option, row);
    }
  }
  try {
    // CLI11 takes the arguments from the back.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string_view what = error.what();
    return Error("{} needs a value", what.substr(0, what.find(':')));
  } catch (const CLI::ParseError& error) {
    return unknown_option(command, arguments, error.what());
  }
  if (app.count("--no-config") + app.count("--help") + app.count("--help-all") == 0)
    TRY(read_config(command, line.settings));
  TRY(apply_in_order(app, rows, line));
  return line;
}

}  // namespace

constinit const OptionGroup option_groups::common = {.title = "options of every command",
                                                     .options = kCommon};

const Option* find_option(const Command& command, std::string_view name) {
  for (const OptionGroup* group : all_groups(command))
    for (const Option& option : group->options)
      if (long_name(option) == name) return &option;
  return nullptr;
}

std::vector<std::string_view> option_names(const Command& command) {
  std::vector<std::string_view> names;
  for (const OptionGroup* group : all_groups(command))
    for (const Option& option : group->options) names.push_back(long_name(option));
  return names;
}

int fail(const Error& error) {
  say(fmt::format("tensordiff: {}\n", printable(error.message(), 4000)));
  return kTrouble;
}

int run_command(const Command& command, const std::vector<std::string>& arguments) {
  const Result<ParsedLine> line = parse(command, arguments);
  if (!line.ok()) {
    fail(line.error());
    say(fmt::format("try: tensordiff {} --help\n", command.name));
    return kTrouble;
  }
  if (line.value().help) {
    const Result<void> written = deliver(help_text(command, line.value().help_all), {});
    return written.ok() ? kSame : fail(written.error());
  }
  set_threads(line.value().settings.threads);
  // A server opens what its clients name: there it takes --remote.
  if (&command != &commands::serve && &command != &commands::demo) remote::enable();
  return command.run(line.value().settings, line.value().inputs);
}

}  // namespace tensordiff
