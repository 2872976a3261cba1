// How sums of neighbouring ranges become the sums of their union (Chan, Golub, LeVeque 1979).

#include <algorithm>

#include "compare/kernels/tile.h"

namespace tensordiff {

void Moments::merge(const Moments& other) {
  if (other.count > 0) {
    const double n = static_cast<double>(count);
    const double m = static_cast<double>(other.count);
    const double delta = other.mean - mean;
    mean += delta * (m / (n + m));
    m2 += other.m2 + delta * delta * (n * m / (n + m));
    count += other.count;
  }
  min = std::min(min, other.min);
  max = std::max(max, other.max);
  zeros += other.zeros;
  nan += other.nan;
  inf += other.inf;
}

void Sums::merge(const Sums& later) {
  a.merge(later.a);
  b.merge(later.b);
  if (later.values > 0) {
    const double n = static_cast<double>(values);
    const double m = static_cast<double>(later.values);
    const double weight = n * m / (n + m);
    const double delta_a = later.mean_a - mean_a;
    const double delta_b = later.mean_b - mean_b;
    m2_a += later.m2_a + delta_a * delta_a * weight;
    m2_b += later.m2_b + delta_b * delta_b * weight;
    co += later.co + delta_a * delta_b * weight;
    mean_a += delta_a * (m / (n + m));
    mean_b += delta_b * (m / (n + m));
    values += later.values;
  }
  count += later.count;
  d_abs += later.d_abs;
  d_squared += later.d_squared;
  d_relative += later.d_relative;
  equal += later.equal;
  exceeding += later.exceeding;
  mismatch += later.mismatch;
  agreeing += later.agreeing;
  mismatch_at = std::min(mismatch_at, later.mismatch_at);
  agreeing_at = std::min(agreeing_at, later.agreeing_at);
  if (later.max_abs > max_abs ||
      (later.max_abs == max_abs && later.max_abs_at < max_abs_at && later.max_abs >= 0)) {
    max_abs = later.max_abs;
    max_abs_at = later.max_abs_at;
  }
  max_rel = std::max(max_rel, later.max_rel);
  rtol_needed = std::max(rtol_needed, later.rtol_needed);
  ulp = std::max(ulp, later.ulp);
}

}  // namespace tensordiff
