// Tensors of the dumps as they are: the leaves of every tree of operators.

#pragma once

#include <memory>

#include "diagnose/graph/lone.h"
#include "diagnose/operators/operator.h"
#include "diagnose/operators/planes.h"

namespace tensordiff::operators {

// One that both sides have.
class Dumped final : public Operator {
 public:
  // The site must outlive this.
  static std::shared_ptr<const Dumped> make(const Run& run, const Site& site, Layout layout);

  std::string_view kind() const override { return "copy"; }
  const Extents& extents() const override { return a_.extents(); }
  Block predict(const Reading& from, const Grid& grid) const override;
  std::vector<Change> changes(const Context& context) const override;
  std::string text() const override;
  const Site& site() const { return site_; }

 private:
  Dumped(const Site& site, Plane a, Plane b) : site_(site), a_(std::move(a)), b_(std::move(b)) {}

  const Site& site_;
  PlaneValues a_, b_;
};
using DumpedPtr = std::shared_ptr<const Dumped>;

// One that a single side has: for the other there is nothing to compute with.
class OneSided final : public Operator {
 public:
  // The tensor must outlive this.
  static std::shared_ptr<const OneSided> make(const Run& run, const Lone& lone,
                                              View AlignedPair::*side, Layout layout);

  std::string_view kind() const override { return "copy"; }
  const Extents& extents() const override { return values_.extents(); }
  Block predict(const Reading& from, const Grid& grid) const override;
  std::vector<Change> changes(const Context& context) const override;
  std::string text() const override;
  const std::string& name() const { return lone_.name; }
  std::size_t capture() const { return lone_.capture; }

 private:
  OneSided(const Lone& lone, View AlignedPair::*side, Plane plane)
      : lone_(lone), side_(side), values_(std::move(plane)) {}

  const Lone& lone_;
  View AlignedPair::*side_;
  PlaneValues values_;
};
using OneSidedPtr = std::shared_ptr<const OneSided>;

// What B may read in place of something of these sizes, which is called `own`; `of` is the tensor
// itself, where it is one.
std::vector<Change> substitutes(const Context& context, const Extents& extents,
                                const std::string& own, const Dumped* of);

// What the step gave in A, for either side: right where the inputs agree, whatever the step is.
// With lines it is what went in: a norm with its weight and bias taken off.
class AsInA final : public Operator {
 public:
  struct Line {
    double factor = 1, offset = 0;
  };
  explicit AsInA(DumpedPtr target, std::vector<Line> by_column = {})
      : target_(std::move(target)), by_column_(std::move(by_column)) {}

  std::string_view kind() const override { return "step"; }
  const Extents& extents() const override { return target_->extents(); }
  Block predict(const Reading& from, const Grid& grid) const override;
  std::vector<Change> changes(const Context&) const override { return {}; }
  Standing standing() const override { return Standing::unknown; }
  std::string text() const override { return "its inputs"; }

 private:
  DumpedPtr target_;
  std::vector<Line> by_column_;
};

}  // namespace tensordiff::operators
