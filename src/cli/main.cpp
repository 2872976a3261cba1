// The program: picks the command and turns what nobody could handle into an exit status.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>

#include "base/sandbox.h"
#include "cli/command.h"
#include "cli/hdf5_child.h"
#include "cli/terminal.h"
#include "formats/format.h"
#include "formats/hdf5_wire.h"

namespace tensordiff {
namespace {

std::string help_text() {
  std::string out =
      "usage: tensordiff A B [options]      (same as: tensordiff compare A B)\n\n"
      "Compares two models, dumps or checkpoints, and says where they part first.\n"
      "A and B are files, folders of files, or archives of files; a is the reference.\n\n"
      "commands:\n";
  for (const Command* command : commands::kAll)
    out += fmt::format("  {:<14}{}\n", command->name, command->summary);
  out += "\nformats:\n";
  for (const Format* format : formats::kAll)
    out += fmt::format("  {:<14}{}\n", format->name, format->summary);
  return out +
         "\nexit status: 0 nothing differs beyond tolerance, 1 something does, 2 trouble\n"
         "tensordiff COMMAND --help lists the options of a command.\n";
}

int print(const std::string& text) {
  const Result<void> written = deliver(text, {});
  return written.ok() ? kSame : fail(written.error());
}

int run(std::vector<std::string> arguments) {
  const std::string first = arguments.empty() ? "" : arguments[0];
  // Started by ourselves, for a library that gets a process of its own.
  if (first == hdf5::kTask && arguments.size() == 3)
    return hdf5::list_datasets({std::strtoull(arguments[1].c_str(), nullptr, 10),
                                std::strtoull(arguments[2].c_str(), nullptr, 10)});
  set_sandbox_program("/proc/self/exe");
  if (arguments.empty()) return fail(Error("needs two inputs; see tensordiff --help"));
  if (first == "--version") return print(fmt::format("tensordiff {}\n", TENSORDIFF_VERSION));
  if (first == "--help" || first == "-h" || first == "help") return print(help_text());
  // As an option too, since that is how scripts for diffai spell it.
  if (const auto check = std::ranges::find(arguments, "--check"); check != arguments.end()) {
    arguments.erase(check);
    return run_command(commands::check, arguments);
  }
  const auto named = std::ranges::find(commands::kAll, first, &Command::name);
  if (named == std::end(commands::kAll)) return run_command(commands::compare, arguments);
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
