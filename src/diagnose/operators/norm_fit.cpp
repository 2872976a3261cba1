#include "diagnose/operators/norm_fit.h"

#include <algorithm>
#include <cmath>

namespace tensordiff::operators {

Line line_of(const Block& x, const Block& y, uint64_t column, bool biased) {
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  const auto count = static_cast<double>(x.rows());
  for (uint64_t r = 0; r < x.rows(); ++r) {
    const double u = x.row(r)[column], v = y.row(r)[column];
    sx += u, sy += v, sxx += u * u, sxy += u * v;
  }
  Line line;
  const double mean = biased ? sx / count : 0, mean_y = biased ? sy / count : 0;
  const double variance = sxx - count * mean * mean;
  line.slope = variance > 0 ? (sxy - count * mean * mean_y) / variance : 0;
  line.start = mean_y - line.slope * mean;
  for (uint64_t r = 0; r < x.rows(); ++r) {
    line.left += std::pow(y.row(r)[column] - line.slope * x.row(r)[column] - line.start, 2);
    line.size += std::pow(y.row(r)[column] - mean_y, 2);
  }
  return line;
}

namespace {

// With a weight and a bias for each feature, four more rows than unknowns (design, section 3).
constexpr uint64_t kRowsMin = 6;
constexpr uint64_t kRowsMax = 64;
constexpr uint64_t kColumns = 32;  // For the quick check.
// What a straight line leaves of a feature of the output: rows are divided by their sizes, which
// differ, so that it is no exact fit. Of another input it leaves nearly all.
constexpr double kLineMost = 0.8;

Grid rows_of(const Extents& extents, uint64_t most) {
  Grid grid;
  const uint64_t rows = std::min(extents.rows(), most);
  for (uint64_t i = 0; i < rows; ++i)
    grid.rows.push_back(rows == 1 ? 0 : i * (extents.rows() - 1) / (rows - 1));
  return grid;
}

// x of each row brought to size 1.
Block normalised(const Block& x, bool centred, double epsilon) {
  Block made = x;
  const auto size = static_cast<double>(x.features);
  for (uint64_t r = 0; r < x.rows(); ++r) {
    double mean = 0, squares = 0;
    for (uint64_t c = 0; c < x.features && centred; ++c) mean += x.row(r)[c] / size;
    for (uint64_t c = 0; c < x.features; ++c)
      squares += (x.row(r)[c] - mean) * (x.row(r)[c] - mean) / size;
    const double scale = 1 / std::sqrt(squares + epsilon);
    for (uint64_t c = 0; c < x.features; ++c) made.row(r)[c] = (x.row(r)[c] - mean) * scale;
  }
  return made;
}

double fitted(const Block& x, const Block& y, bool biased, NormForm* form) {
  double left = 0, size = 0;
  for (uint64_t c = 0; c < x.features; ++c) {
    const Line line = line_of(x, y, c, biased);
    left += line.left, size += line.size;
    if (!form) continue;
    form->weight.push_back(line.slope);
    if (biased) form->bias.push_back(line.start);
  }
  return size > 0 ? std::sqrt(left / size) : 1;
}

}  // namespace

bool may_be_norm(const Context&, const Dumped& target) {
  return target.extents().rows() >= kRowsMin && target.extents().features > 1;
}

bool may_be_input(const Context&, const Dumped& target, const OperatorPtr& input) {
  Grid grid = rows_of(target.extents(), kRowsMax);
  if (grid.rows.size() < kRowsMin) return true;
  const uint64_t features = target.extents().features;
  for (uint64_t i = 0; i < std::min(kColumns, features); ++i)
    grid.columns.push_back(i * features / std::min(kColumns, features));
  const Block x = input->predict({}, grid), y = target.predict({}, grid);
  return x.values.size() == y.values.size() && !x.empty() &&
         fitted(x, y, true, nullptr) < kLineMost;
}

std::optional<NormForm> fit_norm(const Context& context, const Dumped& target,
                                 const OperatorPtr& input, std::span<const double> epsilons) {
  if (!may_be_input(context, target, input)) return std::nullopt;
  const Grid grid = rows_of(target.extents(), kRowsMax);
  const Block x = input->predict({}, grid), y = target.predict({}, grid);
  if (x.values.size() != y.values.size() || x.empty()) return std::nullopt;
  double least = INFINITY;
  std::optional<NormForm> best;
  for (const bool centred : {false, true})
    for (const double epsilon : epsilons) {
      const double left = fitted(normalised(x, centred, epsilon), y, centred, nullptr);
      if (!(left < 0.9 * least)) continue;
      least = left;
      best = NormForm{centred, epsilon, x.features, {}, {}, 0, ""};
    }
  if (!best) return std::nullopt;
  fitted(normalised(x, best->centred, best->epsilon), y, best->centred, &*best);
  // A line through all columns is no norm: what normalising adds to the fit must show.
  if (least > 0.5 * fitted(x, y, true, nullptr)) return std::nullopt;
  return best;
}

}  // namespace tensordiff::operators
