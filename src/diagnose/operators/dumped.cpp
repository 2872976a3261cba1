#include "diagnose/operators/dumped.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "diagnose/operators/context.h"

namespace tensordiff::operators {
namespace {

Change reads_instead(OperatorPtr other, const std::string& name, const std::string& own,
                     std::size_t tried) {
  Change change;
  change.code = "other_tensor";
  change.text = fmt::format("B reads {} where A reads {}", other->text(), own);
  change.cause = "other_input";
  change.family = Family::substitution;
  change.bits = std::log2(static_cast<double>(tried) + 1);
  change.parameters = {{"tensor", name}};
  change.made = std::move(other);
  return change;
}

}  // namespace

std::vector<Change> substitutes(const Context& context, const Extents& extents,
                                const std::string& own, const Dumped* of) {
  std::vector<Change> changes;
  const std::vector<DumpedPtr> others = context.like(extents);
  const std::vector<OneSidedPtr> of_b = context.only_b(extents);
  const std::size_t tried = others.size() + of_b.size();
  for (const DumpedPtr& other : others) {
    if (other->site().copy_of) continue;
    if (of && (&other->site() == &of->site() || context.same_values(*of, *other))) continue;
    changes.push_back(reads_instead(other, other->site().a.name, own, tried));
  }
  // What B has alone may be right or wrong: all of its values are taken as they are.
  for (const OneSidedPtr& other : of_b) {
    changes.push_back(reads_instead(other, other->name(), own, tried));
    changes.back().dof = static_cast<double>(extents.rows() * extents.features);
  }
  return changes;
}

std::shared_ptr<const Dumped> Dumped::make(const Run& run, const Site& site, Layout layout) {
  if (!site.compared()) return nullptr;
  std::optional<Plane> a = plane_of(site.views.a, run.extent, layout);
  std::optional<Plane> b = plane_of(site.views.b, run.extent, layout);
  if (!a || !b || a->extents != b->extents || a->extents.rows() == 0) return nullptr;
  return std::shared_ptr<const Dumped>(new Dumped(site, std::move(*a), std::move(*b)));
}

Block Dumped::predict(const Reading& from, const Grid& grid) const {
  return (from.side == &AlignedPair::b ? b_ : a_).at(grid, from.unit);
}

std::vector<Change> Dumped::changes(const Context& context) const {
  return substitutes(context, extents(), text(), this);
}

std::string Dumped::text() const { return fmt::format("'{}'", printable(site_.a.name, 60)); }

std::shared_ptr<const OneSided> OneSided::make(const Run& run, const Lone& lone,
                                               View AlignedPair::*side, Layout layout) {
  std::optional<Plane> plane = plane_of(lone.view, run.extent, layout);
  if (!plane || plane->extents.rows() == 0) return nullptr;
  return std::shared_ptr<const OneSided>(new OneSided(lone, side, std::move(*plane)));
}

Block OneSided::predict(const Reading& from, const Grid& grid) const {
  return from.side == side_ ? values_.at(grid, from.unit) : Block{};
}

std::vector<Change> OneSided::changes(const Context& context) const {
  return substitutes(context, extents(), text(), nullptr);
}

std::string OneSided::text() const {
  return fmt::format("'{}', which {} does not have", printable(lone_.name, 60),
                     side_ == &AlignedPair::a ? 'B' : 'A');
}

Block AsInA::predict(const Reading& from, const Grid& grid) const {
  Block block = target_->predict({&AlignedPair::a, from.unit}, grid);
  for (std::size_t i = 0; i < block.values.size() && !by_column_.empty(); ++i) {
    const uint64_t at = i % block.features;
    const Line& line = by_column_[grid.columns.empty() ? at : grid.columns[at]];
    block.values[i] = (block.values[i] - line.offset) / line.factor;
  }
  return block;
}

}  // namespace tensordiff::operators
