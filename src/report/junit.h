// JUnit XML, as build servers read it.

#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tensordiff {

struct JunitCase {
  enum class Outcome { passed, failed, error, skipped };
  std::string group;
  std::string name;
  Outcome outcome = Outcome::passed;
  std::string message = {};  // Why it did not pass.
  std::string details = {};
};

struct JunitSuite {
  std::string name;
  std::vector<std::pair<std::string, std::string>> properties;
  std::vector<JunitCase> cases;
};

std::string junit_text(const std::vector<JunitSuite>& suites);

}  // namespace tensordiff
