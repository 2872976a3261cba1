#include "analyze/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "align/view.h"
#include "analyze/edit.h"
#include "analyze/group_sums.h"
#include "analyze/patch.h"
#include "analyze/profile.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr uint64_t kLinesMax = uint64_t{1} << 18;  // Vocabularies have fewer.
constexpr std::size_t kSample = 64;                // Values of each line.
// Unrelated lines of 64 values have cosines of about 0.13; training leaves 0.99.
constexpr double kSameLine = 0.9;
// Share of lines that may have been retrained beyond that where all others kept their places.
constexpr double kStrange = 0.05;
constexpr std::size_t kTextMax = 60;

const Tensor* find(const Catalog& catalog, const std::string& name) {
  for (const Tensor& tensor : catalog.tensors)
    if (tensor.name == name && tensor.fault.empty()) return &tensor;
  return nullptr;
}

// Some values of each row, of length 1. Zero rows stay zero.
Result<Dense> unit_rows(const View& view) {
  Dense lines = TRY(read_patch(view, {kLinesMax, kSample}));
  for (std::size_t i = 0; i < lines.rows; ++i) {
    const double length = std::sqrt(dot(lines.row(i), lines.row(i)));
    for (double& value : lines.row(i))
      if (length > 0) value /= length;
  }
  return lines;
}

bool same_line(std::span<const double> x, std::span<const double> y) {
  const double product = dot(x, y);
  return product >= kSameLine || (product == 0 && dot(x, x) == 0 && dot(y, y) == 0);
}

// Which lines of the larger are left over once each of the smaller has found its own, in order.
std::optional<std::vector<uint64_t>> left_over(const Dense& larger, const Dense& smaller) {
  std::vector<uint64_t> left;
  std::size_t in_place = 0, at = 0;
  for (std::size_t i = 0; i < smaller.rows; ++i)
    in_place += same_line(smaller.row(i), larger.row(i));
  if (static_cast<double>(in_place) >= (1 - kStrange) * static_cast<double>(smaller.rows)) {
    for (at = smaller.rows; at < larger.rows; ++at) left.push_back(at);
    return left;
  }
  for (std::size_t i = 0; i < smaller.rows; ++i, ++at) {
    for (; at < larger.rows && !same_line(smaller.row(i), larger.row(at)); ++at) left.push_back(at);
    if (at == larger.rows) return std::nullopt;
  }
  for (; at < larger.rows; ++at) left.push_back(at);
  return left;
}

// Heads along this axis of the projection; 0 where it is none or their number is not known.
uint64_t heads_of(const Study& study, const Row& pair) {
  const Place& place = pair.a.place;
  const ModelConfig& config = study.facts_a().model();
  if (!place.known) return 0;
  if (place.step == Role::query || place.step == Role::attention_output)
    return config.heads.value_or(0);
  if (place.step == Role::key || place.step == Role::value)
    return config.kv_heads.value_or(config.heads.value_or(0));
  return 0;
}

// Numbers of the heads that the lines fill; empty where they are not whole heads.
std::vector<int64_t> whole_heads(const std::vector<uint64_t>& lines, uint64_t size) {
  std::vector<int64_t> heads;
  if (size == 0 || lines.size() % size != 0) return {};
  for (std::size_t i = 0; i < lines.size(); i += size) {
    if (lines[i] % size != 0 || lines[i + size - 1] != lines[i] + size - 1) return {};
    heads.push_back(static_cast<int64_t>(lines[i] / size));
  }
  return heads;
}

}  // namespace

std::vector<uint64_t> zeroed_lines(const AlignedPair& views, Axis axis) {
  std::vector<uint64_t> lines;
  const auto zero = axis == Axis::columns ? zero_columns : zero_rows;
  if (axis == Axis::rows && extents_of(views.a.shape).rows > kGroupsMax) return lines;
  const std::vector<uint64_t> before = zero(views.a), after = zero(views.b);
  std::ranges::set_difference(after, before, std::back_inserter(lines));
  return lines;
}

std::vector<const Row*> resized_pairs(const Study& study) {
  std::vector<const Row*> found;
  for (const Row* pair : study.pairs()) {
    const Shape &a = pair->a.shape, &b = pair->b.shape;
    if (!is_weight(*pair) || a.size() != 2 || b.size() != 2) continue;
    if ((a[0] == b[0]) != (a[1] == b[1])) found.push_back(pair);
  }
  return found;
}

std::optional<Resizing> find_resizing(const Study& study, const Row& pair) {
  const Tensor *a = find(study.a(), pair.a.name), *b = find(study.b(), pair.b.name);
  if (!a || !b || a->view.shape.size() != 2 || b->view.shape.size() != 2) return std::nullopt;
  for (const Tensor* tensor : {a, b})
    if (!tensor->shards.empty() || is_complex(tensor->view.dtype) || tensor->view.terms > 1)
      return std::nullopt;
  const Axis axis = a->view.shape[1] == b->view.shape[1] ? Axis::rows : Axis::columns;
  constexpr uint64_t kTurned[] = {1, 0};
  const View view_a = axis == Axis::rows ? a->view : permuted(a->view, kTurned);
  const View view_b = axis == Axis::rows ? b->view : permuted(b->view, kTurned);
  if (view_a.shape[1] != view_b.shape[1]) return std::nullopt;
  const uint64_t before = view_a.shape[0], after = view_b.shape[0];
  // Two values point the same way too often.
  if (std::max(before, after) > kLinesMax || view_a.shape[1] < 8) return std::nullopt;
  const Result<Dense> lines_a = unit_rows(view_a), lines_b = unit_rows(view_b);
  if (!lines_a.ok() || !lines_b.ok()) return std::nullopt;
  const bool smaller = after < before;
  const std::optional<std::vector<uint64_t>> left = left_over(
      smaller ? lines_a.value() : lines_b.value(), smaller ? lines_b.value() : lines_a.value());
  if (!left) return std::nullopt;
  return Resizing{axis, before, after, *left};
}

std::string lines_text(const Study& study, const Row& pair, Axis axis,
                       const std::vector<uint64_t>& lines, uint64_t of) {
  const uint64_t heads = heads_of(study, pair);
  if (heads > 0 && of % heads == 0) {
    const std::vector<int64_t> whole = whole_heads(lines, of / heads);
    if (!whole.empty()) return fmt::format("heads {} of {}", ranges_text(whole), heads);
  }
  const std::string_view what = axis == Axis::rows ? "rows" : "columns";
  const std::string which = ranges_text(std::vector<int64_t>(lines.begin(), lines.end()));
  if (which.size() <= kTextMax) return fmt::format("{} {} of {}", what, which, of);
  return fmt::format("{} of {} {}", lines.size(), of, what);
}

}  // namespace tensordiff
