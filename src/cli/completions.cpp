// tensordiff completions bash|zsh|fish: prints a completion script, made from the option rows.

#include <fmt/format.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "cli/values.h"

namespace tensordiff {
namespace {

// Every flag of a command, each one alone: "-o", "--output".
std::vector<std::string_view> flags_of(const Command& command) {
  std::vector<std::string_view> flags;
  const auto collect = [&](const OptionGroup& group) {
    for (const Option& option : group.options)
      for (const std::string_view flag : split(option.flags, ',')) flags.push_back(flag);
  };
  for (const OptionGroup* group : command.groups) collect(*group);
  collect(option_groups::common);
  return flags;
}

std::string command_names() {
  std::string names;
  for (const Command* command : commands::kAll)
    names += fmt::format("{}{}", names.empty() ? "" : " ", command->name);
  return names;
}

// What -o takes: the names of compare's; other commands know some of them.
std::string output_names() {
  std::string names;
  for (const Renderer* renderer : renderers::kAll)
    names += fmt::format("{}{}", names.empty() ? "" : " ", renderer->name);
  return names;
}

std::string bash_script() {
  std::string cases;
  for (const Command* command : commands::kAll)
    cases +=
        fmt::format("    {}) flags=\"{}\" ;;\n", command->name, fmt::join(flags_of(*command), " "));
  return fmt::format(
      "_tensordiff() {{\n"
      "  local word=\"${{COMP_WORDS[COMP_CWORD]}}\" flags\n"
      "  case \"${{COMP_WORDS[1]}}\" in\n"
      "{}    *) flags=\"{}\" ;;\n"
      "  esac\n"
      "  case \"${{COMP_WORDS[COMP_CWORD - 1]}}\" in\n"
      "    -o|--output) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")); return ;;\n"
      "    git) COMPREPLY=($(compgen -W \"install uninstall\" -- \"$word\")); return ;;\n"
      "    config) COMPREPLY=($(compgen -W \"trust untrust\" -- \"$word\")); return ;;\n"
      "    completions) COMPREPLY=($(compgen -W \"bash zsh fish\" -- \"$word\")); return ;;\n"
      "  esac\n"
      "  if [[ $word == -* ]]; then COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n"
      "  elif ((COMP_CWORD == 1)); then COMPREPLY=($(compgen -W \"{}\" -f -- \"$word\"))\n"
      "  else COMPREPLY=($(compgen -f -- \"$word\"))\n"
      "  fi\n"
      "}}\n"
      "complete -o filenames -F _tensordiff tensordiff\n",
      cases, fmt::join(flags_of(commands::compare), " "), output_names(), command_names());
}

std::string fish_script() {
  std::string out;
  for (const Command* command : commands::kAll) {
    out += fmt::format("complete -c tensordiff -n __fish_use_subcommand -a {} -d '{}'\n",
                       command->name, command->summary);
    out += fmt::format(
        "complete -c tensordiff -n '__fish_seen_subcommand_from {}' -s o -l output -xa '{}'\n",
        command->name, output_names());
    for (const std::string_view flag : flags_of(*command))
      out += fmt::format("complete -c tensordiff -n '__fish_seen_subcommand_from {}' -a '{}'\n",
                         command->name, flag);
  }
  return out;
}

int run(const Settings& settings, const std::vector<std::string>& inputs) {
  constexpr std::string_view kShells[] = {"bash", "zsh", "fish"};
  if (inputs.size() != 1) return fail(Error("completions needs a shell: bash, zsh or fish"));
  const Result<std::size_t> shell = parse_word(inputs[0], kShells);
  if (!shell.ok()) return fail(shell.error());
  std::string script = shell.value() == 2 ? fish_script() : bash_script();
  // zsh runs bash's completions as they are.
  if (shell.value() == 1) script.insert(0, "autoload -U +X bashcompinit && bashcompinit\n");
  const Result<void> written = deliver(script, settings);
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
