// For the tests of commands: runs one in this process and keeps what it prints.

#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/command.h"

namespace tensordiff {

struct Ran {
  int status = 0;
  std::string out, err;

  bool says(std::string_view text) const { return out.find(text) != std::string::npos; }
  bool complains(std::string_view text) const { return err.find(text) != std::string::npos; }
};

// A file of tests/data.
inline std::string data(const std::string& name) {
  return std::string(TENSORDIFF_SOURCE_DIR "/tests/data/") + name;
}

inline Ran run_as_is(const Command& command, const std::vector<std::string>& arguments) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Ran ran;
  ran.status = run_command(command, arguments);
  ran.out = testing::internal::GetCapturedStdout();
  ran.err = testing::internal::GetCapturedStderr();
  return ran;
}

// Without the settings of whoever runs the tests.
inline Ran run(const Command& command, std::vector<std::string> arguments) {
  if (!command.groups.empty()) arguments.emplace_back("--no-config");
  return run_as_is(command, arguments);
}

}  // namespace tensordiff
