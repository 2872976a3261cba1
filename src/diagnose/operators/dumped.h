// A tensor of the dumps as it is: the leaves of every tree of operators.

#pragma once

#include <optional>

#include "diagnose/operators/operator.h"

namespace tensordiff::operators {

// A view as rows of features, with the features last.
struct Plane {
  View view;
  Extents extents;
};
// Nothing where the view has no such axis.
std::optional<Plane> plane_of(const View& view, const Extent& extent, Layout layout);

class Dumped final : public Operator {
 public:
  // The site must outlive this.
  static std::shared_ptr<const Dumped> make(const Run& run, const Site& site, Layout layout);

  std::string_view kind() const override { return "copy"; }
  const Extents& extents() const override { return extents_; }
  Block predict(const Reading& from, const Grid& grid) const override;
  std::vector<Change> changes(const Context& context) const override;
  std::string text() const override;
  const Site& site() const { return site_; }

 private:
  Dumped(const Site& site, Plane a, Plane b)
      : site_(site), extents_(a.extents), a_(std::move(a.view)), b_(std::move(b.view)) {}
  const std::vector<double>& all_of(bool of_b) const;

  const Site& site_;
  Extents extents_;
  View a_, b_;
  // The whole tensors, where they are small: hypotheses read them again and again. A tree is used
  // by one thread.
  mutable std::optional<std::vector<double>> held_a_, held_b_;
};

}  // namespace tensordiff::operators
