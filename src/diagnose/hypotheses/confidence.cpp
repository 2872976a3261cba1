#include "diagnose/hypotheses/confidence.h"

#include "diagnose/hypotheses/calibration.h"

namespace tensordiff::hypotheses {
namespace {

constexpr unsigned kEnough = 30;

double share(const Counted& counted) { return (counted.right + 1.0) / (counted.all + 2.0); }

}  // namespace

double confidence_of(operators::Standing standing, operators::Family family) {
  Counted of_standing, all;
  for (const CalibrationRow& row : kCalibration) {
    all.right += row.counted.right, all.all += row.counted.all;
    if (row.standing != standing) continue;
    if (row.family == family && row.counted.all >= kEnough) return share(row.counted);
    of_standing.right += row.counted.right, of_standing.all += row.counted.all;
  }
  return share(of_standing.all >= kEnough ? of_standing : all);
}

}  // namespace tensordiff::hypotheses
