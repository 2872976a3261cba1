// b holds the elements of a in the order of other axes: transposed where the sizes do not tell, or
// reshaped where it should have been transposed.
//
// For each order of the axes, a is walked in that order and compared with b in row-major order, at
// scattered positions; the shapes need not agree.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "align/view.h"
#include "base/text.h"
#include "diagnose/diagnosis.h"
#include "diagnose/fit.h"
#include "tensor/sample.h"

namespace tensordiff {
namespace {

constexpr std::size_t kSample = 8192;
constexpr std::size_t kRankMaxTried = 5;  // 120 orders.

// Without axes of size 1, which may stand anywhere.
View without_units(View view) {
  for (std::size_t axis = view.shape.size(); axis-- > 0;)
    if (view.shape[axis] == 1) view = squeezed(std::move(view), axis);
  return view;
}

std::optional<Explanation> examine(const Case& it) {
  const View a = without_units(it.site.views.a);
  const std::size_t rank = a.shape.size();
  if (rank < 2 || rank > kRankMaxTried) return std::nullopt;
  const Result<Reader> reader_b = Reader::open(it.site.views.b);
  if (!reader_b.ok()) return std::nullopt;
  const std::vector<uint64_t> positions = sample_positions(a.elements(), kSample);
  const std::vector<double> of_b = values_at(reader_b.value(), positions);

  Explanation best;
  best.after = INFINITY;
  std::vector<uint64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  while (std::ranges::next_permutation(order).found) {
    const Result<Reader> reader = Reader::open(permuted(a, order));
    if (!reader.ok()) return std::nullopt;
    const std::vector<double> of_a = values_at(reader.value(), positions);
    const double size = norm(of_a);
    const double after = size > 0 ? distance(of_a, of_b) / size : 1;
    if (after >= best.after) continue;
    best.after = after;
    const bool same_shape = permuted(a, order).shape == a.shape;
    best.text = fmt::format("b holds a with its axes in the order {}{}", shape_text(order),
                            same_shape ? "" : ", reshaped and not transposed back");
    best.parameters = {{"order", order}};
  }
  return best;
}

}  // namespace

constinit const Diagnosis diagnoses::axis_permutation = {
    .code = "axis_permutation",
    .question = "Are the elements of b those of a in the order of other axes?",
    .explains = "a transpose missing or too many; a reshape in place of a transpose",
    .layout = true,
    .examine = examine,
};

}  // namespace tensordiff
