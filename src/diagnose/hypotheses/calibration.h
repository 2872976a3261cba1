// Findings of a calibration corpus, counted: how many there were of each kind, and how many of them
// named the mistake that was planted. None is counted yet: each confidence is (0 + 1)/(0 + 2).

#pragma once

#include "diagnose/operators/operator.h"

namespace tensordiff::hypotheses {

struct Counted {
  unsigned right = 0, all = 0;
};

struct CalibrationRow {
  operators::Standing standing;
  operators::Family family;
  Counted counted;
};

inline constexpr CalibrationRow kCalibration[] = {
    {operators::Standing::given, operators::Family::parameter, {0, 0}},
};

}  // namespace tensordiff::hypotheses
