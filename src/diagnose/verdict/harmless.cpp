#include "diagnose/verdict/harmless.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "diagnose/operators/routing.h"
#include "diagnose/sample/fit.h"
#include "diagnose/verdict/carried.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr double kShareOfBudget = 1.0 / 3;  // That a token of its own may take.

// Tokens of a mixture of experts that another expert took over are noise, though they are far off.
void forgive_rerouted(const Run& run, Site& site) {
  if (site.reason.empty()) return;
  const std::vector<uint64_t> tokens = rerouted_tokens(run, site, kShareOfBudget * site.budget);
  if (tokens.empty()) return;
  site.reason.clear();
  site.note =
      fmt::format("tokens {} took other experts: rounding decides near a tie", ranges_text(tokens));
}

// A row that is picked out of a table by what comes in, as the nearest of some codes.
void forgive_rechosen(const Run& run, Site& site) {
  if (site.reason.empty()) return;
  const std::vector<uint64_t> rows = rechosen_rows(run, site);
  if (rows.empty()) return;
  site.reason.clear();
  site.note = fmt::format("rows {} are others of the same table: rounding decides near a tie",
                          ranges_text(rows));
}

// Which token of an expert stands first depends on the rank of that expert among those of the
// token, so that its tokens are a set.
void forgive_order_in_expert(const Run& run, Site& site) {
  const std::optional<double> left =
      site.reason.empty() ? std::nullopt : left_as_sets(run, site, site.budget);
  if (!left) return;
  site.reason.clear();
  site.note = "the expert gets the same tokens in another order: rounding decides near a tie";
  site.error = *left;
}

// How many tokens an expert gets is decided near a tie, too.
void forgive_other_tokens(const Run& run, Site& site) {
  if (site.reason.empty() || !got_other_tokens(run, site)) return;
  site.reason.clear();
  site.note = "the expert gets another number of tokens: rounding decides near a tie";
}

constexpr double kRounded = 1e-5;  // Of values that were multiplied in float32.

// Whether one holds the other times one number, as far as statistics tell.
bool only_scales(const Stats& from, const Stats& to) {
  if (!from.norm || !to.norm || !from.min || !to.min || *from.norm == 0) return false;
  const double factor = *to.norm / *from.norm;
  const auto near = [&](double x, double y) { return std::abs(x - y) <= kRounded * std::abs(y); };
  const bool straight = near(factor * *from.min, *to.min) && near(factor * *from.max, *to.max);
  const bool negated = near(-factor * *from.max, *to.min) && near(-factor * *from.min, *to.max);
  return from.finite == to.finite && from.zeros == to.zeros && (straight || negated);
}

// Steps that may do no more than multiply: queries and keys are scaled before attention.
bool may_scale(Role role) { return role == Role::query_final || role == Role::key_final; }

// Sums of one channel, for its correlation.
struct ChannelSums {
  double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;

  void add(double from, double to) {
    n += 1, x += from, y += to;
    xx += from * from, yy += to * to, xy += from * to;
  }
  // Nothing where one of them is constant.
  std::optional<double> correlation() const {
    const double var_x = n * xx - x * x, var_y = n * yy - y * y;
    if (!(var_x > 1e-9 * n * xx) || !(var_y > 1e-9 * n * yy)) return std::nullopt;
    return std::abs(n * xy - x * y) / std::sqrt(var_x * var_y);
  }
};

constexpr uint64_t kFollowedMax = 1 << 18;  // Elements that are read of each.
constexpr double kSamplesMin = 8;           // Of a channel; fewer correlate by chance.
// Of the median channel. What is independent has 0.67 / √8 = 0.24 with the fewest samples, and half
// of a rectified normal, which keeps the least of what folds, has 0.86.
constexpr double kFollows = 0.5;

// Whether one tensor is made of the other element by element, as norms and activations do: within
// each channel, of the last axis or of the second, they rise and fall together.
bool follows(const View& from, const View& to) {
  if (from.shape != to.shape || from.shape.empty()) return false;
  const Result<Reader> x = Reader::open(from), y = Reader::open(to);
  if (!x.ok() || !y.ok() || is_complex(from.dtype) || is_complex(to.dtype)) return false;
  const uint64_t count = std::min(from.elements(), kFollowedMax);
  std::vector<double> values_x(count), values_y(count);
  x.value().values(0, count, values_x.data());
  y.value().values(0, count, values_y.data());
  for (const std::size_t axis : {from.shape.size() - 1, std::size_t{1}}) {
    if (axis >= from.shape.size()) continue;
    uint64_t inner = 1;
    for (std::size_t i = axis + 1; i < from.shape.size(); ++i) inner *= from.shape[i];
    std::map<uint64_t, ChannelSums> channels;
    for (uint64_t i = 0; i < count; ++i)
      channels[i / inner % from.shape[axis]].add(values_x[i], values_y[i]);
    std::vector<double> found;
    for (const auto& [channel, sums] : channels)
      if (const auto each = sums.correlation(); each && sums.n >= kSamplesMin)
        found.push_back(*each);
    std::ranges::sort(found);
    if (!found.empty() && found[found.size() / 2] >= kFollows) return true;
  }
  return false;
}

// One side may compute in one step what the other does in two, as a norm folded into a convolution:
// then it holds the same in both places, and behind the second the two agree. The second step of
// the other side must compute something of the first, too: where its two tensors have nothing to do
// with each other, or are multiples of each other, nothing shows the difference to be undone.
bool is_folded(const Run& run, const Site& site) {
  const auto index = static_cast<std::size_t>(&site - run.sites.data());
  for (std::size_t i = index + 1; i < run.sites.size(); ++i) {
    const Site& next = run.sites[i];
    if (std::ranges::find(next.inputs, index) == next.inputs.end()) continue;
    const bool agrees = next.compared() && next.error <= site.budget;
    const bool fused_in_a = same_statistics(site.comparison.a, next.comparison.a);
    const bool fused_in_b = same_statistics(site.comparison.b, next.comparison.b);
    if (!agrees || fused_in_a == fused_in_b) return false;
    if (may_scale(next.role)) return true;
    const bool scales = only_scales(fused_in_a ? site.comparison.b : site.comparison.a,
                                    fused_in_a ? next.comparison.b : next.comparison.a);
    return !scales && follows(fused_in_a ? site.views.b : site.views.a,
                              fused_in_a ? next.views.b : next.views.a);
  }
  return false;
}

void forgive_folded(const Run& run, Site& site) {
  if (site.reason.empty() || !is_folded(run, site)) return;
  site.reason.clear();
  site.note = "one side fuses this step with the next; the result agrees";
  site.error = site.error_in;
}

// The steepest of the functions that models apply to each element: hardswish, at 3. GELU has 1.13.
constexpr double kSteepest = 1.5;
constexpr uint64_t kElementsAtOnce = 1 << 16;

// Whether no element is farther off than what it was made of makes it, but for its own rounding.
// Few elements of a gate show what came in: it saturates at all others.
bool moves_with(const Site& from, const Site& site) {
  if (from.views.a.shape != site.views.a.shape || from.views.b.shape != site.views.b.shape ||
      site.views.a.shape != site.views.b.shape)
    return false;
  std::vector<Reader> readers;
  for (const View* view : {&from.views.a, &from.views.b, &site.views.a, &site.views.b}) {
    Result<Reader> reader = Reader::open(*view);
    if (!reader.ok() || is_complex(view->dtype)) return false;
    readers.push_back(std::move(reader).value());
  }
  const uint64_t count = site.views.a.elements();
  const double rounding = 2 * site.roundoff;  // A unit in the last place.
  std::vector<double> values[4];
  for (uint64_t begin = 0; begin < count; begin += kElementsAtOnce) {
    const uint64_t many = std::min(kElementsAtOnce, count - begin);
    for (std::size_t side = 0; side < 4; ++side) {
      values[side].resize(many);
      readers[side].values(begin, many, values[side].data());
    }
    for (uint64_t i = 0; i < many; ++i) {
      const double in = std::abs(values[1][i] - values[0][i]);
      const double own = rounding * std::abs(values[2][i]);
      if (!(std::abs(values[3][i] - values[2][i]) <= kSteepest * in + own)) return false;
    }
  }
  return true;
}

void forgive_moved(const Run& run, Site& site) {
  // Where nothing came in, nothing moved it.
  if (site.reason.empty() || site.is_lost() || site.error_in == 0) return;
  if (std::ranges::any_of(site.inputs, [&](std::size_t input) {
        return run.sites[input].compared() && moves_with(run.sites[input], site);
      }))
    site.reason.clear();
}

}  // namespace

void forgive_harmless(const Run& run, Site& site) {
  forgive_rerouted(run, site);
  forgive_rechosen(run, site);
  forgive_order_in_expert(run, site);
  forgive_other_tokens(run, site);
  forgive_folded(run, site);
  forgive_moved(run, site);
}

}  // namespace tensordiff
