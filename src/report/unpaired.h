// Tensors that have no partner, as rows of the report.

#pragma once

#include "report/report.h"

namespace tensordiff {

struct UnpairedOptions {
  bool stats = false;
  bool not_dumped = false;  // Both sides are dumps: what one lacks it did not record.
};
std::vector<Report::Unpaired> unpaired_rows(const Catalog& catalog, const Catalog& other,
                                            const std::vector<Leftover>& which,
                                            const UnpairedOptions& options);

}  // namespace tensordiff
