// One step to explain: what it gave, what it may have read, and how well an operator explains it.

#pragma once

#include <memory>
#include <vector>

#include "diagnose/operators/dumped.h"
#include "diagnose/operators/operator.h"
#include "diagnose/operators/parameters.h"

namespace tensordiff::operators {

// How far an output is from what an operator makes of the inputs, in units of the noise.
struct Misfit {
  double s = 0;          // Root of the mean square over all elements.
  double rest = 1;       // ‖y − p‖ / ‖y‖
  double log_sigma = 0;  // The mean logarithm of the noise.
  double count = 0;      // Elements.
  bool known = false;    // False: it could not be computed.
};

class Context {
 public:
  Context(const Run& run, const Site& site, const LoneTensors& lone = none());

  const Run& run() const { return run_; }
  const Site& site() const { return site_; }
  const Parameters& parameters() const { return parameters_; }
  std::string path() const { return module_path(site_.a.name); }

  // What the step gave; null where it has no such layout.
  const DumpedPtr& target(Layout layout) const;

  // Earlier steps, the nearest first; those that hold the same in A only once.
  const std::vector<DumpedPtr>& earlier(Layout layout) const;
  std::vector<DumpedPtr> like(const Extents& extents) const;
  // Of so many features; rows may differ.
  std::vector<DumpedPtr> of_features(uint64_t features, Layout layout) const;
  // What only one side has, and was captured before the step.
  std::vector<OneSidedPtr> only_a(uint64_t features, Layout layout) const;
  std::vector<OneSidedPtr> only_b(const Extents& extents) const;
  // Of the module of a path, or inside it.
  std::vector<DumpedPtr> inside(std::string_view path, Layout layout) const;

  bool same_values(const Dumped& x, const Dumped& y) const;

  // The rows and columns that hypotheses are held against: spread over the output, with those that
  // are farthest off.
  const Grid& grid(const Extents& extents) const;
  // The unit roundoff of A's values or of both sides'.
  double unit(bool of_b) const;

  Misfit misfit(const Operator& made, bool of_b) const;
  // Where B's values have this unit roundoff.
  Misfit misfit_of_b(const Operator& made, double unit) const;
  // Whether what goes into the step agrees, as far as that is known.
  bool inputs_agree() const { return site_.created || site_.inputs.empty(); }
  // ‖y − p‖ / ‖y‖ of A in these rows, on a few columns.
  double rest_of_a(const Operator& made, const std::vector<uint64_t>& rows) const;
  // Whether it is what A computes, down to A's noise.
  bool explains_a(const Operator& made) const;

 private:
  static const LoneTensors& none();
  Misfit misfit(const Operator& made, bool of_b, double unit) const;
  void choose_grid(Layout layout);

  const Run& run_;
  const Site& site_;
  const LoneTensors& lone_;
  Parameters parameters_;
  double unit_a_ = 0, unit_b_ = 0;
  DumpedPtr target_[2];
  std::vector<DumpedPtr> earlier_[2];
  Grid grid_[2], glance_[2];
};

}  // namespace tensordiff::operators
