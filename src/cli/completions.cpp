// tensordiff completions bash|zsh|fish: prints a completion script, made from the option rows.

#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "cli/remote_options.h"
#include "cli/terminal.h"
#include "cli/values.h"

namespace tensordiff {
namespace {

std::vector<const Option*> options_of(const Command& command) {
  std::vector<const Option*> options;
  const auto collect = [&](const OptionGroup& group) {
    for (const Option& option : group.options) options.push_back(&option);
  };
  for (const OptionGroup* group : command.groups) collect(*group);
  collect(option_groups::remote);
  collect(option_groups::common);
  return options;
}

// Every flag of a command, each one alone: "-o", "--output".
std::vector<std::string_view> flags_of(const Command& command) {
  std::vector<std::string_view> flags;
  for (const Option* option : options_of(command))
    for (const std::string_view flag : split(option->flags, ',')) flags.push_back(flag);
  return flags;
}

std::string command_names() {
  std::string names;
  for (const Command* command : commands::kAll)
    names += fmt::format("{}{}", names.empty() ? "" : " ", command->name);
  return names;
}

// The words that an option takes, "auto always never"; empty where it takes anything. The option
// itself lists them when it gets a word that is none of them, so there is no second list to keep.
std::string words_of(const Option& option) {
  if (option.argument.empty() || !option.apply) return "";
  Settings scratch;
  const Result<void> refused = option.apply(scratch, "?");
  constexpr std::string_view kBefore = "'?' is not one of ";
  const std::string message = refused.ok() ? "" : refused.error().message();
  if (!message.starts_with(kBefore)) return "";
  std::string words;
  for (const std::string_view word : split(std::string_view(message).substr(kBefore.size()), ','))
    words +=
        fmt::format("{}{}", words.empty() ? "" : " ", word.substr(word.find_first_not_of(' ')));
  return words;
}

// Words -> the flags that take them, "compare:-o|compare:--output": patterns of a shell's case.
std::map<std::string, std::string> flags_by_words() {
  std::map<std::string, std::string> found;
  for (const Command* command : commands::kAll)
    for (const Option* option : options_of(*command)) {
      const std::string words = words_of(*option);
      if (words.empty()) continue;
      std::string& flags = found[words];
      for (const std::string_view flag : split(option->flags, ','))
        flags += fmt::format("{}{}:{}", flags.empty() ? "" : "|", command->name, flag);
    }
  found["install uninstall"] = "git:git";
  found["trust untrust"] = "config:config";
  found["bash zsh fish"] = "completions:completions";
  return found;
}

// What bash and zsh share: `flags` and `values`, from the command and the word before.
std::string cases() {
  std::string out = "  case \"$command\" in\n";
  for (const Command* command : commands::kAll)
    out +=
        fmt::format("    {}) flags=\"{}\" ;;\n", command->name, fmt::join(flags_of(*command), " "));
  out += "  esac\n  case \"$command:$before\" in\n";
  for (const auto& [words, flags] : flags_by_words())
    out += fmt::format("    {}) values=\"{}\" ;;\n", flags, words);
  return out + "  esac\n";
}

std::string bash_script() {
  return fmt::format(
      "_tensordiff() {{\n"
      "  local word=\"${{COMP_WORDS[COMP_CWORD]}}\" before=\"${{COMP_WORDS[COMP_CWORD - 1]}}\"\n"
      "  local commands=\"{}\" command=compare flags=\"\" values=\"\"\n"
      "  if [[ \" $commands \" == *\" ${{COMP_WORDS[1]}} \"* ]]; then "
      "command=\"${{COMP_WORDS[1]}}\"; fi\n"
      "{}"
      "  if [[ -n $values ]]; then COMPREPLY=($(compgen -W \"$values\" -- \"$word\"))\n"
      "  elif [[ $word == -* ]]; then COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n"
      "  elif ((COMP_CWORD == 1)); then COMPREPLY=($(compgen -W \"$commands\" -f -- \"$word\"))\n"
      "  else COMPREPLY=($(compgen -f -- \"$word\"))\n"
      "  fi\n"
      "}}\n"
      "complete -o filenames -F _tensordiff tensordiff\n",
      command_names(), cases());
}

// Works both as a file of $fpath and where it is sourced.
std::string zsh_script() {
  return fmt::format(
      "#compdef tensordiff\n"
      "_tensordiff() {{\n"
      "  local before=\"${{words[CURRENT-1]}}\" commands=\"{}\" command=compare flags=\"\" "
      "values=\"\"\n"
      "  if [[ \" $commands \" == *\" ${{words[2]}} \"* ]]; then command=\"${{words[2]}}\"; fi\n"
      "{}"
      "  if [[ -n $values ]]; then compadd -- ${{=values}}\n"
      "  elif [[ $PREFIX == -* ]]; then compadd -- ${{=flags}}\n"
      "  else\n"
      "    if ((CURRENT == 2)); then compadd -- ${{=commands}}; fi\n"
      "    _files\n"
      "  fi\n"
      "}}\n"
      "if [[ $funcstack[1] == _tensordiff ]]; then _tensordiff \"$@\"; "
      "else compdef _tensordiff tensordiff; fi\n",
      command_names(), cases());
}

std::string fish_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_option(std::string_view condition, const Option& option) {
  std::string out = fmt::format("complete -c tensordiff -n {}", fish_quoted(condition));
  for (const std::string_view flag : split(option.flags, ','))
    out += flag.starts_with("--") ? fmt::format(" -l {}", flag.substr(2))
                                  : fmt::format(" -s {}", flag.substr(1));
  if (!option.argument.empty()) out += " -r";
  if (const std::string words = words_of(option); !words.empty())
    out += fmt::format(" -fa {}", fish_quoted(words));
  return out + fmt::format(" -d {}\n", fish_quoted(option.help));
}

std::string fish_script() {
  std::string out;
  for (const Command* command : commands::kAll)
    out += fmt::format("complete -c tensordiff -n __fish_use_subcommand -a {} -d {}\n",
                       command->name, fish_quoted(command->summary));
  for (const Command* command : commands::kAll)
    for (const Option* option : options_of(*command))
      out += fish_option(fmt::format("__fish_seen_subcommand_from {}", command->name), *option);
  // Without a command, the options are those of compare.
  const std::string none = fmt::format("not __fish_seen_subcommand_from {}", command_names());
  for (const Option* option : options_of(commands::compare)) out += fish_option(none, *option);
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"git", "install uninstall"}, {"config", "trust untrust"}, {"completions", "bash zsh fish"}};
  for (const auto& [command, words] : kWords)
    out += fmt::format("complete -c tensordiff -n '__fish_seen_subcommand_from {}' -fa '{}'\n",
                       command, words);
  return out;
}

int run(const Settings& settings, const std::vector<std::string>& inputs) {
  constexpr std::string_view kShells[] = {"bash", "zsh", "fish"};
  constexpr std::string (*kScripts[])() = {bash_script, zsh_script, fish_script};
  if (inputs.size() != 1) return fail(Error("completions needs a shell: bash, zsh or fish"));
  const Result<std::size_t> shell = parse_word(inputs[0], kShells);
  if (!shell.ok()) return fail(shell.error());
  const Result<void> written = deliver(kScripts[shell.value()](), settings);
  return written.ok() ? kSame : fail(written.error());
}

}  // namespace

constinit const Command commands::completions = {
    .name = "completions",
    .usage = "tensordiff completions bash|zsh|fish",
    .summary = "print a completion script for a shell",
    .groups = {},
    .run = run,
};

}  // namespace tensordiff
