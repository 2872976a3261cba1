// What a reviewer has to know, in a few sentences: what changed, and what to look at.

#pragma once

#include <string>
#include <vector>

#include "report/report.h"

namespace tensordiff {

struct Review {
  std::vector<std::string> changed;
  std::vector<std::string> look_at;  // Empty: nothing asks for a second look.
};

Review review_of(const Report& report);

}  // namespace tensordiff
