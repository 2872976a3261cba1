// The difference is confined to some tokens, features or heads; all others agree to the noise.
//
// A slice is bad where its error exceeds what the noise model allows for its size. Up to half of
// the slices may be bad: more is no region. Where a Case holds a part of the tensor only, what was
// noted of all of it while it was compared tells more: a slice is then bad where it has elements
// beyond tolerance.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/sample/beyond_tokens.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

constexpr double kScatteredMax = 0.05;  // Share of scattered elements that is still "a few".
constexpr std::size_t kNamedMax = 3;    // Elements that a sentence gives the places of.

enum class Along { sequences, rows, heads, features };

struct Slices {
  Along along;
  uint64_t count;
  std::function<uint64_t(uint64_t row, uint64_t column)> of;
  uint64_t first = 0;  // The number of the first one, of more than were read.
};

// Of more than one. A row of activations is a token.
std::string_view noun_of(const Case& it, Along along) {
  constexpr std::string_view kNouns[] = {"sequences", "rows", "heads", "features"};
  if (along == Along::rows && it.run.activations) return "tokens";
  return kNouns[static_cast<std::size_t>(along)];
}

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
      bad.slices.push_back(way.first + slice);
      bad.zero_in_b = bad.zero_in_b && b[slice] == 0;
    } else {
      outside += gap[slice];
    }
  }
  bad.after = std::sqrt(outside / all);
  return bad;
}

std::string place_of(const std::vector<uint64_t>& slices, uint64_t count) {
  const bool one_run = slices.back() - slices.front() + 1 == slices.size();
  if (one_run && slices.back() + 1 == count) return " (the tail)";
  if (one_run && slices.front() == 0) return " (the start)";
  if (slices.size() < 3 || one_run) return "";
  const uint64_t period = slices[1] - slices[0];
  for (std::size_t i = 2; i < slices.size(); ++i)
    if (slices[i] - slices[i - 1] != period) return "";
  return fmt::format(" (one in {})", period);
}

// "row 5 of 1024", "tokens 17–19 (the tail) of 20".
std::string slices_text(std::string_view noun, const std::vector<uint64_t>& slices,
                        uint64_t count) {
  if (slices.size() == 1) noun.remove_suffix(1);
  return fmt::format("{} {}{} of {}", noun, ranges_text(slices), place_of(slices, count), count);
}

Explanation confined_to(std::string_view noun, std::string where, std::vector<uint64_t> slices) {
  Explanation result;
  result.text = "the difference is confined to " + std::move(where);
  result.parameters = {{"axis", std::string(noun)}, {"slices", std::move(slices)}};
  return result;
}

uint64_t tokens_of_all(const Case& it) { return by_tokens(it.site.views.a, it.run.extent).tokens; }

// What is said of a part of the tensor is said of that part.
std::string part_text(const Case& it) {
  if (it.a.whole) return "";
  const uint64_t rows = tokens_of_all(it);
  const uint64_t first = it.a.first_token;
  return fmt::format(", in the part examined ({} {}–{} of {})",
                     it.run.activations ? "tokens" : "rows", first, first + it.a.tokens - 1, rows);
}

// Whether as many elements of the whole tensor differ as these features have.
bool fill_all(const Case& it, const Slices& way, const Bad& bad) {
  const Diff& diff = it.site.comparison.diff;
  return way.along == Along::features && diff.compared - diff.equal + diff.nonfinite_mismatch ==
                                             bad.slices.size() * it.a.batch * tokens_of_all(it);
}

std::optional<Explanation> within(const Case& it, const Slices& way) {
  if (way.count < 2) return std::nullopt;
  Bad bad = bad_slices(it, way);
  if (bad.slices.empty() || 2 * bad.slices.size() > way.count) return std::nullopt;
  const bool of_tokens = way.count == it.a.tokens && way.along != Along::features;
  const std::string_view noun = noun_of(it, way.along);
  std::string where = slices_text(noun, bad.slices, of_tokens ? tokens_of_all(it) : way.count);
  if (bad.zero_in_b) where += ", where B is zero";
  if (!fill_all(it, way, bad)) where += part_text(it);
  Explanation result = confined_to(noun, std::move(where), std::move(bad.slices));
  result.after = bad.after;
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
      static_cast<double>(where.size()) > kScatteredMax * double(it.a.values.size()))
    return std::nullopt;
  Explanation result;
  result.after = std::sqrt(outside) / it.norm_a;
  result.text = fmt::format("the difference is confined to {} of {} elements{}", where.size(),
                            it.a.values.size(), part_text(it));
  if (where.size() > 32) where.resize(32);
  result.parameters = {{"axis", std::string("elements")}, {"positions", where}};
  return result;
}

// The same of the whole tensor, where what is beyond tolerance does not lie all over it.
std::optional<Explanation> within_all(const Case& it, const BeyondTokens& all) {
  const uint64_t tokens = all.tokens, features = all.features;
  const uint64_t heads = std::max<uint64_t>(1, all.heads);
  const Slices ways[] = {
      {Along::sequences, all.batch, [&](uint64_t row, uint64_t) { return row / tokens; }},
      {Along::rows, tokens, [&](uint64_t row, uint64_t) { return row % tokens; }},
      {Along::heads, heads, [&](uint64_t, uint64_t i) { return i * heads / features; }},
      {Along::features, features, [](uint64_t, uint64_t i) { return i; }},
  };
  for (const Slices& way : ways) {
    // What was not read is known by its rows only.
    if (way.count < 2 || (!all.rows_unread.empty() && &way > &ways[1])) continue;
    std::vector<bool> bad(way.count);
    for (const BeyondTokens::Element& each : all.elements)
      bad[way.of(each.row, each.feature)] = true;
    for (const uint64_t row : all.rows_unread) bad[way.of(row, 0)] = true;
    std::vector<uint64_t> slices;
    for (uint64_t slice = 0; slice < way.count; ++slice)
      if (bad[slice]) slices.push_back(slice);
    if (slices.empty() || 2 * slices.size() > way.count) continue;
    const std::string_view noun = noun_of(it, way.along);
    std::string where = slices_text(noun, slices, way.count);
    return confined_to(noun, std::move(where), std::move(slices));
  }
  return std::nullopt;
}

// The places of a few elements, in the shape that was compared.
std::string elements_text(const Case& it, const BeyondTokens& all) {
  if (all.elements.size() > kNamedMax || !all.rows_unread.empty()) return "";
  std::string out;
  for (const BeyondTokens::Element& each : all.elements)
    out += fmt::format("{}{} {} → {}", out.empty() ? "" : ", ",
                       shape_text(index_at(it.site.views.a.shape, each.position)),
                       human_number(each.a), human_number(each.b));
  return fmt::format(" ({} element{}: {})", all.elements.size(),
                     all.elements.size() == 1 ? "" : "s", out);
}

// Slices are of one size: elements beyond tolerance lie in no smaller share of them than they are
// of all elements.
bool fills_half(const Diff& diff) {
  const uint64_t all = diff.compared + diff.nonfinite_agreeing + diff.nonfinite_mismatch;
  return 2 * (diff.exceeding + diff.nonfinite_mismatch) > all;
}

std::optional<Explanation> of_all(const Case& it) {
  if (fills_half(it.site.comparison.diff)) return std::nullopt;
  const std::optional<BeyondTokens> all = beyond_tokens(it);
  std::optional<Explanation> result = all ? within_all(it, *all) : std::nullopt;
  if (!result) return std::nullopt;
  const bool zero = all->rows_unread.empty() &&
                    std::ranges::all_of(all->elements, [](const auto& x) { return x.b == 0; });
  result->text += elements_text(it, *all);
  if (zero) result->text += ", where B is zero";
  result->before = it.site.error;
  result->after = all->outside;
  result->settled = true;  // No element elsewhere is beyond tolerance.
  return result;
}

std::optional<Explanation> examine(const Case& it) {
  if (it.norm_a == 0) return std::nullopt;
  if (!it.a.whole)
    if (std::optional<Explanation> all = of_all(it)) return all;
  const uint64_t tokens = it.a.tokens, features = it.a.features;
  const uint64_t heads = std::max<uint64_t>(1, it.a.heads);
  const Slices ways[] = {
      {Along::sequences, it.a.batch, [&](uint64_t row, uint64_t) { return row / tokens; }},
      {Along::rows, tokens, [&](uint64_t row, uint64_t) { return row % tokens; }, it.a.first_token},
      {Along::heads, heads, [&](uint64_t, uint64_t i) { return i * heads / features; }},
      {Along::features, features, [](uint64_t, uint64_t i) { return i; }},
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
