#include "diagnose/hypotheses/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "diagnose/noise/roundoff.h"
#include "diagnose/operators/combine.h"
#include "diagnose/operators/dropped.h"
#include "diagnose/operators/reordered.h"

namespace tensordiff::hypotheses {
namespace {

using operators::Block;
using operators::Change;
using operators::Context;
using operators::Family;
using operators::Grid;
using operators::OperatorPtr;

// Lines that are looked at: matching them costs their number times that of the values in one.
constexpr uint64_t kLinesMax = 8192;
constexpr uint64_t kValuesMax = uint64_t{1} << 20;
// Bits that the values of a cast lack: bf16 has three fewer than f16 (design, section 10).
constexpr double kFewerBits = 3;
// A sequence that is off by one or two, in either direction; more are told as an order.
constexpr int64_t kShifts[] = {1, -1, 2, -2};

// Runs of neighbours that stay together: what it takes to say an order.
std::size_t runs_of(const std::vector<uint64_t>& order) {
  std::size_t runs = order.empty() ? 0 : 1;
  for (std::size_t i = 1; i < order.size(); ++i) runs += order[i] != order[i - 1] + 1;
  return runs;
}

bool is_identity(const std::vector<uint64_t>& order) {
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order[i] != i) return false;
  return true;
}

bool is_permutation(std::vector<uint64_t> order) {
  std::ranges::sort(order);
  return is_identity(order);
}

// "0, 1, 3–7": the places that an order changes.
std::string moved_text(const std::vector<uint64_t>& order) {
  std::string text;
  std::size_t told = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] == i) continue;
    std::size_t end = i;
    while (end + 1 < order.size() && order[end + 1] == order[end] + 1) ++end;
    if (++told > 4) return text + ", …";
    const auto range = [](uint64_t first, uint64_t count) {
      return count == 1 ? fmt::format("{}", first) : fmt::format("{}–{}", first, first + count - 1);
    };
    text += fmt::format("{}{} from {}", text.empty() ? "" : ", ", range(i, end - i + 1),
                        range(order[i], end - i + 1));
    i = end;
  }
  return text;
}

void change_columns(const Context& context, const OperatorPtr& step, double tolerance,
                    std::vector<Change>& changes) {
  const operators::DumpedPtr& target = context.target(step->extents().layout);
  const uint64_t features = step->extents().features;
  const Grid grid{context.grid(step->extents()).rows};
  if (features < 2 || features > kLinesMax || grid.rows.size() < 2) return;
  const Block p = step->predict({&AlignedPair::b}, grid),
              y = target->predict({&AlignedPair::b}, grid);
  const auto order = places_of(turned(y), turned(p), tolerance);
  if (!order || is_identity(*order) || !is_permutation(*order)) return;
  const double bits =
      static_cast<double>(runs_of(*order)) * std::log2(static_cast<double>(features));
  changes.push_back({std::make_shared<operators::Columns>(step, *order),
                     "block_permutation",
                     fmt::format("B holds the features in another order: {}", moved_text(*order)),
                     "feature_order",
                     Family::index,
                     bits,
                     0,
                     {{"order", *order}}});
}

// Tokens that moved to a neighbour's place in each sequence, and those at its end to the other one.
// Told before any order: where tokens are alike, their rows do not show which of them is which.
std::optional<std::vector<uint64_t>> shifted(const operators::Extents& extents, int64_t by) {
  if (extents.rows_by_axis.size() != 2 || extents.rows_by_axis[1] < 2) return std::nullopt;
  const auto tokens = static_cast<int64_t>(extents.rows_by_axis[1]);
  std::vector<uint64_t> order(extents.rows());
  for (std::size_t row = 0; row < order.size(); ++row) {
    const int64_t at = static_cast<int64_t>(row) % tokens;
    order[row] = row - static_cast<uint64_t>(at) +
                 static_cast<uint64_t>(((at - by) % tokens + tokens) % tokens);
  }
  return order;
}

bool holds(const Block& y, const Block& p, const std::vector<uint64_t>& order, double tolerance) {
  for (uint64_t row = 0; row < y.rows(); ++row) {
    double gaps = 0, size = 0;
    for (uint64_t c = 0; c < y.features; ++c) {
      gaps += std::pow(y.row(row)[c] - p.row(order[row])[c], 2);
      size += std::pow(y.row(row)[c], 2);
    }
    if (!(gaps <= tolerance * tolerance * size)) return false;
  }
  return true;
}

// Whether one was found.
bool change_places(const OperatorPtr& step, const Block& y, const Block& p, double tolerance,
                   std::vector<Change>& changes) {
  for (const int64_t by : kShifts) {
    const auto order = shifted(step->extents(), by);
    if (!order || !holds(y, p, *order, tolerance)) continue;
    changes.push_back({std::make_shared<operators::Rows>(step, step->extents(), *order),
                       "token_shift",
                       fmt::format("token t of B is token t {} {} of A, and the ends wrap around",
                                   by > 0 ? "−" : "+", std::abs(by)),
                       "token_shift",
                       Family::index,
                       std::log2(std::size(kShifts)),
                       0,
                       {{"shift", static_cast<double>(by)}}});
    return true;
  }
  return false;
}

void change_rows(const Context& context, const OperatorPtr& step, double tolerance,
                 std::vector<Change>& changes) {
  const operators::DumpedPtr& target = context.target(step->extents().layout);
  const operators::Extents& extents = step->extents();
  const uint64_t rows = extents.rows();
  if (rows < 2 || rows > kLinesMax || rows * extents.features > kValuesMax) return;
  Grid grid;
  grid.rows.resize(rows);
  std::iota(grid.rows.begin(), grid.rows.end(), 0);
  const Block p = step->predict({&AlignedPair::b}, grid),
              y = target->predict({&AlignedPair::b}, grid);
  if (p.empty() || p.values.size() != y.values.size()) return;
  if (change_places(step, y, p, tolerance, changes)) return;
  const auto order = places_of(y, p, tolerance);
  if (!order || is_identity(*order)) return;
  const auto all_alike = [](const Block& block) {
    for (uint64_t r = 1; r < block.rows(); ++r)
      if (!std::equal(block.row(r), block.row(r) + block.features, block.row(0))) return false;
    return true;
  };
  const bool one = all_alike(y) && !all_alike(p);
  const bool moved = is_permutation(*order);
  const double bits =
      one ? std::log2(static_cast<double>(rows))
          : static_cast<double>(runs_of(*order)) * std::log2(static_cast<double>(rows));
  changes.push_back({std::make_shared<operators::Rows>(step, extents, *order),
                     moved ? "row_permutation" : "operator",
                     one ? fmt::format("all rows of B are row {} of A: the input that "
                                       "distinguishes them was not passed in",
                                       (*order)[0])
                     : moved
                         ? fmt::format("B holds the rows in another order: {}", moved_text(*order))
                         : fmt::format("B's rows are other rows of A: {}", moved_text(*order)),
                     one ? "one_row" : (moved ? "row_order" : "other_rows"), Family::index, bits});
}

void change_bits(const Context& context, const OperatorPtr& step, std::vector<Change>& changes) {
  const double unit = roundoff_of(context.site().views.b);
  const double fewer = std::log2(unit / context.unit(false));
  if (fewer < kFewerBits) return;
  const double count = context.misfit(*step, true).count;
  const int fraction = static_cast<int>(std::round(-std::log2(unit))) - 1;
  Change change{
      step,
      "cast",
      fmt::format("B computes this step in {}: its values have {} bits of fraction",
                  fraction == 7 ? "bf16" : (fraction == 10 ? "f16 or TF32" : "8 bits"), fraction),
      "computed_in",
      Family::quantiser,
      1 - count * fewer,
      0,
      {{"fraction_bits", static_cast<double>(fraction)}}};
  change.unit = unit;
  changes.push_back(std::move(change));
}

}  // namespace

std::vector<Change> output_changes(const Context& context, const OperatorPtr& step,
                                   double tolerance) {
  std::vector<Change> changes;
  if (!context.target(step->extents().layout)) return changes;
  if (auto change = operators::dropped(context, step)) changes.push_back(std::move(*change));
  change_columns(context, step, tolerance, changes);
  change_rows(context, step, tolerance, changes);
  change_bits(context, step, changes);
  return changes;
}

}  // namespace tensordiff::hypotheses
