// The program: picks the command and turns what nobody could handle into an exit status.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>

#include "base/sandbox.h"
#include "base/suggest.h"
#include "cli/command.h"
#include "cli/hdf5_child.h"
#include "cli/manual.h"
#include "cli/terminal.h"
#include "cli/version.h"
#include "formats/folder.h"
#include "formats/format.h"
#include "formats/hdf5_wire.h"

namespace tensordiff {
namespace {

std::string help_text() {
  std::string out =
      "usage: tensordiff A B [options]      (same as: tensordiff compare A B)\n\n"
      "Compare two models, find the first divergence, and name its cause.\n"
      "A and B are files, folders, archives, or addresses (https, s3, gs, hf).\n"
      "A is the reference.\n\n"
      "commands:\n";
  for (const Command* command : commands::kAll)
    out += fmt::format("  {:<14}{}\n", command->name, command->summary);
  out += "\nformats:\n";
  for (const Format* format : formats::kAll)
    out += fmt::format("  {:<14}{}\n", format->name, format->summary);
  for (const FolderFormat* format : folders::kAll)
    out += fmt::format("  {:<14}{}\n", format->name, format->summary);
  return out +
         "\nexit status: 0 nothing differs beyond tolerance, 1 something does, 2 trouble\n"
         "tensordiff help COMMAND lists the options of a command.\n";
}

std::vector<std::string_view> command_names() {
  std::vector<std::string_view> names;
  for (const Command* command : commands::kAll) names.push_back(command->name);
  return names;
}

// Where the first word is neither a command nor a file, but nearly a command.
std::string_view meant_command(const std::string& word) {
  if (word.starts_with('-') || access(word.c_str(), F_OK) == 0) return "";
  return nearest_word(word, command_names());
}

int print(const std::string& text) {
  const Result<void> written = deliver(text, {});
  return written.ok() ? kSame : fail(written.error());
}

// help [--man] [COMMAND]: the help or the manual page of the program or of a command.
int help(std::vector<std::string> words) {
  const bool manual = !words.empty() && words[0] == "--man";
  if (manual) words.erase(words.begin());
  if (words.empty()) return print(manual ? program_manual() : help_text());
  const auto named = std::ranges::find(commands::kAll, words[0], &Command::name);
  if (named != std::end(commands::kAll))
    return manual ? print(command_manual(**named)) : run_command(**named, {"--help"});
  return fail(Error("no command '{}'{}", words[0], did_you_mean(words[0], command_names())));
}

int run(std::vector<std::string> arguments) {
  const std::string first = arguments.empty() ? "" : arguments[0];
  // Started by ourselves, for a library that gets a process of its own.
  if (first == hdf5::kTask && arguments.size() == 3)
    return hdf5::list_datasets({std::strtoull(arguments[1].c_str(), nullptr, 10),
                                std::strtoull(arguments[2].c_str(), nullptr, 10)});
  set_sandbox_program("/proc/self/exe");
  if (arguments.empty()) return fail(Error("needs two inputs; see tensordiff --help"));
  if (first == "--version" || first == "-V") return print(version_text());
  if (first == "--help" || first == "-h") return print(help_text());
  if (first == "help") return help({arguments.begin() + 1, arguments.end()});
  // As an option too, since that is how scripts for diffai spell it.
  if (const auto check = std::ranges::find(arguments, "--check"); check != arguments.end()) {
    arguments.erase(check);
    return run_command(commands::check, arguments);
  }
  const auto named = std::ranges::find(commands::kAll, first, &Command::name);
  if (named == std::end(commands::kAll)) {
    if (const std::string_view meant = meant_command(first); !meant.empty())
      return fail(Error("no command or file '{}'; did you mean '{}'?", first, meant));
    return run_command(commands::compare, arguments);
  }
  arguments.erase(arguments.begin());
  return run_command(**named, arguments);
}

}  // namespace
}  // namespace tensordiff

int main(int argc, char** argv) {
  tensordiff::open_standard_streams();
  try {
    return tensordiff::run({argv + 1, argv + argc});
  } catch (const std::bad_alloc&) {
    tensordiff::say("tensordiff: out of memory\n");
  } catch (const std::exception& error) {
    // Our code throws nothing; a library may, where the system fails it.
    tensordiff::say("tensordiff: ");
    tensordiff::say(error.what());
    tensordiff::say("\n");
  }
  return tensordiff::kTrouble;
}
