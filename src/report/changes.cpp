#include "report/changes.h"

#include <algorithm>
#include <limits>

#include "report/selection.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

// Also where what both have is the same, but one has more of it.
bool is_change(const PairRow& row) {
  return row.comparison.status >= Status::different ||
         std::ranges::find(row.steps, Op::truncate, &Step::op) != row.steps.end();
}

ChangeKind kind_of(const PairRow& row) {
  if (row.comparison.status == Status::error) return ChangeKind::unreadable;
  if (row.comparison.status == Status::incomparable) return ChangeKind::shape;
  if (element_count(row.a.shape) != element_count(row.b.shape)) return ChangeKind::shape;
  // With --shape-only no element was read, and shapes are all that can differ.
  const bool read = row.comparison.a.mean || row.comparison.a.nan + row.comparison.a.inf > 0;
  return read || row.a.shape == row.b.shape ? ChangeKind::stats : ChangeKind::shape;
}

Change unpaired(const Report::Unpaired& tensor, ChangeKind kind) {
  const Change::Tensor side{&tensor.id, &tensor.stats};
  Change change{.kind = kind, .name = tensor.id.name, .message = tensor.id.fault};
  if (!tensor.id.fault.empty()) change.kind = ChangeKind::unreadable;
  (kind == ChangeKind::added ? change.b : change.a) = side;
  change.magnitude = std::numeric_limits<double>::infinity();
  return change;
}

}  // namespace

std::vector<Change> list_changes(const Report& report, const RenderOptions& options) {
  std::vector<Change> changes;
  for (const PairRow* row : select_pairs(report, options, Sort::name)) {
    if (!is_change(*row)) continue;
    changes.push_back({.kind = kind_of(*row),
                       .name = row->a.name,
                       .a = {&row->a, &row->comparison.a},
                       .b = {&row->b, &row->comparison.b},
                       .message = message_of(*row),
                       .magnitude = change_magnitude(*row)});
  }
  if (options.show_unpaired) {
    for (const auto& tensor : report.only_a)
      changes.push_back(unpaired(tensor, ChangeKind::removed));
    for (const auto& tensor : report.only_b) changes.push_back(unpaired(tensor, ChangeKind::added));
  }
  const Sort sort = options.sort.value_or(Sort::name);
  if (sort == Sort::name)
    std::ranges::stable_sort(changes, {}, &Change::name);
  else if (sort == Sort::difference)
    std::ranges::stable_sort(changes, std::greater(), &Change::magnitude);
  if (options.top.value_or(0) > 0 && changes.size() > *options.top) changes.resize(*options.top);
  return changes;
}

}  // namespace tensordiff
