// How a pair is spread out: its error along each axis, histograms, and its worst elements.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/parallel.h"
#include "base/text.h"
#include "compare/explore.h"
#include "logits/row.h"
#include "serve/routes.h"
#include "tensor/reader.h"

namespace tensordiff::serve {
namespace {

constexpr uint64_t kBinsMax = 4096;
constexpr uint64_t kWorstMax = 1000;

// A row without a partner, or without a common layout: one tensor as a pair with itself.
Result<AlignedPair> pair_for(const OpenPair& open, char side) {
  if (open.aligned) return *open.aligned;
  const View* view = open.side(side, true);
  if (!view) return Error("there is no {} here that can be read", side);
  return AlignedPair{*view, *view, {}};
}

Response no_common_layout() {
  return problem(422, "the two have no common layout, or there is only one of them");
}

void write_difference_histogram(JsonWriter& json, const DifferenceHistogram& histogram) {
  std::size_t first = 0, end = histogram.counts.size();
  while (first < end && histogram.counts[first] == 0) ++first;
  while (end > first && histogram.counts[end - 1] == 0) --end;
  json.member("scale", "log2").key("edges").begin_array();
  for (std::size_t i = first; i <= end && first < end; ++i)
    json.value(std::ldexp(1.0, DifferenceHistogram::kLowest + static_cast<int>(i)));
  json.end_array().key("counts").begin_array();
  for (std::size_t i = first; i < end; ++i) json.value(histogram.counts[i]);
  json.end_array().member("under", 0).member("over", 0);
  json.member("zero", histogram.equal).member("nonfinite", histogram.nonfinite);
}

// From the least to the largest value of both tensors, where nobody says otherwise.
Result<void> write_value_histogram(JsonWriter& json, const Call& call, const OpenPair& open,
                                   char side) {
  const AlignedPair pair = TRY(pair_for(open, side));
  const uint64_t bins = TRY(call.query.count("bins", 256, kBinsMax));
  const std::optional<double> lo = TRY(call.query.number("lo"));
  const std::optional<double> hi = TRY(call.query.number("hi"));
  Stats a = open.comparison.a, b = open.comparison.b;
  if (!open.compared) a = b = TRY(statistics(pair.a));
  const double low = lo.value_or(std::min(a.min.value_or(0), b.min.value_or(0)));
  const double high = hi.value_or(std::max(a.max.value_or(0), b.max.value_or(0)));
  if (!(low <= high)) return Error("lo is above hi");
  const ValueHistogram histogram = TRY(value_histogram(pair, low, high, bins));
  const std::vector<uint64_t>& counts = side == 'a' ? histogram.a : histogram.b;
  json.member("scale", "linear").key("edges").begin_array();
  for (uint64_t i = 0; i <= bins; ++i)
    json.value(low + (high - low) * static_cast<double>(i) / static_cast<double>(bins));
  json.end_array().member("counts", counts);
  const Stats& stats = side == 'a' ? a : b;
  const uint64_t inside = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  uint64_t under = 0;
  if (lo && stats.min && *stats.min < low) {
    const double below = std::nextafter(low, *stats.min);
    const ValueHistogram rest = TRY(value_histogram(pair, *stats.min, below, 1));
    under = side == 'a' ? rest.a[0] : rest.b[0];
  }
  json.member("under", under).member("over", stats.finite - inside - under);
  json.member("zero", stats.zeros).member("nonfinite", stats.nan + stats.inf);
  return {};
}

constexpr uint64_t kPointsMax = 400;  // More than a plot is wide.

// How far what two runs predict is apart, by position: the largest divergence of each stretch, and
// how many of its positions have another most likely word. Each row is taken as logits.
Result<void> write_predictions(JsonWriter& json, const AlignedPair& pair) {
  const Shape& shape = pair.a.shape;
  if (shape.empty() || shape.back() < 2 || is_complex(pair.a.dtype) || is_complex(pair.b.dtype))
    return Error("the rows of this pair are not predictions");
  const uint64_t words = shape.back(), positions = pair.a.elements() / words;
  const Reader a = TRY(Reader::open(pair.a)), b = TRY(Reader::open(pair.b));
  const uint64_t per_bin = std::max<uint64_t>(1, (positions + kPointsMax - 1) / kPointsMax);
  std::vector<double> kl((positions + per_bin - 1) / per_bin);
  std::vector<uint64_t> other_top(kl.size());
  uint64_t unusable = 0;
  std::vector<double> row_a(words), row_b(words);
  for (uint64_t i = 0; i < positions && !called_off(); ++i) {
    a.values(i * words, words, row_a.data());
    b.values(i * words, words, row_b.data());
    if (!to_log_probs(row_a) || !to_log_probs(row_b)) {
      ++unusable;
      continue;
    }
    const PositionDiff diff = compare_position(row_a, row_b, std::nullopt);
    kl[i / per_bin] = std::max(kl[i / per_bin], diff.kl);
    other_top[i / per_bin] += diff.same_top ? 0 : 1;
  }
  json.key("predictions").begin_object().member("positions", positions);
  json.member("perBin", per_bin).member("kl", kl).member("otherTop", other_top);
  json.member("unusable", unusable).end_object();
  return {};
}

}  // namespace

Reply get_axes(const Call& call) {
  const Target target = open_row(call);
  if (target.failure) return *target.failure;
  if (!target.pair->aligned) return no_common_layout();
  const Shape& shape = target.pair->aligned->a.shape;
  const Result<std::vector<AxisProfile>> profiles = axis_profiles(*target.pair->aligned);
  if (!profiles.ok()) return problem(422, profiles.error().message());
  JsonWriter json;
  json.begin_object().key("axes").begin_array();
  for (std::size_t axis = 0; axis < profiles.value().size(); ++axis) {
    const AxisProfile& profile = profiles.value()[axis];
    json.begin_object().member("axis", uint64_t{axis}).member("size", shape[axis]);
    json.member("perBin", profile.indexes_per_bin).member("maxAbs", profile.max_abs);
    json.member("meanAbs", profile.mean_abs).member("nonfinite", profile.nonfinite);
    json.end_object();
  }
  json.end_array();
  if (!call.query.text("predictions", "").empty())
    TRY(write_predictions(json, *target.pair->aligned));
  return json_response(json.end_object().take());
}

Reply get_histogram(const Call& call) {
  const Target target = open_row(call);
  if (target.failure) return *target.failure;
  const OpenPair& open = *target.pair;
  const std::string_view of = call.query.text("of", open.aligned ? "d" : open.a ? "a" : "b");
  JsonWriter json;
  json.begin_object().member("of", of);
  if (of == "d") {
    if (!open.aligned) return no_common_layout();
    const Result<DifferenceHistogram> histogram = difference_histogram(*open.aligned);
    if (!histogram.ok()) return problem(422, histogram.error().message());
    write_difference_histogram(json, histogram.value());
  } else if (of == "a" || of == "b") {
    TRY(write_value_histogram(json, call, open, of[0]));
  } else {
    return Error("of: '{}' is not a, b or d", printable(of));
  }
  return json_response(json.end_object().take());
}

Reply get_worst(const Call& call) {
  const Target target = open_row(call);
  if (target.failure) return *target.failure;
  if (!target.pair->aligned) return no_common_layout();
  const uint64_t count = TRY(call.query.count("count", 32, kWorstMax));
  const Result<std::vector<WorstElement>> worst = worst_elements(*target.pair->aligned, count);
  if (!worst.ok()) return problem(422, worst.error().message());
  JsonWriter json;
  json.begin_object().key("worst").begin_array();
  for (const WorstElement& element : worst.value()) {
    json.begin_object().member("flat", std::to_string(element.position));
    json.member("at", index_at(target.pair->aligned->a.shape, element.position));
    json.member("a", element.a).member("b", element.b).member("distance", element.distance);
    json.end_object();
  }
  return json_response(json.end_array().end_object().take());
}

}  // namespace tensordiff::serve
