// Runs another program, one that the user named: its input in, its output back, in limited time.
//
// There is no shell and there are no arguments: the name is what is run, whatever is in it.

#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tensordiff {

struct ProgramLimits {
  std::chrono::milliseconds time{60'000};
  std::size_t output_bytes = 64 << 20;
};

// What the program wrote on its standard output. Its standard error is ours. A name with a slash
// is a path, one without is looked for as the shell would. An error says that it cannot be run,
// took too long, wrote too much or did not end with status 0; it is stopped then, with all that it
// started.
Result<std::string> run_program(const std::string& program, std::string_view input,
                                const ProgramLimits& limits = {});

}  // namespace tensordiff
