// A Report as bytes, to keep it in the database, and back.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"

namespace tensordiff::serve {

// What a session has to show: the report, and in explore mode each tensor alone.
struct Results {
  Report report;
  std::vector<Report::Unpaired> singles;
};

std::string packed(const Results& results);
// Nothing when the bytes are broken or of another version of the program: compare again then.
std::optional<Results> unpacked_results(std::string_view bytes);

}  // namespace tensordiff::serve
