// The program: picks the command and turns what nobody could handle into an exit status.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "base/sandbox.h"
#include "cli/command.h"
#include "cli/hdf5_child.h"
#include "formats/format.h"
#include "formats/hdf5_wire.h"

namespace tensordiff {
namespace {

void print_help() {
  fmt::print(
      "usage: tensordiff A B [options]      (same as: tensordiff compare A B)\n\n"
      "Compares two models, dumps or checkpoints, and says where they part first.\n"
      "A and B are files, folders of files, or archives of files; a is the reference.\n\n"
      "commands:\n");
  for (const Command* command : commands::kAll)
    fmt::print("  {:<14}{}\n", command->name, command->summary);
  fmt::print("\nformats:\n");
  for (const Format* format : formats::kAll)
    fmt::print("  {:<14}{}\n", format->name, format->summary);
  fmt::print(
      "\nexit status: 0 nothing differs beyond tolerance, 1 something does, 2 trouble\n"
      "tensordiff COMMAND --help lists the options of a command.\n");
}

int run(std::vector<std::string> arguments) {
  const std::string first = arguments.empty() ? "" : arguments[0];
  // Started by ourselves, for a library that gets a process of its own.
  if (first == hdf5::kTask && arguments.size() == 3)
    return hdf5::list_datasets({std::strtoull(arguments[1].c_str(), nullptr, 10),
                                std::strtoull(arguments[2].c_str(), nullptr, 10)});
  set_sandbox_program("/proc/self/exe");
  if (first.empty()) {
    fmt::print(stderr, "tensordiff: needs two inputs; see tensordiff --help\n");
    return kTrouble;
  }
  if (first == "--version") {
    fmt::print("tensordiff {}\n", TENSORDIFF_VERSION);
    return kSame;
  }
  if (first == "--help" || first == "-h" || first == "help") {
    print_help();
    return kSame;
  }
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
  try {
    return tensordiff::run({argv + 1, argv + argc});
  } catch (const std::bad_alloc&) {
    std::fputs("tensordiff: out of memory\n", stderr);
    return tensordiff::kTrouble;
  } catch (const std::exception& fault) {
    // Of a library: our own code throws nothing.
    std::fprintf(stderr, "tensordiff: %s\n", fault.what());
    return tensordiff::kTrouble;
  }
}
