#include "diagnose/sample/finite_tokens.h"

#include <algorithm>
#include <cmath>

#include "align/view.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTokensMin = 4;    // Fewer tell too little.
constexpr uint64_t kTokensMax = 128;  // More tell no more, and all are compared a second time.

// The first token of any sequence that is no number, of those that are looked at.
std::optional<uint64_t> first_nonfinite(const Run& run, const Site& site) {
  const Result<Matrix> b = read_matrix(site.views.b, run.extent, TokenRange{0, kTokensMax});
  if (!b.ok()) return std::nullopt;
  uint64_t first = std::min(kTokensMax, run.extent.tokens);
  for (uint64_t row = 0; row < b.value().rows(); ++row)
    if (!std::ranges::all_of(b.value().row(row), [](double x) { return std::isfinite(x); }))
      first = std::min(first, row % b.value().tokens);
  return first;
}

// Whether an axis of another kind has this size: the tokens would be taken for it.
bool ambiguous(const Run& run, uint64_t tokens) {
  return std::ranges::any_of(run.sites, [&](const Site& site) {
    const Shape& shape = site.views.a.shape;
    return std::ranges::find(shape, tokens) != shape.end();
  });
}

// The site with its first tokens alone; nothing where it has none, or they cannot be read.
std::optional<Site> cut(const Run& run, const Site& site, uint64_t tokens) {
  const std::optional<std::size_t> axis = by_tokens(site.views.a, run.extent).axis;
  if (!axis || site.views.a.shape[*axis] < tokens) return std::nullopt;
  Site part;
  part.index = site.index, part.capture = site.capture;
  part.a = site.a, part.b = site.b;
  part.layer = site.layer, part.stage = site.stage;
  part.noise = site.noise;
  const Plan plan = {{'a', Op::truncate, {*axis, tokens}}, {'b', Op::truncate, {*axis, tokens}}};
  part.views = carry_out(plan, site.views.a, site.views.b);
  Result<Comparison> compared = compare(part.views);
  if (!compared.ok()) return std::nullopt;
  part.comparison = std::move(compared).value();
  return part;
}

}  // namespace

std::optional<FiniteTokens> tokens_before_nonfinite(const Run& run) {
  const auto made = std::ranges::find_if(
      run.sites, [](const Site& site) { return site.created && site.bug() && site.is_lost(); });
  if (made == run.sites.end() || run.extent.tokens == 0) return std::nullopt;
  FiniteTokens part;
  part.tokens = first_nonfinite(run, *made).value_or(0);
  while (part.tokens >= kTokensMin && ambiguous(run, part.tokens)) --part.tokens;
  if (part.tokens < kTokensMin) return std::nullopt;
  for (const Site& site : run.sites) {
    std::optional<Site> shorter =
        site.compared() ? cut(run, site, part.tokens) : std::optional<Site>();
    if (shorter) part.sites.push_back(std::move(*shorter));
  }
  return part;
}

}  // namespace tensordiff
