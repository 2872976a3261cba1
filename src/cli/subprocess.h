// Runs another program, without a shell in between.

#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace tensordiff {

struct Finished {
  int exit = 0;
  std::string output;  // What it wrote to stdout.
};

// Looks for arguments[0] in the path, and waits for it. Its stderr is ours.
Result<Finished> run_program(const std::vector<std::string>& arguments);

}  // namespace tensordiff
