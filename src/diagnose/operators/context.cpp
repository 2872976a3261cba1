#include "diagnose/operators/context.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "diagnose/noise/roundoff.h"
#include "diagnose/verdict/judge.h"

namespace tensordiff::operators {
namespace {

// One evaluation of a projection of 8192 features on this grid takes 50 million multiplications.
constexpr uint64_t kRows = 48, kColumns = 96;
constexpr uint64_t kWorst = 16;  // Of these, where the two sides are farthest apart.
constexpr uint64_t kGlanceRows = 4, kGlanceColumns = 8;
// What a wrong operator leaves at a glance is about 1; a right one leaves noise of the coarsest
// type, two roundings of 8-bit floats.
constexpr double kGlance = 0.15;
// An operator is what A computes where it leaves no more than this many times the noise: 3 is the
// largest that clean steps show (design), and as much again for sums in another order.
constexpr double kAccepted = 6;
// Single precision: dumps in float64 hold what was computed with weights of float32.
constexpr double kUnitMin = 0x1p-24;
constexpr std::size_t kEarlierMax = 160;
// Of what one side has alone, the last before the step: a layer has about a dozen entries.
constexpr std::size_t kLoneMax = 16;

constexpr std::size_t index_of(Layout layout) { return layout == Layout::channels ? 1 : 0; }

std::vector<uint64_t> spread(uint64_t count, uint64_t wanted) {
  std::vector<uint64_t> picked;
  const uint64_t size = std::min(count, wanted);
  for (uint64_t k = 0; k < size; ++k)
    picked.push_back(size == 1 ? 0 : k * (count - 1) / (size - 1));
  return picked;
}

void add_worst(const std::vector<double>& errors, std::vector<uint64_t>& picked) {
  std::vector<uint64_t> order(errors.size());
  std::iota(order.begin(), order.end(), 0);
  const auto most = static_cast<std::ptrdiff_t>(std::min<std::size_t>(kWorst, order.size()));
  std::partial_sort(order.begin(), order.begin() + most, order.end(),
                    [&](uint64_t x, uint64_t y) { return errors[x] > errors[y]; });
  picked.insert(picked.end(), order.begin(), order.begin() + most);
  std::ranges::sort(picked);
  picked.erase(std::unique(picked.begin(), picked.end()), picked.end());
}

Grid every(const Extents& extents, uint64_t rows_max) {
  return {spread(extents.rows(), rows_max), {}};
}

}  // namespace

const LoneTensors& Context::none() {
  static const LoneTensors kNone;
  return kNone;
}

Context::Context(const Run& run, const Site& site, const LoneTensors& lone)
    : run_(run), site_(site), lone_(lone), parameters_(run.weights.named()) {
  if (!site.compared()) return;
  unit_a_ = std::max(kUnitMin, roundoff_of(site.views.a));
  unit_b_ = std::max(unit_a_, site.roundoff);
  for (const Layout layout : {Layout::tokens, Layout::channels}) {
    target_[index_of(layout)] = Dumped::make(run, site, layout);
    for (const Site* at = &site; at != run.sites.data();) {
      --at;
      if (earlier_[index_of(layout)].size() == kEarlierMax) break;
      // What B repeats as well is one tensor. Dropout that is at rest in A alone is another.
      if (at->copy_of && at->repeats) continue;
      if (DumpedPtr dumped = Dumped::make(run, *at, layout))
        earlier_[index_of(layout)].push_back(std::move(dumped));
    }
    if (target_[index_of(layout)]) choose_grid(layout);
  }
}

void Context::choose_grid(Layout layout) {
  const Dumped& target = *target_[index_of(layout)];
  const Extents& extents = target.extents();
  Grid& grid = grid_[index_of(layout)];
  grid.rows = spread(extents.rows(), kRows - kWorst);
  grid.columns = spread(extents.features, kColumns - kWorst);
  const Grid all = every(extents, 4096);
  const Block a = target.predict({&AlignedPair::a}, all),
              b = target.predict({&AlignedPair::b}, all);
  if (!a.empty() && !b.empty()) {
    std::vector<double> by_row(extents.rows()), by_column(extents.features);
    for (uint64_t r = 0; r < all.rows.size(); ++r)
      for (uint64_t c = 0; c < extents.features; ++c) {
        const double gap = b.row(r)[c] - a.row(r)[c];
        if (!std::isfinite(gap)) continue;
        by_row[all.rows[r]] += gap * gap;
        by_column[c] += gap * gap;
      }
    add_worst(by_row, grid.rows);
    add_worst(by_column, grid.columns);
  }
  Grid& glance = glance_[index_of(layout)];
  for (const uint64_t i : spread(grid.rows.size(), kGlanceRows))
    glance.rows.push_back(grid.rows[i]);
  for (const uint64_t i : spread(grid.columns.size(), kGlanceColumns))
    glance.columns.push_back(grid.columns[i]);
}

const DumpedPtr& Context::target(Layout layout) const { return target_[index_of(layout)]; }

const std::vector<DumpedPtr>& Context::earlier(Layout layout) const {
  return earlier_[index_of(layout)];
}

std::vector<DumpedPtr> Context::like(const Extents& extents) const {
  std::vector<DumpedPtr> found;
  for (const DumpedPtr& each : earlier(extents.layout))
    if (each->extents() == extents) found.push_back(each);
  return found;
}

std::vector<DumpedPtr> Context::of_features(uint64_t features, Layout layout) const {
  std::vector<DumpedPtr> found;
  for (const DumpedPtr& each : earlier(layout))
    if (each->extents().features == features) found.push_back(each);
  return found;
}

std::vector<DumpedPtr> Context::inside(std::string_view path, Layout layout) const {
  std::vector<DumpedPtr> found;
  const std::string stem = std::string(path) + ".";
  for (const DumpedPtr& each : earlier(layout)) {
    const std::string other = module_path(each->site().a.name);
    if (other == path || other.starts_with(stem)) found.push_back(each);
  }
  return found;
}

std::vector<OneSidedPtr> Context::only_a(uint64_t features, Layout layout) const {
  std::vector<OneSidedPtr> found;
  for (auto at = lone_.a.rbegin(); at != lone_.a.rend(); ++at) {
    const Lone& lone = *at;
    if (lone.capture >= site_.capture || found.size() == kLoneMax) continue;
    OneSidedPtr leaf = OneSided::make(run_, lone, &AlignedPair::a, layout);
    if (leaf && leaf->extents().features == features) found.push_back(std::move(leaf));
  }
  return found;
}

std::vector<OneSidedPtr> Context::only_b(const Extents& extents) const {
  std::vector<OneSidedPtr> found;
  for (auto at = lone_.b.rbegin(); at != lone_.b.rend(); ++at) {
    const Lone& lone = *at;
    if (lone.capture >= site_.capture_b || found.size() == kLoneMax) continue;
    OneSidedPtr leaf = OneSided::make(run_, lone, &AlignedPair::b, extents.layout);
    if (leaf && leaf->extents() == extents) found.push_back(std::move(leaf));
  }
  return found;
}

bool Context::same_values(const Dumped& x, const Dumped& y) const {
  const Stats &a = x.site().comparison.a, &b = y.site().comparison.a;
  return a.min == b.min && a.max == b.max && a.norm == b.norm && a.finite == b.finite;
}

const Grid& Context::grid(const Extents& extents) const { return grid_[index_of(extents.layout)]; }

double Context::unit(bool of_b) const { return of_b ? unit_b_ : unit_a_; }

Misfit Context::misfit(const Operator& made, bool of_b, double unit) const {
  Misfit result;
  const Grid& grid = this->grid(made.extents());
  const DumpedPtr& target = target_[index_of(made.extents().layout)];
  if (!target || made.extents() != target->extents()) return result;
  const auto side = of_b ? &AlignedPair::b : &AlignedPair::a;
  const Block p = made.predict({side}, grid), off = made.predict({side, unit}, grid);
  const Block y = target->predict({side}, grid);
  if (p.values.size() != y.values.size() || off.values.size() != y.values.size() || y.empty())
    return result;
  double sum = 0, gaps = 0, size = 0, count = 0, logs = 0;
  for (uint64_t r = 0; r < y.rows(); ++r) {
    double moved = 0, square = 0;
    for (uint64_t c = 0; c < y.features; ++c) {
      moved += std::pow(off.row(r)[c] - p.row(r)[c], 2);
      square += std::pow(p.row(r)[c], 2);
    }
    const auto features = static_cast<double>(y.features);
    for (uint64_t c = 0; c < y.features; ++c) {
      const double gap = y.row(r)[c] - p.row(r)[c];
      // What the operator says nothing of, and what is no number, is left out.
      if (!std::isfinite(y.row(r)[c]) || !std::isfinite(gap) || !std::isfinite(moved)) continue;
      const double sigma =
          unit * unit * (std::pow(p.row(r)[c], 2) + square / features) / 2 + moved / features;
      // A row of nothing but zeros has no noise, and leaves none.
      if (gap != 0) sum += sigma > 0 ? gap * gap / sigma : INFINITY;
      logs += 0.5 * std::log(std::max(sigma, std::numeric_limits<double>::min()));
      gaps += gap * gap;
      size += std::pow(y.row(r)[c], 2);
      count += 1;
    }
  }
  if (2 * count < static_cast<double>(y.values.size())) return result;
  result.s = std::sqrt(sum / count);
  result.log_sigma = logs / count;
  result.count = count;
  result.rest = size > 0 ? std::sqrt(gaps / size) : (gaps > 0 ? INFINITY : 0);
  result.known = true;
  return result;
}

Misfit Context::misfit(const Operator& made, bool of_b) const {
  return misfit(made, of_b, unit(of_b));
}

Misfit Context::misfit_of_b(const Operator& made, double unit) const {
  return misfit(made, true, std::max(unit, unit_b_));
}

double Context::rest_of_a(const Operator& made, const std::vector<uint64_t>& rows) const {
  const std::size_t layout = index_of(made.extents().layout);
  if (!target_[layout] || made.extents() != target_[layout]->extents()) return INFINITY;
  const Grid grid{rows, glance_[layout].columns};
  const Block p = made.predict({&AlignedPair::a}, grid);
  const Block y = target_[layout]->predict({&AlignedPair::a}, grid);
  if (p.values.size() != y.values.size() || p.empty()) return INFINITY;
  double gaps = 0, size = 0;
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    if (std::isnan(p.values[i])) continue;
    gaps += std::pow(y.values[i] - p.values[i], 2);
    size += std::pow(y.values[i], 2);
  }
  return size > 0 ? std::sqrt(gaps / size) : INFINITY;
}

bool Context::explains_a(const Operator& made) const {
  if (!(rest_of_a(made, glance_[index_of(made.extents().layout)].rows) <= kGlance)) return false;
  const Misfit left = misfit(made, false);
  return left.known && left.s <= kAccepted;
}

}  // namespace tensordiff::operators
