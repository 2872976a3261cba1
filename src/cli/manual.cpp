#include "cli/manual.h"

#include <fmt/format.h>

#include "base/build_info.h"
#include "cli/remote_options.h"
#include "formats/folder.h"
#include "formats/format.h"

namespace tensordiff {
namespace {

// Text in roff: a backslash and a hyphen mean themselves, and no line is a request.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  if (out.starts_with('.') || out.starts_with('\'')) out.insert(0, "\\&");
  return out;
}

std::string heading(std::string_view name, std::string_view summary) {
  return fmt::format(".TH {} 1 \"\" \"tensordiff {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n",
                     roff(name), kVersion, roff(name), roff(summary));
}

std::string entry(std::string_view term, std::string_view text) {
  return fmt::format(".TP\n.B {}\n{}\n", roff(term), roff(text));
}

std::string option_entry(const Option& option) {
  std::string flags;
  for (const char c : option.flags) flags += c == ',' ? ", " : std::string(1, c);
  const std::string argument =
      option.argument.empty() ? "" : fmt::format(" \\fI{}\\fR", roff(option.argument));
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(flags), argument, roff(option.help));
}

constexpr std::string_view kExitStatus =
    ".SH EXIT STATUS\n"
    ".TP\n.B 0\nNothing differs beyond tolerance.\n"
    ".TP\n.B 1\nSomething differs, or a gate failed.\n"
    ".TP\n.B 2\nTrouble: bad usage, or an input that cannot be read.\n";

}  // namespace

std::string program_manual() {
  std::string out = heading("tensordiff", "compare two models and find the first divergence");
  out +=
      ".SH SYNOPSIS\n.B tensordiff\n.I A B\n[options]\n.br\n.B tensordiff\n.I COMMAND\n[options]\n";
  out +=
      ".SH DESCRIPTION\n"
      "Compares two models, checkpoints or dumps of activations: pairs their tensors, undoes\n"
      "layout differences, compares all values in one pass, finds the first divergence and names\n"
      "its cause. A and B are files, folders or archives in any of the formats below. A is the\n"
      "reference. Nothing in a file is executed.\n"
      ".SH COMMANDS\n";
  for (const Command* command : commands::kAll) out += entry(command->name, command->summary);
  out += ".SH FORMATS\n";
  for (const Format* format : formats::kAll) out += entry(format->name, format->summary);
  for (const FolderFormat* format : folders::kAll) out += entry(format->name, format->summary);
  out += kExitStatus;
  out += ".SH SEE ALSO\n";
  for (const Command* command : commands::kAll)
    out += fmt::format(".BR {} (1){}\n", roff(fmt::format("tensordiff-{}", command->name)),
                       command == *(std::end(commands::kAll) - 1) ? "" : ",");
  return out;
}

std::string command_manual(const Command& command) {
  std::string out = heading(fmt::format("tensordiff-{}", command.name), command.summary);
  out += fmt::format(".SH SYNOPSIS\n{}\n.SH OPTIONS\n", roff(command.usage));
  const auto add = [&](const OptionGroup& group) {
    out += fmt::format(".SS {}\n", roff(group.title));
    for (const Option& option : group.options) out += option_entry(option);
  };
  for (const OptionGroup* group : command.groups) add(*group);
  add(option_groups::remote);
  add(option_groups::common);
  out += kExitStatus;
  return out + ".SH SEE ALSO\n.BR tensordiff (1)\n";
}

}  // namespace tensordiff
