// The hypotheses of edit.h, each by itself.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "analyze/code_book.h"
#include "analyze/edit.h"
#include "analyze/group_sums.h"
#include "analyze/lines.h"
#include "analyze/low_rank.h"
#include "analyze/patch.h"
#include "analyze/profile.h"

namespace tensordiff {
namespace {

constexpr std::size_t kSample = 4096;

double rounded_to(DType dtype, double value) {
  std::byte bytes[8];
  encode(dtype, &value, 1, bytes);
  return decode_one(dtype, bytes);
}

// The distance of a value to the nearest of a type of 8 bits.
double off_f8(DType dtype, double value) {
  double least = std::numeric_limits<double>::infinity();
  for (int code = 0; code < 256; ++code)
    if (const double each = f8_table(dtype)[code]; std::isfinite(each))
      least = std::min(least, std::abs(each - value));
  return least;
}

// Whether each value of B is that of A rounded to the type.
bool is_rounded(const std::vector<double>& a, const std::vector<double>& b, DType dtype) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!can_encode(dtype)) {
      // Values in the middle of two may go to either.
      if (std::isfinite(a[i]) && std::abs(b[i] - a[i]) > off_f8(dtype, a[i])) return false;
      continue;
    }
    const double there = rounded_to(dtype, a[i]);
    if (there != b[i] && !(std::isnan(there) && std::isnan(b[i]))) return false;
  }
  return true;
}

// Groups of this many neighbours, of which each keeps as many values. The smallest that fits says
// most: 1 of 2 is also 2 of 4.
constexpr std::size_t kGroupSizes[] = {2, 4, 8, 16, 32};

// The number of values that no group exceeds and nearly all have; 0: there is no such number.
std::size_t kept_of_each(const std::vector<double>& values, std::size_t size) {
  std::vector<std::size_t> counts(size + 1);
  std::size_t groups = 0, most = 0;
  for (std::size_t at = 0; at + size <= values.size(); at += size, ++groups) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(at);
    const auto kept = static_cast<std::size_t>(std::count_if(
        first, first + static_cast<std::ptrdiff_t>(size), [](double value) { return value != 0; }));
    ++counts[kept];
    most = std::max(most, kept);
  }
  // A weight that was zero before leaves a group short now and then.
  const bool nearly_all = groups >= 16 && 10 * counts[most] >= 9 * groups;
  return nearly_all && most < size ? most : 0;
}

std::string pruning_pattern(const Study& study, const Row& pair, const Profile& profile,
                            double share) {
  const uint64_t rows = profile.rows_b.dead - profile.rows_a.dead;
  const uint64_t columns = profile.rows_b.dead_columns - profile.rows_a.dead_columns;
  const auto whole = [&](uint64_t lines, uint64_t of) {
    return std::abs(static_cast<double>(lines) / static_cast<double>(of) - share) <
           1e-3 + 0.01 * share;
  };
  const auto text = [&](Axis axis, uint64_t of) {
    return lines_text(study, pair, axis, zeroed_lines(pair.views, axis), of);
  };
  if (profile.by_row && rows > 0 && whole(rows, profile.rows))
    return text(Axis::rows, profile.rows);
  if (columns > 0 && whole(columns, profile.columns)) return text(Axis::columns, profile.columns);
  const Result<std::vector<double>> values = read_values(pair.views.b, kSample);
  if (values.ok())
    for (const std::size_t size : kGroupSizes)
      if (const std::size_t kept = kept_of_each(values.value(), size); kept > 0)
        return fmt::format("{}:{} pattern", kept, size);
  return fmt::format("unstructured, {:.0f} % zero", 100 * share);
}

// The share of ‖B − A‖² that is at zeros of B.
double at_zeros(const Row& pair) {
  const Result<std::vector<double>> a = read_values(pair.views.a, kSample);
  const Result<std::vector<double>> b = read_values(pair.views.b, kSample);
  if (!a.ok() || !b.ok()) return 0;
  double zeros = 0, all = 0;
  for (std::size_t i = 0; i < a.value().size(); ++i) {
    const double change = b.value()[i] - a.value()[i];
    if (!std::isfinite(change)) continue;
    all += change * change;
    if (b.value()[i] == 0) zeros += change * change;
  }
  return all > 0 ? zeros / all : 0;
}

// What rounding each value of a patch by up to half a step leaves in its largest direction. The
// places within a step are those of a fixed series.
double rounding_direction(const Dense& patch, DType dtype) {
  const double relative = precision_of(dtype).relative;
  Dense noise = patch;
  std::mt19937_64 random(1);
  for (double& value : noise.values) {
    const double place = static_cast<double>(random() >> 11) * 0x1p-52 - 1;  // From -1 to 1.
    value *= relative * place;
  }
  return spectrum_of(noise).energies[0];
}

constexpr double kRoundingLeft = 1.5;  // Times what rounding leaves on average.

// How many directions leave no more than rounding values of so many squares leaves of a zero
// change, Σ (half a step)² / 3; 0: none are left, or more than half of them.
std::size_t rank_beside_rounding(const Spectrum& spectrum, double squares, DType dtype) {
  const double relative = precision_of(dtype).relative;
  const double noise = relative * relative * squares / 3;
  double left = spectrum.total();
  std::size_t rank = 0;
  while (rank <= spectrum.energies.size() / 2 && left > kRoundingLeft * noise)
    left -= spectrum.energies[rank++];
  return left > kRoundingLeft * noise ? 0 : rank;
}

// How many directions are larger than rounding makes them, where the rest is no more than rounding;
// 0: none in the first half.
std::size_t rank_above(const Spectrum& spectrum, const Dense& patch, DType dtype) {
  std::size_t rank = rank_beside_rounding(spectrum, dot(patch.values, patch.values), dtype);
  if (rank == 0) return 0;
  const double most = rounding_direction(patch, dtype);
  while (rank < spectrum.energies.size() / 2 && spectrum.energies[rank] > 1.1 * most) ++rank;
  return rank;
}

std::vector<double> sorted(std::span<const double> values) {
  std::vector<double> copy(values.begin(), values.end());
  std::ranges::sort(copy);
  return copy;
}

// Some whole rows of a view.
Result<Dense> whole_rows(const View& view, std::size_t wanted) {
  constexpr uint64_t kWidthMax = 1 << 16;
  const Extents extents = extents_of(view.shape);
  Dense rows{0, extents.columns, {}};
  if (extents.columns > kWidthMax) return rows;
  const Reader reader = TRY(Reader::open(view));
  for (const uint64_t row : spread(extents.rows, wanted)) {
    rows.values.resize(rows.values.size() + extents.columns);
    reader.values(row * extents.columns, extents.columns,
                  rows.values.data() + rows.rows++ * extents.columns);
  }
  return rows;
}

View turned(View view) {
  std::swap(view.shape[0], view.shape[1]);
  for (Part& part : view.parts) {
    std::swap(part.origin[0], part.origin[1]);
    std::swap(part.shape[0], part.shape[1]);
    std::swap(part.strides[0], part.strides[1]);
  }
  return view;
}

// The rows of A and of B have the same lengths and angles: what changed is the axis along them.
Maybe preserved(const View& a, const View& b, std::string_view along, double tolerance) {
  constexpr std::size_t kLines = 24;
  const Result<Dense> before = whole_rows(a, kLines), after = whole_rows(b, kLines);
  if (!before.ok() || !after.ok() || before.value().rows < 8) return std::nullopt;
  // As many angles as an orthogonal matrix has freedoms prove nothing.
  if (before.value().columns < 16) return std::nullopt;
  const Dense x = row_gram(before.value()), y = row_gram(after.value());
  const Dense change = difference(y, x);
  if (dot(change.values, change.values) > tolerance * tolerance * dot(x.values, x.values))
    return std::nullopt;
  bool same = true;
  for (std::size_t row = 0; row < x.rows && same; ++row)
    same = sorted(before.value().row(row)) == sorted(after.value().row(row));
  return same ? EditFound{Edit::reordered, std::string(along), 1}
              : EditFound{Edit::rotated, fmt::format("along {}", along), 1};
}

}  // namespace

// The same by a sample of so many values.
static Maybe find_cast(const Row& pair, std::size_t sample) {
  const Result<std::vector<double>> a = read_values(pair.views.a, sample);
  const Result<std::vector<double>> b = read_values(pair.views.b, sample);
  if (!a.ok() || !b.ok() || a.value().empty()) return std::nullopt;
  const bool eight = info(pair.b.dtype).bits == 8 && is_plain(pair.b.dtype);
  if (eight && is_rounded(a.value(), b.value(), pair.b.dtype))
    return EditFound{Edit::cast, fmt::format("to {}", name_of(pair.b.dtype)), 1};
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    if (is_rounded(a.value(), b.value(), dtype))
      return EditFound{Edit::cast, fmt::format("to {}", name_of(dtype)), 1};
    if (is_rounded(b.value(), a.value(), dtype))
      return EditFound{Edit::cast, fmt::format("from {}", name_of(dtype)), 1};
  }
  return std::nullopt;
}

Maybe find_cast(const Row& pair) {
  if (!is_float(pair.a.dtype) || !is_float(pair.b.dtype)) return std::nullopt;
  // What is no cast shows in a few values.
  constexpr std::size_t kFew = 64;
  return find_cast(pair, kFew) ? find_cast(pair, kSample) : std::nullopt;
}

Maybe find_pruning(const Study& study, const Row& pair, const Profile& profile) {
  // Training leaves no zeros: a tenth of them was put there, whatever became of the other weights.
  constexpr double kMany = 0.1;
  const Comparison& it = pair.comparison;
  const uint64_t changed = it.diff.compared - it.diff.equal;
  if (changed == 0 || it.b.zeros <= it.a.zeros || !is_float(pair.b.dtype)) return std::nullopt;
  if (it.b.finite == 0 || it.b.zeros == it.b.finite) return std::nullopt;
  const uint64_t zeroed = it.b.zeros - it.a.zeros;
  const auto all = static_cast<double>(it.b.finite);
  const bool alone = zeroed == changed;  // Every element that changed is a new zero of B.
  if (!alone && static_cast<double>(zeroed) < kMany * all) return std::nullopt;
  std::string text = pruning_pattern(study, pair, profile, static_cast<double>(it.b.zeros) / all);
  if (alone) return EditFound{Edit::pruned, std::move(text), 1};
  return EditFound{Edit::pruned, text + ", the rest updated", at_zeros(pair)};
}

Maybe find_resized(const Study& study, const Row& pair) {
  const std::optional<Resizing> found = find_resizing(study, pair);
  if (!found) return std::nullopt;
  const uint64_t of = std::max(found->before, found->after);
  const std::string text = lines_text(study, pair, found->axis, found->lines, of);
  if (found->after < found->before) return EditFound{Edit::pruned, text + " removed", 1};
  return EditFound{Edit::resized, text + " added", 1};
}

Maybe find_low_rank(const Row& pair, const Profile& profile) {
  const Spectrum& spectrum = profile.spectrum_change;
  if (spectrum.energies.size() < 8 || spectrum.total() <= 0) return std::nullopt;
  const LowRank cliff = low_rank_of(spectrum);
  if (cliff.rank > 0)
    return EditFound{Edit::low_rank, fmt::format("rank {}", cliff.rank), cliff.energy};
  // The energies of B are the squares of its patch: most changes need no second look at that.
  const DType dtype = coarser(pair.a.dtype, pair.b.dtype);
  if (rank_beside_rounding(spectrum, 1.001 * profile.spectrum_b.total(), dtype) == 0)
    return std::nullopt;
  const Result<Dense> patch = read_patch(pair.views.b);
  if (!patch.ok()) return std::nullopt;
  const std::size_t rank = rank_above(spectrum, patch.value(), dtype);
  if (rank == 0) return std::nullopt;
  return EditFound{Edit::low_rank, fmt::format("rank {}", rank), spectrum.held_by(rank)};
}

// The same by a patch of that size.
static Maybe find_scaled_lines(const Row& pair, const PatchSize& size) {
  const Result<Dense> a = read_patch(pair.views.a, size), b = read_patch(pair.views.b, size);
  if (!a.ok() || !b.ok() || a.value().rows < 8 || a.value().columns < 8) return std::nullopt;
  const double relative = 2 * precision_of(coarser(pair.a.dtype, pair.b.dtype)).relative;
  constexpr double kUnexplained = 0.01;
  const auto scaled = [&](const Dense& x, const Dense& y) {
    double left = 0, all = 0, change = 0;
    for (std::size_t i = 0; i < x.rows; ++i) {
      const double xx = dot(x.row(i), x.row(i)), xy = dot(x.row(i), y.row(i));
      const double yy = dot(y.row(i), y.row(i));
      left += xx > 0 ? std::max(0.0, yy - xy * xy / xx) : yy;
      all += yy;
      change += xx - 2 * xy + yy;
    }
    // Taking one square from another leaves less than 1e-13 of them in 64 bits. A change that is
    // no larger than rounding is explained by anything.
    return left <= (relative * relative + 1e-13) * all && left <= kUnexplained * change;
  };
  if (scaled(a.value(), b.value())) return EditFound{Edit::scaled, "each row by itself", 1};
  if (scaled(turned(a.value()), turned(b.value())))
    return EditFound{Edit::scaled, "each column by itself", 1};
  return std::nullopt;
}

// Each row (or column) of B that of A times a number of its own, as norms and activation scales
// are folded into weights.
Maybe find_scaled_lines(const Row& pair) {
  constexpr PatchSize kFew{16, 32};  // Nearly all that are not show it there.
  return find_scaled_lines(pair, kFew) ? find_scaled_lines(pair, PatchSize()) : std::nullopt;
}

double rounding_share(const Row& pair) {
  const double relative = precision_of(coarser(pair.a.dtype, pair.b.dtype)).relative;
  const double rounding = relative * relative * squares_of(pair.comparison.b) / 3;
  const double change = squares_of_change(pair.comparison);
  return change > 0 ? kRoundingLeft * rounding / change : 1;
}

std::size_t rank_of_change(const Row& pair) {
  constexpr PatchSize kLarge{2 * kUpdateRankMax, 2 * kUpdateRankMax};
  const Result<Dense> a = read_patch(pair.views.a, kLarge), b = read_patch(pair.views.b, kLarge);
  if (!a.ok() || !b.ok()) return 0;
  const Spectrum spectrum = spectrum_of(difference(b.value(), a.value()));
  if (spectrum.energies.size() < 2) return 0;
  const LowRank cliff = low_rank_of(spectrum);
  if (cliff.rank > 0) return cliff.rank;
  return rank_above(spectrum, b.value(), coarser(pair.a.dtype, pair.b.dtype));
}

Maybe find_reordering(const Row& pair) {
  const Shape& shape = pair.views.a.shape;
  if (shape.size() != 2 || pair.views.a.terms > 1 || pair.views.b.terms > 1) return std::nullopt;
  // A complex element is two values; its rows are not looked into.
  if (is_complex(pair.views.a.dtype) || is_complex(pair.views.b.dtype)) return std::nullopt;
  // Products of values that are stored so exactly; a rotation is rounded once more.
  const double tolerance =
      std::max(1e-5, 4 * precision_of(coarser(pair.a.dtype, pair.b.dtype)).relative);
  Maybe found = preserved(pair.views.a, pair.views.b, "columns", tolerance);
  if (!found) found = preserved(turned(pair.views.a), turned(pair.views.b), "rows", tolerance);
  return found;
}

}  // namespace tensordiff
