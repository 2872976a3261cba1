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
#include "diagnose/graph/heads.h"
#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/sample/fit.h"
#include "tensor/sample.h"

namespace tensordiff {
namespace {

constexpr std::size_t kSample = 8192;
constexpr std::size_t kFew = 256;
constexpr uint64_t kHeadDimMin = 8, kHeadDimMax = 512;
constexpr std::size_t kRankMaxTried = 5;  // 120 orders.

// Without axes of size 1, which may stand anywhere.
View without_units(View view) {
  for (std::size_t axis = view.shape.size(); axis-- > 0;)
    if (view.shape[axis] == 1) view = squeezed(std::move(view), axis);
  return view;
}

// Sequences one after another, whatever the order that they were dumped in.
View batch_first(const Case& it, const View& view) {
  const bool moved = it.run.activations && view.shape.size() > 2 && it.run.extent.batch > 1 &&
                     view.shape[0] == it.run.extent.tokens && view.shape[1] == it.run.extent.batch;
  return moved ? by_tokens(view, it.run.extent).view : view;
}

View view_of(const Matrix& matrix) {
  const char* first = reinterpret_cast<const char*>(matrix.values.data());
  std::string bytes(first, matrix.values.size() * sizeof(double));
  return contiguous_view(DType::f64, {matrix.batch, matrix.tokens, matrix.features},
                         ByteSource(bytes_of(std::move(bytes))))
      .value();
}

struct ViewPair {
  View a, b;
};

// As they are, and token after token where heads stand before tokens. What was computed again is in
// memory, and tells only as a whole.
std::vector<ViewPair> pairs_of(const Case& it) {
  if (it.own && (!it.a.whole || !it.b.whole)) return {};
  if (it.own) return {{view_of(it.a), view_of(it.b)}};
  const View &a = it.site.views.a, &b = it.site.views.b;
  std::vector<ViewPair> sides = {{batch_first(it, a), batch_first(it, b)}};
  const TokenView tokens = by_tokens(a, it.run.extent);
  if (it.run.activations && tokens.heads > 0 && !std::ranges::is_sorted(tokens.order))
    sides.push_back({tokens.view, by_tokens(b, it.run.extent).view});
  return sides;
}

// The ways to see a: as it is, and with the heads of its last axis apart, as code that forgets to
// transpose them back does.
std::vector<View> ways_to_see(const Case& it, const View& side) {
  const View a = without_units(side);
  std::vector<View> ways = {a};
  if (!it.run.activations || a.shape.empty() || a.shape.size() >= kRankMaxTried) return ways;
  const uint64_t features = a.shape.back();
  std::vector<uint64_t> dims = known_head_dims(it.run, it.site);
  if (dims.empty())
    for (uint64_t dim = kHeadDimMin; dim <= std::min(features / 2, kHeadDimMax); ++dim)
      dims.push_back(dim);
  for (const uint64_t dim : dims)
    if (dim > 1 && dim < features && features % dim == 0)
      ways.push_back(split(a, a.shape.size() - 1, std::vector<uint64_t>{features / dim, dim}));
  return ways;
}

// Whether an order only turns two halves of the features into pairs, or back: `interleave` says so.
bool interleaves(const View& view, const std::vector<uint64_t>& order) {
  const std::size_t rank = order.size();
  for (std::size_t axis = 0; axis + 2 < rank; ++axis)
    if (order[axis] != axis) return false;
  return view.shape[rank - 1] == 2 || view.shape[rank - 2] == 2;
}

struct Walk {
  std::vector<uint64_t> order;
  bool same_shape = true;
  double left = INFINITY;
};

double left_at(const View& walked, std::span<const uint64_t> positions,
               std::span<const double> of_b) {
  const Result<Reader> reader = Reader::open(walked);
  if (!reader.ok()) return INFINITY;
  const std::vector<double> of_a = values_at(reader.value(), positions);
  const double size = norm(of_a);
  return size > 0 ? distance(of_a, of_b) / size : 1;
}

void walk(const Case& it, const ViewPair& sides, Walk& best) {
  const uint64_t count = sides.a.elements();
  const Result<Reader> reader_b = Reader::open(sides.b);
  if (!reader_b.ok() || count < 2) return;
  const std::vector<uint64_t> few = sample_positions(count, kFew),
                              many = sample_positions(count, kSample);
  const std::vector<double> few_b = values_at(reader_b.value(), few);
  const std::vector<double> many_b = values_at(reader_b.value(), many);
  for (const View& view : ways_to_see(it, sides.a)) {
    const std::size_t rank = view.shape.size();
    if (rank < 2 || rank > kRankMaxTried) continue;
    std::vector<uint64_t> order(rank);
    std::iota(order.begin(), order.end(), 0);
    while (std::ranges::next_permutation(order).found) {
      if (it.run.activations && rank > 2 && interleaves(view, order)) continue;
      const View walked = permuted(view, order);
      // A few values tell most orders off.
      if (left_at(walked, few, few_b) > std::min(it.before / 2, 2 * best.left)) continue;
      const double left = left_at(walked, many, many_b);
      if (left < best.left) best = {order, walked.shape == view.shape, left};
    }
  }
}

std::optional<Explanation> examine(const Case& it) {
  Walk best;
  for (const ViewPair& sides : pairs_of(it)) walk(it, sides, best);
  if (best.order.empty()) return std::nullopt;
  Explanation result;
  result.after = best.left;
  result.text = fmt::format("B is A with its axes in the order {}{}", shape_text(best.order),
                            best.same_shape ? "" : ", reshaped and not transposed back");
  result.parameters = {{"order", best.order}};
  return result;
}

}  // namespace

constinit const Diagnosis diagnoses::axis_permutation = {
    .code = "axis_permutation",
    .question = "Are B's elements those of A with permuted axes?",
    .explains = "a transpose missing or too many; a reshape in place of a transpose",
    .layout = true,
    .examine = examine,
};

}  // namespace tensordiff
