// A norm as a straight line for each feature of what it reads, brought to size 1 for each token,
// and to mean 0 where it is a LayerNorm.

#pragma once

#include <vector>

#include "diagnose/sample/matrix.h"

namespace tensordiff {

// z = p · x + q · y, from its sums.
struct LeastSquares {
  double xx = 0, xy = 0, yy = 0, xz = 0, yz = 0;

  void add(double x, double y, double z);
  void solve(double& p, double& q) const;
};

struct NormLines {
  bool centred = false;
  std::vector<double> slope, start;
};

// Each token less its mean.
Matrix without_means(Matrix x);

Matrix unit_tokens(Matrix x, bool centred);
Matrix on_lines(const Matrix& unit, const NormLines& lines);
NormLines lines_between(const Matrix& unit, const Matrix& out, bool centred);

}  // namespace tensordiff
