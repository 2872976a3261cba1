// The conversion of a report as a Python script that makes B's tensors of A's.

#pragma once

#include <string>

#include "report/conversion.h"
#include "report/report.h"

namespace tensordiff {

// A skeleton to read and to go on from: one loop for each kind of tensor, with numpy. It makes B
// bit for bit where the conversion is exact; what it cannot do is marked "to do".
std::string conversion_python(const Report& report, const MergedPairs& merged);

}  // namespace tensordiff
