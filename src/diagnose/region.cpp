// The difference is confined to some tokens, features or heads; all others agree to the noise.
//
// A slice is bad where its error exceeds what the noise model allows for its size. Up to half of
// the slices may be bad: more is no region.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagnose/diagnosis.h"
#include "diagnose/fit.h"

namespace tensordiff {
namespace {

constexpr double kElementsMax = 0.05;  // Share of scattered elements that is still "a few".

struct Slices {
  std::string_view noun;
  uint64_t count;
  std::function<uint64_t(uint64_t row, uint64_t column)> of;
};

struct Bad {
  std::vector<uint64_t> slices;
  bool zero_in_b = true;
  double after = 0;  // Outside of them.
};

Bad bad_slices(const Case& it, const Slices& way) {
  std::vector<double> gap(way.count), size(way.count), b(way.count);
  double all = 0;
  for (uint64_t row = 0; row < it.a.rows(); ++row) {
    for (uint64_t i = 0; i < it.a.features; ++i) {
      const double x = it.a.row(row)[i], y = it.b.row(row)[i];
      const uint64_t slice = way.of(row, i);
      gap[slice] += std::isfinite(y - x) ? (y - x) * (y - x) : INFINITY;
      size[slice] += x * x;
      b[slice] += y * y;
      all += x * x;
    }
  }
  Bad bad;
  const double mean = all / static_cast<double>(std::max<uint64_t>(1, way.count));
  double outside = 0;
  for (uint64_t slice = 0; slice < way.count; ++slice) {
    // A slice of nearly zeros has the noise of its neighbours, not of its own size.
    if (gap[slice] > it.floor * it.floor * std::max(size[slice], 0.25 * mean)) {
      bad.slices.push_back(slice);
      bad.zero_in_b = bad.zero_in_b && b[slice] == 0;
    } else {
      outside += gap[slice];
    }
  }
  bad.after = std::sqrt(outside / all);
  return bad;
}

std::string place_of(const Bad& bad, const Slices& way) {
  const auto& slices = bad.slices;
  const bool one_run = slices.back() - slices.front() + 1 == slices.size();
  if (one_run && slices.back() + 1 == way.count) return " (the tail)";
  if (one_run && slices.front() == 0) return " (the start)";
  if (slices.size() < 3 || one_run) return "";
  const uint64_t period = slices[1] - slices[0];
  for (std::size_t i = 2; i < slices.size(); ++i)
    if (slices[i] - slices[i - 1] != period) return "";
  return fmt::format(" (one in {})", period);
}

std::optional<Explanation> within(const Case& it, const Slices& way) {
  if (way.count < 2) return std::nullopt;
  const Bad bad = bad_slices(it, way);
  if (bad.slices.empty() || 2 * bad.slices.size() > way.count) return std::nullopt;
  Explanation result;
  result.after = bad.after;
  result.text = fmt::format("the difference is confined to {} {}{} of {}{}", way.noun,
                            ranges_text(bad.slices), place_of(bad, way), way.count,
                            bad.zero_in_b ? ", where b is zero" : "");
  result.parameters = {{"axis", std::string(way.noun)}, {"slices", bad.slices}};
  result.confidence = 0.9;
  return result;
}

// A few elements without a common row or column.
std::optional<Explanation> scattered(const Case& it) {
  const double typical = it.norm_a / std::sqrt(static_cast<double>(it.a.values.size()));
  std::vector<uint64_t> where;
  double outside = 0;
  for (uint64_t i = 0; i < it.a.values.size(); ++i) {
    const double gap = std::abs(it.b.values[i] - it.a.values[i]);
    if (gap > 12 * it.floor * std::max(typical, std::abs(it.a.values[i])))
      where.push_back(i);
    else
      outside += gap * gap;
  }
  if (where.empty() ||
      static_cast<double>(where.size()) > kElementsMax * double(it.a.values.size()))
    return std::nullopt;
  Explanation result;
  result.after = std::sqrt(outside) / it.norm_a;
  result.text = fmt::format("the difference is confined to {} of {} elements", where.size(),
                            it.a.values.size());
  if (where.size() > 32) where.resize(32);
  result.parameters = {{"axis", std::string("elements")}, {"positions", where}};
  result.confidence = 0.8;
  return result;
}

std::optional<Explanation> examine(const Case& it) {
  if (it.norm_a == 0) return std::nullopt;
  const uint64_t tokens = it.a.tokens, features = it.a.features;
  const uint64_t heads = std::max<uint64_t>(1, it.a.heads);
  const Slices ways[] = {
      {"sequences", it.a.batch, [&](uint64_t row, uint64_t) { return row / tokens; }},
      {it.run.activations ? "tokens" : "rows", tokens,
       [&](uint64_t row, uint64_t) { return row % tokens; }},
      {"heads", heads, [&](uint64_t, uint64_t i) { return i * heads / features; }},
      {"features", features, [](uint64_t, uint64_t i) { return i; }},
  };
  std::optional<Explanation> best;
  for (const Slices& way : ways) {
    std::optional<Explanation> found = within(it, way);
    if (found && accepted(it, *found)) return found;
    if (found && (!best || found->after < best->after)) best = std::move(found);
  }
  std::optional<Explanation> few = scattered(it);
  return few && accepted(it, *few) ? few : best;
}

}  // namespace

constinit const Diagnosis diagnoses::region = {
    .code = "region",
    .question = "Is the difference confined to a part?",
    .explains = "padding, a tail not computed, a wrong head or shard, a page of a cache",
    .examine = examine,
};

}  // namespace tensordiff
