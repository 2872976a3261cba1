#include "diagnose/graph/asides.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>

#include "diagnose/graph/module_tree.h"
#include "diagnose/sample/fit.h"
#include "diagnose/verdict/carried.h"

namespace tensordiff {
namespace {

// Whether B holds there what a part of that module gives, and A does not. Steps that are no parts
// of it may hold the same by a mistake: queries whose positions are shifted, as their keys are.
bool holds_another(const Run& run, const Site& site) {
  const std::string parts = site.a.name + ".";
  for (const Site& other : run.sites) {
    if (&other == &site) break;
    if (other.compared() && !other.aside && other.a.name.starts_with(parts) &&
        same_statistics(other.comparison.b, site.comparison.b) &&
        !same_statistics(other.comparison.a, site.comparison.a))
      return true;
  }
  return false;
}

// Whether the step that should read a site next is there and agrees.
bool reader_agrees(const Run& run, const Site& site) {
  const auto index = static_cast<std::size_t>(&site - run.sites.data());
  const auto reader = std::find_if(
      run.sites.begin() + std::ptrdiff_t(index) + 1, run.sites.end(), [&](const Site& other) {
        return std::ranges::find(other.inputs, index) != other.inputs.end();
      });
  return reader != run.sites.end() && !reader->bug();
}

struct BothSides {
  Matrix a, b;
};

std::optional<BothSides> both_sides(const Run& run, const Site& site) {
  Result<Matrix> a = read_matrix(site.views.a, run.extent);
  Result<Matrix> b = read_matrix(site.views.b, run.extent);
  if (!a.ok() || !b.ok() || !same_form(a.value(), b.value())) return std::nullopt;
  return BothSides{std::move(a).value(), std::move(b).value()};
}

constexpr double kRoundings = 4;  // A and B each round the value and the factor.

bool is_multiple(const BothSides& of, double roundoff) {
  const double factor = factor_between(of.a.values, of.b.values);
  Matrix scaled = of.a;
  for (double& value : scaled.values) value *= factor;
  return factor > 0 &&
         distance(scaled.values, of.b.values) <= kRoundings * roundoff * norm(of.b.values);
}

// How much of what is added to one step is in another: 1 where it goes on in the stream, and about
// 0 where it does not.
double share_of(const BothSides& added, const BothSides& stream) {
  const std::size_t count = added.a.values.size();
  double product = 0, size = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double in = added.b.values[i] - added.a.values[i];
    product += in * (stream.b.values[i] - stream.a.values[i]);
    size += in * in;
  }
  return size > 0 ? product / size : 1;
}

// The stream that an embedding goes into, in the first layer that has it.
const Site* stream_behind(const Run& run, const Site& embedding) {
  const Site* first = nullptr;
  for (const Site& site : run.sites) {
    const bool is_stream = site.role == Role::middle || site.role == Role::layer_output;
    if (is_stream && site.block && site.compared() && &site != &embedding &&
        (!first || *site.block < *first->block))
      first = &site;
  }
  return first;
}

constexpr double kGoesOn = 0.5;  // Halfway between 1 (it goes on) and 0 (it does not).

// Whether B holds the embedding times a number that the layers do not see.
bool is_scaled_aside(const Run& run, const Site& site) {
  if (site.role != Role::embedding || site.comparison.diff.equal == site.comparison.diff.compared)
    return false;
  const std::optional<BothSides> values = both_sides(run, site);
  if (!values || !is_multiple(*values, site.roundoff)) return false;
  if (const Site* stream = stream_behind(run, site)) {
    const std::optional<BothSides> behind = both_sides(run, *stream);
    return behind && same_form(behind->a, values->a) && share_of(*values, *behind) < kGoesOn;
  }
  // Without the stream: the root of its size is what programs multiply by, rounded to bf16. And a
  // norm of the first layer sees no factor, but that of a sum with what attention gives does.
  const double factor = factor_between(values->a.values, values->b.values);
  const double root = std::sqrt(static_cast<double>(values->a.features));
  constexpr double kRoot = 0x1p-7;  // Two roundoffs of bf16.
  if (std::abs(factor / root - 1) < kRoot || std::abs(factor * root - 1) < kRoot) return true;
  const auto norm = std::ranges::find_if(run.sites, [](const Site& other) {
    return other.role == Role::mlp_norm && other.compared();
  });
  return norm != run.sites.end() && norm->error <= norm->budget;
}

bool ends_with_head(const Site& site, bool a) {
  return (a ? site.a.name : site.b.name).ends_with("lm_head");
}

// The cap c of b = c tanh(a / c), by the element that it changes most.
std::optional<double> cap_between(const Matrix& a, const Matrix& b) {
  double x = 0, y = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i)
    if (std::abs(a.values[i]) - std::abs(b.values[i]) > std::abs(x) - std::abs(y))
      x = a.values[i], y = b.values[i];
  if (!(std::abs(x) > std::abs(y)) || x * y <= 0) return std::nullopt;
  constexpr double kWidest = 1e6;  // Bounds the search: such a cap changes nothing.
  double low = std::abs(y), high = kWidest * std::abs(x);
  for (int i = 0; i < 100; ++i) {
    const double cap = std::sqrt(low * high);
    (cap * std::tanh(std::abs(x) / cap) < std::abs(y) ? low : high) = cap;
  }
  return low;
}

// Whether one side has logits behind a cap of which the other's name says that it stands before it.
bool is_capped_aside(const Run& run, const Site& site) {
  if (site.role != Role::logits || ends_with_head(site, true) == ends_with_head(site, false))
    return false;
  std::optional<BothSides> values = both_sides(run, site);
  if (!values) return false;
  Matrix& before = ends_with_head(site, true) ? values->a : values->b;
  const Matrix& behind = ends_with_head(site, true) ? values->b : values->a;
  const std::optional<double> cap = cap_between(before, behind);
  if (!cap) return false;
  for (double& value : before.values) value = *cap * std::tanh(value / *cap);
  return distance(before.values, behind.values) <= site.budget * norm(behind.values);
}

}  // namespace

std::string_view aside_note(const Site& site) {
  if (site.role == Role::embedding)
    return "one side multiplies the embedding here, the other behind it; the stream agrees";
  if (site.role == Role::logits)
    return "one side has the logits before their cap, the other behind it";
  return "B has another of its tensors under this name; the following steps agree";
}

bool find_asides(Run& run) {
  std::set<std::string> kinds;
  for (const Site& site : run.sites)
    if (site.bug() && site.compared() && !site.aside && holds_another(run, site) &&
        reader_agrees(run, site))
      kinds.insert(kind_of(site));
  bool found = false;
  for (Site& site : run.sites)
    if (site.bug() && site.compared() && !site.aside &&
        (is_scaled_aside(run, site) || is_capped_aside(run, site)))
      site.aside = found = true;
  for (Site& site : run.sites) {
    if (site.aside || !site.compared() || !kinds.contains(kind_of(site)) ||
        !holds_another(run, site))
      continue;
    site.aside = found = true;
  }
  return found;
}

}  // namespace tensordiff
