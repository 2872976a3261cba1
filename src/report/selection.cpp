#include "report/selection.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace tensordiff {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Failed ones first: a reader must not have to look for them. What the baseline has comes after
// what is new.
int severity(const PairRow& row) {
  if (row.novelty == Novelty::known) return 3;
  switch (row.comparison.status) {
    case Status::error:
      return 0;
    case Status::incomparable:
      return 1;
    case Status::different:
      return 2;
    case Status::same_shape:
      return 3;
    case Status::close:
      return 4;
    case Status::equal:
      return 5;
    case Status::identical:
      return 6;
  }
  return 7;
}

// Undefined cosine: nothing can be said for the pair, so it sorts as the least similar, unless its
// values agree anyway (two tensors of zeros).
double similarity(const PairRow& row) {
  if (row.comparison.diff.cosine) return *row.comparison.diff.cosine;
  return row.comparison.status >= Status::different ? -kInfinity : 1;
}

// Instruction sets differ in the last bits of sums; the order of rows must not show it.
float settled(double sum) { return static_cast<float>(sum); }

}  // namespace

bool is_alone(const Report& report) {
  return !report.pairs.empty() && report.pairs[0].matched_by == &kEachWithEach;
}

double change_magnitude(const PairRow& row) {
  const Diff& diff = row.comparison.diff;
  const Status status = row.comparison.status;
  if (status == Status::error || status == Status::incomparable) return kInfinity;
  if (diff.nonfinite_mismatch > 0) return kInfinity;
  return diff.rel_l2.value_or(0);
}

const PairRow* largest_change(const Report& report) {
  const PairRow* largest = nullptr;
  for (const PairRow& row : report.pairs) {
    const Status status = row.comparison.status;
    if (status != Status::different && status != Status::incomparable) continue;
    if (!largest || change_magnitude(row) > change_magnitude(*largest)) largest = &row;
  }
  return largest;
}

std::vector<const PairRow*> select_pairs(const Report& report, const RenderOptions& options,
                                         Sort fallback) {
  std::vector<const PairRow*> rows;
  for (const PairRow& row : report.pairs)
    if (!options.show || options.show->contains(row.comparison.status)) rows.push_back(&row);

  const auto sort_by = [&](auto key) {
    std::ranges::stable_sort(rows, {}, [&](const PairRow* row) { return key(*row); });
  };
  switch (options.sort.value_or(fallback)) {
    case Sort::layer:
      break;  // Display order is by layer already.
    case Sort::name:
      sort_by([](const PairRow& row) { return row.a.name; });
      break;
    case Sort::similarity:
      sort_by([most_first = is_alone(report)](const PairRow& row) {
        return settled(most_first ? -similarity(row) : similarity(row));
      });
      break;
    case Sort::difference:
      sort_by([](const PairRow& row) {
        return std::tuple(severity(row), settled(-change_magnitude(row)));
      });
      break;
    case Sort::size:
      sort_by([](const PairRow& row) {
        return -static_cast<double>(element_count(row.a.shape).value_or(0));
      });
      break;
  }
  return rows;
}

}  // namespace tensordiff
