#include "diagnose/operators/dumped.h"

#include <fmt/format.h>

#include <numeric>

#include "align/view.h"
#include "base/text.h"
#include "diagnose/operators/context.h"
#include "tensor/reader.h"

namespace tensordiff::operators {
namespace {

constexpr uint64_t kHeldMax = uint64_t{1} << 20;  // Values: 8 MB of each side.

// +1 or −1, by the position alone.
double sign_at(uint64_t position) {
  uint64_t x = position + 0x9e3779b97f4a7c15U;  // The mixer of splitmix64.
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return ((x ^ (x >> 31)) & 1) == 0 ? 1 : -1;
}

}  // namespace

std::optional<Plane> plane_of(const View& view, const Extent& extent, Layout layout) {
  if (is_complex(view.dtype) || view.parts.empty() || view.shape.size() < 2) return std::nullopt;
  Plane plane;
  plane.extents.layout = layout;
  if (layout == Layout::channels) {
    const std::size_t rank = view.shape.size();
    if (rank < 3) return std::nullopt;
    std::vector<uint64_t> order = {0};
    for (uint64_t axis = 2; axis < rank; ++axis) order.push_back(axis);
    order.push_back(1);
    plane.view = permuted(view, order);
  } else {
    const TokenView tokens = by_tokens(view, layout == Layout::plain ? Extent{} : extent);
    plane.view = tokens.view;
    plane.extents.features = tokens.features;
    if (tokens.axis) plane.extents.rows_by_axis = {tokens.batch, tokens.tokens};
  }
  if (plane.extents.rows_by_axis.empty()) {
    const Shape& shape = plane.view.shape;
    if (shape.size() < 2) return std::nullopt;
    plane.extents.rows_by_axis.assign(shape.begin(), shape.end() - 1);
    plane.extents.features = shape.back();
  }
  return plane;
}

std::shared_ptr<const Dumped> Dumped::make(const Run& run, const Site& site, Layout layout) {
  if (!site.compared()) return nullptr;
  std::optional<Plane> a = plane_of(site.views.a, run.extent, layout);
  std::optional<Plane> b = plane_of(site.views.b, run.extent, layout);
  if (!a || !b || a->extents != b->extents || a->extents.rows() == 0) return nullptr;
  return std::shared_ptr<const Dumped>(new Dumped(site, std::move(*a), std::move(*b)));
}

const std::vector<double>& Dumped::all_of(bool of_b) const {
  std::optional<std::vector<double>>& held = of_b ? held_b_ : held_a_;
  if (held) return *held;
  held.emplace();
  const Result<Reader> reader = Reader::open(of_b ? b_ : a_);
  if (!reader.ok()) return *held;
  held->resize(extents_.rows() * extents_.features);
  reader.value().values(0, held->size(), held->data());
  if (!reader.value().intact()) held->clear();
  return *held;
}

Block Dumped::predict(const Reading& from, const Grid& grid) const {
  const bool of_b = from.side == &AlignedPair::b;
  const uint64_t features = extents_.features;
  Block block{grid.columns.empty() ? features : grid.columns.size()};
  const bool small = extents_.rows() * features <= kHeldMax;
  std::optional<Reader> reader;
  if (!small) {
    Result<Reader> opened = Reader::open(of_b ? b_ : a_);
    if (!opened.ok()) return {};
    reader = std::move(opened).value();
  } else if (all_of(of_b).empty()) {
    return {};
  }
  std::vector<double> line(features);
  block.values.reserve(grid.rows.size() * block.features);
  for (const uint64_t row : grid.rows) {
    if (row >= extents_.rows()) return {};
    const double* values = small ? all_of(of_b).data() + row * features : line.data();
    if (!small) reader->values(row * features, features, line.data());
    for (uint64_t i = 0; i < block.features; ++i) {
      const uint64_t column = grid.columns.empty() ? i : grid.columns[i];
      const double off = from.unit == 0 ? 0 : from.unit * sign_at(row * features + column);
      block.values.push_back(values[column] * (1 + off));
    }
  }
  if (reader && !reader->intact()) return {};
  return block;
}

std::vector<Change> Dumped::changes(const Context& context) const {
  std::vector<Change> changes;
  const std::vector<std::shared_ptr<const Dumped>> others = context.like(extents_);
  for (const auto& other : others) {
    if (&other->site() == &site_ || other->site().copy_of || context.same_values(*this, *other))
      continue;
    changes.push_back({.made = other,
                       .code = "other_tensor",
                       .text = fmt::format("B reads {} where A reads {}", other->text(), text()),
                       .cause = "other_input",
                       .family = Family::substitution,
                       .bits = std::log2(static_cast<double>(others.size()) + 1),
                       .parameters = {{"tensor", other->site().a.name}}});
  }
  return changes;
}

std::string Dumped::text() const { return fmt::format("'{}'", printable(site_.a.name, 60)); }

}  // namespace tensordiff::operators
