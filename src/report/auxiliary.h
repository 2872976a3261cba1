// What a report says of tensors that are no weights, and of weights that were decoded.

#pragma once

#include "match/matcher.h"
#include "report/report.h"

namespace tensordiff {

// Takes what is no weight out of the lists of tensors without a partner. Notes say what it is, and
// which weights were made from packed ones.
void list_auxiliary(const Catalog& a, const Catalog& b, const Matching& matching, Report& report);

}  // namespace tensordiff
