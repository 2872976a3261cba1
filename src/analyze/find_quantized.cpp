// Which weights of B are quantized: by the scales stored beside them, by their dtype, or by values
// that lie on a code book.

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "analyze/edit.h"
#include "analyze/low_rank.h"
#include "analyze/quantization.h"
#include "base/parallel.h"

namespace tensordiff {
namespace {

using Index = std::unordered_map<std::string_view, const Tensor*>;

Index index_of(const Catalog& catalog) {
  Index index;
  for (const Tensor& tensor : catalog.tensors) index.emplace(tensor.name, &tensor);
  return index;
}

double decibels(double ratio) { return 10 * std::log10(ratio); }

std::optional<Grid> grid_in(const View& view, const Stats& stats) {
  std::vector<double> extremes;
  if (stats.min && stats.max) extremes = {*stats.min, *stats.max};
  Result<std::optional<Grid>> grid = find_grid(view, extremes);
  return grid.ok() ? std::move(grid).value() : std::nullopt;
}

// Whether a change that fits no code book could still be rounding.
bool may_be_rounded(const Row& pair, const Profile& profile) {
  const Diff& diff = pair.comparison.diff;
  if (!is_float(pair.a.dtype) || !is_float(pair.b.dtype)) return false;
  if (profile.rows < 2 || profile.columns < 2 || !diff.cosine) return false;
  // Rounding moves nearly every element, and in no common direction.
  if (2 * diff.equal > diff.compared || low_rank_of(profile.spectrum_change).rank > 0) return false;
  const double left = 1 - *diff.cosine * *diff.cosine;
  if (left <= 0) return false;
  return decibels(1 / left) >= kRoundedLeast && decibels(1 / left) <= kRoundedMost;
}

void measure_noise(Quantized& found) {
  const Comparison& it = found.pair->comparison;
  if (found.pair->changed()) found.rows = row_noise(found.pair->views);
  const double signal = squares_of(it.a), noise = squares_of_change(it);
  found.fitted = is_integer(found.pair->b.dtype);
  if (found.fitted)
    found.sqnr = found.rows.fitted;
  else if (signal > 0 && noise > 0)
    found.sqnr = decibels(signal / noise);
}

struct Sides {
  const Tensor* a = nullptr;
  const Tensor* b = nullptr;
};

// One pair; nothing where B is not quantized.
std::optional<Quantized> judge(const Row& pair, const Profile& profile, const Sides& sides) {
  if (!is_float(pair.a.dtype)) return std::nullopt;
  Quantized found{&pair, &profile, "", 32, 32, {}, false, {}, {}};
  if (sides.a) found.bits_a = stored_bits(*sides.a);
  if (sides.b) found.bits = stored_bits(*sides.b);
  const bool narrower = found.bits < found.bits_a;
  // What is stored with scales, or in 8 bits, says what it is: values need not tell.
  const bool told =
      is_in_blocks(pair.b.dtype) || !is_float(pair.b.dtype) || info(pair.b.dtype).bits <= 8;
  // Values of A that were rounded to a type of 16 bits lie on the steps of that, and on no others.
  const Maybe cast = told || !pair.changed() ? Maybe() : find_cast(pair);
  // Vectors are kept as they are by all quantizers, and norms that lie close to 1 stand on the even
  // steps of their type there.
  const bool matrix = profile.rows > 1 && profile.columns > 1;
  if (matrix && !told && !cast && (narrower || pair.changed()))
    found.grid = grid_in(pair.views.b, pair.comparison.b);
  if (found.grid) {
    const std::optional<Grid> before = grid_in(pair.views.a, pair.comparison.a);
    if (before && before->bits <= found.grid->bits) found.grid.reset();
  }
  if (!narrower && !found.grid) return std::nullopt;
  // Fewer bits are stored, but rounding to them is not what became of A.
  if (!told && !found.grid && pair.changed() && !cast) return std::nullopt;
  found.scheme = found.grid                               ? found.grid->text()
                 : sides.b && !sides.b->made_from.empty() ? sides.b->made_from
                                                          : std::string(name_of(pair.b.dtype));
  if (found.grid) found.bits = std::min<double>(found.bits, found.grid->bits);
  measure_noise(found);
  return found;
}

}  // namespace

double stored_bits(const Tensor& tensor) {
  const uint64_t elements = tensor.elements();
  if (elements == 0) return 0;
  uint64_t bytes = tensor.bytes();
  if (is_made(tensor.view.dtype)) {
    bytes = 0;
    for (const Part& part : tensor.view.parts)
      for (const View& input : part.packed ? part.packed->inputs : std::vector<View>())
        bytes += stored_bytes(input.dtype, input.elements());
  }
  return 8 * static_cast<double>(bytes) / static_cast<double>(elements);
}

Quantization find_quantized(const Study& study) {
  const std::vector<const Row*>& weights = study.weights();
  const std::vector<Profile>& profiles = study.profiles();
  const Index a = index_of(study.a()), b = index_of(study.b());
  const auto find = [](const Index& index, std::string_view name) {
    const auto found = index.find(name);
    return found == index.end() ? nullptr : found->second;
  };
  std::vector<std::optional<Quantized>> judged(weights.size());
  for_each_index(weights.size(), [&](std::size_t i) {
    const Row& pair = *weights[i];
    judged[i] = judge(pair, profiles[i], {find(a, pair.a.name), find(b, pair.b.name)});
  });
  Quantization all;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (judged[i])
      all.found.push_back(std::move(*judged[i]));
    else if (weights[i]->changed() && may_be_rounded(*weights[i], profiles[i]) &&
             !find_cast(*weights[i]))
      all.not_told.push_back(weights[i]);
  }
  return all;
}

std::optional<double> sqnr_of(const std::vector<Quantized>& pairs) {
  double signal = 0, noise = 0;
  for (const Quantized& each : pairs) {
    signal += squares_of(each.pair->comparison.a);
    noise += squares_of_change(each.pair->comparison);
  }
  if (signal <= 0 || noise <= 0) return std::nullopt;
  return decibels(signal / noise);
}

}  // namespace tensordiff
