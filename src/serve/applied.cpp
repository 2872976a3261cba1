#include "serve/applied.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>

#include "align/view.h"
#include "diagnose/sample/matrix.h"
#include "tensor/sample.h"

namespace tensordiff::serve {
namespace {

// Values that tell whether a transform explains a pair: enough that a few rows of each part of a
// large tensor are among them, and read in milliseconds.
constexpr std::size_t kSample = 4096;
// What a transform may leave of the difference. Findings are accepted at far less; this only keeps
// out an axis that was guessed wrongly.
constexpr double kLeftMax = 0.5;
// Above so many elements no vector is fitted: one pass over them still takes well under a second.
constexpr uint64_t kFittedMax = uint64_t{1} << 24;
// Entries of a map or a vector, 8 MiB: a few of them are held for each pair that was looked at.
constexpr uint64_t kIndicesMax = uint64_t{1} << 20;

// Which factor and offset an element has.
enum class Per { all, feature, row };

// Row and column of A that each row and column of T(A) comes from, and what is done to the value.
struct Change {
  std::vector<uint64_t> rows = {}, columns = {};   // Empty: those of A as they are.
  std::vector<double> factors = {}, offsets = {};  // Empty: 1 and 0.
  Per per = Per::all;
  std::function<double(double)> cast = {};  // Last of all; may be empty.
};

const Parameter* parameter(const Finding& finding, std::string_view name) {
  const auto found = std::ranges::find(finding.parameters, name, &Parameter::name);
  return found == finding.parameters.end() ? nullptr : &*found;
}

std::optional<double> number(const Finding& finding, std::string_view name) {
  const Parameter* found = parameter(finding, name);
  const double* value = found ? std::get_if<double>(&found->value) : nullptr;
  return value && std::isfinite(*value) ? std::optional(*value) : std::nullopt;
}

std::string word(const Finding& finding, std::string_view name) {
  const Parameter* found = parameter(finding, name);
  const std::string* value = found ? std::get_if<std::string>(&found->value) : nullptr;
  return value ? *value : "";
}

const std::vector<uint64_t>* list(const Finding& finding, std::string_view name) {
  const Parameter* found = parameter(finding, name);
  return found ? std::get_if<std::vector<uint64_t>>(&found->value) : nullptr;
}

// --- the transforms, for one way to see A as tokens by features ---

struct Grid {
  uint64_t batch = 1, tokens = 1, features = 1;
  uint64_t rows() const { return batch * tokens; }
};

// Blocks of an axis in another order: block i comes from block source[i].
std::optional<std::vector<uint64_t>> blocks(uint64_t size, const std::vector<uint64_t>& source) {
  if (source.empty() || size % source.size() != 0 || size > kIndicesMax) return std::nullopt;
  const uint64_t each = size / source.size();
  std::vector<uint64_t> from(size);
  for (uint64_t i = 0; i < size; ++i) {
    if (source[i / each] >= source.size()) return std::nullopt;
    from[i] = source[i / each] * each + i % each;
  }
  return from;
}

std::optional<Change> moved_rows(const Grid& grid, const std::vector<uint64_t>& source) {
  std::optional<std::vector<uint64_t>> from = blocks(grid.rows(), source);
  if (!from) return std::nullopt;
  return Change{.rows = std::move(*from)};
}

std::optional<Change> moved_columns(const Grid& grid, const std::vector<uint64_t>& source) {
  std::optional<std::vector<uint64_t>> from = blocks(grid.features, source);
  if (!from) return std::nullopt;
  return Change{.columns = std::move(*from)};
}

std::optional<Change> shifted(const Grid& grid, const Finding& finding) {
  const std::optional<double> shift = number(finding, "shift");
  const auto tokens = static_cast<int64_t>(grid.tokens);
  if (!shift || std::abs(*shift) >= static_cast<double>(tokens) || grid.rows() > kIndicesMax)
    return std::nullopt;
  const bool wraps = word(finding, "wraps") == "yes";
  Change change;
  for (uint64_t row = 0; row < grid.rows(); ++row) {
    const auto token = static_cast<int64_t>(row % grid.tokens);
    int64_t from = token - static_cast<int64_t>(*shift);
    // A token without a partner stays as it is.
    if (from < 0 || from >= tokens) from = wraps ? (from + tokens) % tokens : token;
    change.rows.push_back(row - static_cast<uint64_t>(token) + static_cast<uint64_t>(from));
  }
  return change;
}

std::optional<Change> interleaved(const Grid& grid, const Finding& finding) {
  const auto size = static_cast<uint64_t>(number(finding, "block").value_or(0));
  if (size < 2 || size % 2 != 0 || grid.features % size != 0 || grid.features > kIndicesMax)
    return std::nullopt;
  const bool pairs_in_b = word(finding, "b") == "interleaved";
  Change change;
  for (uint64_t i = 0; i < grid.features; ++i) {
    const uint64_t at = i % size, half = size / 2;
    const uint64_t from =
        pairs_in_b ? at / 2 + (at % 2) * half : (at < half ? 2 * at : 2 * (at - half) + 1);
    change.columns.push_back(i - at + from);
  }
  return change;
}

std::optional<Change> cast_to(const Finding& finding) {
  struct Format {
    std::string_view name;
    int bits, exponent_min;  // Of the mantissa; of the smallest normal number.
  };
  static constexpr Format kFormats[] = {{"bf16", 7, -126}, {"f16", 10, -14},   {"tf32", 10, -126},
                                        {"f32", 23, -126}, {"f8_e4m3", 3, -6}, {"f8_e5m2", 2, -14}};
  const auto* format = std::ranges::find(kFormats, word(finding, "dtype"), &Format::name);
  if (format == std::end(kFormats)) return std::nullopt;
  const bool truncate = word(finding, "rounding") == "truncate";
  Change change;
  change.cast = [format = *format, truncate](double value) {
    if (value == 0 || !std::isfinite(value)) return value;
    const int exponent = std::max(std::ilogb(value), format.exponent_min);
    const double step = std::ldexp(1.0, exponent - format.bits);
    return (truncate ? std::trunc(value / step) : std::nearbyint(value / step)) * step;
  };
  return change;
}

std::optional<Change> times(std::optional<double> factor) {
  if (!factor) return std::nullopt;
  return Change{.factors = {*factor}};
}

std::optional<Change> reduced(const Grid& grid, const Finding& finding) {
  const std::string cause = word(finding, "cause");
  const double ranks = number(finding, "ranks").value_or(0);
  if (ranks < 1 || ranks > static_cast<double>(grid.features)) return std::nullopt;
  if (cause == "double_all_reduce") return times(ranks);
  if (cause == "averaged") return times(1 / ranks);
  const std::optional<double> shard = number(finding, "shard");
  if (cause != "same_shard" || !shard) return std::nullopt;
  return moved_columns(
      grid, std::vector<uint64_t>(static_cast<uint64_t>(ranks), static_cast<uint64_t>(*shard)));
}

// Of findings whose vector is not among the parameters: the one that fits best.
std::optional<Change> fitted(const Grid& grid, Per per, bool is_factor, const Reader& a,
                             const Reader& b) {
  if (grid.rows() * grid.features > kFittedMax) return std::nullopt;
  const uint64_t slices = per == Per::feature ? grid.features : grid.rows();
  if (slices > kIndicesMax) return std::nullopt;
  std::vector<double> top(slices), bottom(slices), x(grid.features), y(grid.features);
  for (uint64_t row = 0; row < grid.rows(); ++row) {
    a.values(row * grid.features, grid.features, x.data());
    b.values(row * grid.features, grid.features, y.data());
    for (uint64_t i = 0; i < grid.features; ++i) {
      if (!std::isfinite(x[i]) || !std::isfinite(y[i])) continue;
      const uint64_t slice = per == Per::feature ? i : row;
      top[slice] += is_factor ? x[i] * y[i] : y[i] - x[i];
      bottom[slice] += is_factor ? x[i] * x[i] : 1;
    }
  }
  for (uint64_t s = 0; s < slices; ++s) top[s] = bottom[s] > 0 ? top[s] / bottom[s] : is_factor;
  Change change{.per = per};
  (is_factor ? change.factors : change.offsets) = std::move(top);
  return change;
}

std::vector<Change> changes(const Finding& finding, const Grid& grid, const Reader& a,
                            const Reader& b) {
  std::vector<Change> all;
  const auto add = [&](std::optional<Change> change) {
    if (change) all.push_back(std::move(*change));
  };
  const std::string& code = finding.code;
  if (code == "scale" || code == "norm_epsilon") add(times(number(finding, "factor")));
  if (code == "cast") add(cast_to(finding));
  if (code == "reduction") add(reduced(grid, finding));
  if (code == "token_shift") add(shifted(grid, finding));
  if (code == "interleave") add(interleaved(grid, finding));
  if (const std::vector<uint64_t>* source = list(finding, "source")) {
    if (code == "block_permutation") add(moved_columns(grid, *source));
    if (code == "block_permutation" || code == "row_permutation") add(moved_rows(grid, *source));
  }
  if (code == "offset") {
    if (const std::optional<double> offset = number(finding, "offset"))
      add(Change{.offsets = {*offset}});
    else
      add(fitted(grid, Per::feature, false, a, b));
  }
  if (code == "softmax_shift") add(fitted(grid, Per::row, false, a, b));
  const bool no_factor = !number(finding, "factor");
  if (code == "norm_weight" || (code == "scale" && no_factor))
    add(fitted(grid, Per::feature, true, a, b));
  if ((code == "norm_epsilon" || code == "scale") && no_factor)
    add(fitted(grid, Per::row, true, a, b));
  return all;
}

// --- from a change to a view ---

// The values of some elements of T(A), row by row: those of one row of A are read at once.
class Computed {
 public:
  Computed(Change change, const Grid& grid) : change_(std::move(change)), grid_(grid) {}

  void decode(const Reader& a, uint64_t first, int64_t step, std::size_t count, float* out) const {
    std::vector<double> row;
    uint64_t held = UINT64_MAX;
    // A whole row is worth reading where at least a part of it is asked for.
    const bool by_row = count >= 8 && step == 1;
    for (std::size_t k = 0; k < count; ++k) {
      const auto at =
          static_cast<uint64_t>(static_cast<int64_t>(first) + static_cast<int64_t>(k) * step);
      const uint64_t r = at / grid_.features, i = at % grid_.features;
      const uint64_t from_row = change_.rows.empty() ? r : change_.rows[r];
      const uint64_t from = change_.columns.empty() ? i : change_.columns[i];
      double value = 0;
      if (by_row) {
        if (held != from_row) {
          row.resize(grid_.features);
          a.values(from_row * grid_.features, grid_.features, row.data());
          held = from_row;
        }
        value = row[from];
      } else {
        value = a.value(from_row * grid_.features + from);
      }
      out[k] = static_cast<float>(changed(value, r, i));
    }
  }

 private:
  double changed(double value, uint64_t row, uint64_t feature) const {
    const uint64_t slice = change_.per == Per::all ? 0 : change_.per == Per::row ? row : feature;
    if (!change_.factors.empty()) value *= change_.factors[slice];
    if (!change_.offsets.empty()) value += change_.offsets[slice];
    return change_.cast ? change_.cast(value) : value;
  }

  Change change_;
  Grid grid_;
};

View view_of(Change change, const Grid& grid, const TokenView& tokens) {
  const auto computed = std::make_shared<const Computed>(std::move(change), grid);
  Packed packed;
  packed.inputs = {tokens.view};
  packed.decode = [computed](std::span<const Reader> inputs, uint64_t first, int64_t step,
                             std::size_t count,
                             float* out) { computed->decode(inputs[0], first, step, count, out); };
  // The shape is that of a tensor that is there, so that it has no limit left to break.
  const View view = packed_view(DType::f32, tokens.view.shape, std::move(packed)).value();
  std::vector<uint64_t> back(tokens.order.size());
  for (std::size_t i = 0; i < back.size(); ++i) back[tokens.order[i]] = i;
  return permuted(view, back);
}

// The elements of a view in row-major order, in another shape, and times a number plus another one.
View respelt(const View& view, const Shape& shape, double times, const View* other) {
  Packed packed;
  packed.inputs = {view};
  if (other) packed.inputs.push_back(*other);
  packed.decode = [times](std::span<const Reader> inputs, uint64_t first, int64_t step,
                          std::size_t count, float* out) {
    for (std::size_t k = 0; k < count; ++k) {
      const auto at =
          static_cast<uint64_t>(static_cast<int64_t>(first) + static_cast<int64_t>(k) * step);
      const double more = inputs.size() > 1 ? inputs[1].value(at) : 0;
      out[k] = static_cast<float>(inputs[0].value(at) + times * more);
    }
  };
  return packed_view(DType::f32, shape, std::move(packed)).value();
}

// ‖b − x‖² over a sample, of the values that are finite in both.
double distance_to(const View& x, const View& b) {
  const std::vector<uint64_t> at = sample_positions(b.elements(), kSample);
  const Result<Reader> of_x = Reader::open(x), of_b = Reader::open(b);
  if (!of_x.ok() || !of_b.ok()) return INFINITY;
  const std::vector<double> values = values_at(of_x.value(), at),
                            wanted = values_at(of_b.value(), at);
  double sum = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double gap = wanted[i] - values[i];
    if (std::isfinite(gap)) sum += gap * gap;
  }
  return sum;
}

// All ways to see a shape as tokens by features; the one that a run has is not known here.
std::vector<Extent> extents(const Shape& shape) {
  std::vector<Extent> all = {{}};
  for (const uint64_t tokens : shape)
    for (const uint64_t batch : {uint64_t{1}, shape[0]})
      for (const bool heads_first : {false, true})
        if (shape.size() > 1) all.push_back({batch, tokens, heads_first});
  return all;
}

std::vector<View> by_tokens_and_features(const Finding& finding, const AlignedPair& pair) {
  std::vector<View> views;
  std::vector<std::vector<uint64_t>> seen;
  for (const Extent& extent : extents(pair.a.shape)) {
    const TokenView a = by_tokens(pair.a, extent), b = by_tokens(pair.b, extent);
    std::vector<uint64_t> way = a.order;
    way.insert(way.end(), {a.batch, a.tokens});
    if (std::ranges::find(seen, way) != seen.end()) continue;
    seen.push_back(std::move(way));
    const Grid grid{a.batch, a.tokens, a.features};
    const Result<Reader> of_a = Reader::open(a.view), of_b = Reader::open(b.view);
    if (!of_a.ok() || !of_b.ok() || grid.features == 0) return {};
    for (Change& change : changes(finding, grid, of_a.value(), of_b.value()))
      views.push_back(view_of(std::move(change), grid, a));
  }
  return views;
}

std::vector<View> candidates(const Finding& finding, const AlignedPair& pair,
                             const FindTensor& find) {
  const Shape& shape = pair.a.shape;
  const std::vector<uint64_t>* order = list(finding, "order");
  if (finding.code == "axis_permutation") {
    if (!order || order->size() != shape.size()) return {};
    std::vector<uint64_t> each = *order;
    std::ranges::sort(each);
    for (std::size_t i = 0; i < each.size(); ++i)
      if (each[i] != i) return {};
    return {respelt(permuted(pair.a, *order), shape, 0, nullptr)};
  }
  if (finding.code == "other_tensor" || finding.code == "residual_missing") {
    const std::optional<View> other = find(word(finding, "tensor"));
    if (!other || other->elements() != pair.a.elements() || is_complex(other->dtype)) return {};
    if (finding.code == "other_tensor") return {respelt(*other, shape, 0, nullptr)};
    const std::optional<double> factor = number(finding, "factor");
    if (!factor) return {};
    return {respelt(pair.a, shape, *factor, &*other)};
  }
  return by_tokens_and_features(finding, pair);
}

}  // namespace

std::optional<View> applied(const Finding& finding, const AlignedPair& pair,
                            const FindTensor& find) {
  if (pair.a.elements() == 0 || is_complex(pair.a.dtype) || is_complex(pair.b.dtype))
    return std::nullopt;
  std::vector<View> views = candidates(finding, pair, find);
  if (views.empty()) return std::nullopt;
  double least = distance_to(pair.a, pair.b) * kLeftMax * kLeftMax;
  std::optional<View> best;
  for (View& view : views) {
    const double left = distance_to(view, pair.b);
    if (left >= least) continue;
    least = left;
    best = std::move(view);
  }
  return best;
}

}  // namespace tensordiff::serve
