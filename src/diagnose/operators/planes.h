// A tensor as rows of features, read where values are asked for.

#pragma once

#include <optional>
#include <vector>

#include "diagnose/operators/operator.h"

namespace tensordiff::operators {

// A view as rows of features, with the features last.
struct Plane {
  View view;
  Extents extents;
};
// Nothing where the view has no such axis.
std::optional<Plane> plane_of(const View& view, const Extent& extent, Layout layout);

class PlaneValues {
 public:
  explicit PlaneValues(Plane plane) : plane_(std::move(plane)) {}

  const Extents& extents() const { return plane_.extents; }
  // With a unit, each value is off by as much, up or down by its position.
  Block at(const Grid& grid, double unit) const;

 private:
  const std::vector<double>& all() const;

  Plane plane_;
  mutable std::optional<std::vector<double>> held_;  // All of a small one.
};

}  // namespace tensordiff::operators
