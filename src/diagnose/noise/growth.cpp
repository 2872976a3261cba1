#include "diagnose/noise/growth.h"

#include <algorithm>
#include <cmath>

#include "diagnose/noise/norms.h"

namespace tensordiff {
namespace {

constexpr std::size_t kLayersMin = 3;
constexpr std::size_t kLayersInLine = 6;
constexpr uint64_t kTokensInLine = 16;  // What few have in common is chance.
// How much farther off than the middle of other layers a step must be: by itself, in the median of
// how far these are from it, and in the farthest of them but one, which may have a mistake, too.
constexpr double kFarther = 2;
constexpr double kSpreads = 8;
constexpr double kFarthest = 2;

double median(std::vector<double>& values) {
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

// The layer that all steps of which have got what the first mistake does to the stream.
std::optional<int64_t> first_layer_behind(const Run& run) {
  const auto first = std::ranges::find_if(run.sites, &Site::bug);
  return first == run.sites.end() || !first->block ? std::nullopt
                                                   : std::optional(*first->block + 2);
}

// What is unrelated to a before a step and behind it.
struct Growth {
  double before = 0, behind = 0;

  double in_logs() const { return std::log(behind / before); }
  // How much less of a is left than where it grows by so much.
  double lost(double usual) const { return cosine(before * std::exp(usual)) - cosine(behind); }

 private:
  static double cosine(double unrelated) { return 1 / std::hypot(1, unrelated); }
};

// Far beyond the spread of others around the usual, where at most one of them may be as far off.
bool beyond_spread(double own, std::vector<double> others) {
  for (double& each : others) each = std::abs(each);
  std::ranges::sort(others);
  return own >
         std::max(kSpreads * others[others.size() / 2], kFarthest * others[others.size() - 2]);
}

// By the factor, and by what is left of a: the factor says little where that is little.
bool stands_out(const Growth& own, const std::vector<Growth>& others) {
  std::vector<double> growths, losses;
  for (const Growth& other : others) growths.push_back(other.in_logs());
  const double usual = median(growths), more = own.in_logs() - usual;
  for (double& each : growths) each -= usual;
  for (const Growth& other : others) losses.push_back(other.lost(usual));
  return more > std::log(kFarther) && beyond_spread(more, std::move(growths)) &&
         beyond_spread(own.lost(usual), std::move(losses));
}

}  // namespace

double sum_of_errors_in(const Run& run, const Site& site) {
  double sum = 4 * site.roundoff;
  for (const std::size_t input : site.inputs) sum += run.sites[input].error;
  return sum;
}

double growth_of(const Run& run, const Site& site) {
  const double error_in = sum_of_errors_in(run, site);
  return error_in > 0 ? site.error / error_in : 0;
}

std::map<Role, double> usual_growth(const Run& run) {
  std::map<Role, std::vector<double>> seen;
  for (const Site& site : run.sites)
    if (site.compared() && site.role != Role::other && site.comparison.diff.rel_l2)
      seen[site.role].push_back(growth_of(run, site));
  std::map<Role, double> usual;
  for (auto& [role, growths] : seen)
    if (growths.size() >= kLayersMin) usual[role] = median(growths);
  return usual;
}

double unrelated(std::optional<double> cosine) {
  constexpr double kMost = 1e3;
  if (!cosine || *cosine <= 0) return kMost;
  return std::min(kMost, std::sqrt(std::max(0.0, 1 - *cosine * *cosine)) / *cosine);
}

double unrelated(const Site& site) { return unrelated(site.comparison.diff.cosine); }

bool out_of_line(const Run& run, const Site& site) {
  const std::optional<int64_t> behind = first_layer_behind(run);
  if (site.role == Role::other || site.inputs.empty() || !behind || site.block < behind ||
      run.extent.tokens * run.extent.batch < kTokensInLine)
    return false;
  std::vector<Growth> others;
  Growth own;
  double stream = 0;
  for (const Site& other : run.sites) {
    // The norm before a norm shows what is in the residual stream.
    double before = is_norm(other.role) ? stream : 0;
    for (const std::size_t input : other.inputs)
      before = std::max({before, run.sites[input].error, unrelated(run.sites[input])});
    if (is_norm(other.role)) stream = unrelated(other);
    if (&other == &site)
      own = {before, unrelated(other)};
    else if (other.role == site.role && other.block >= behind && other.block != site.block &&
             other.compared() && before > 0 && unrelated(other) > 0)
      others.push_back({before, unrelated(other)});
  }
  return others.size() >= kLayersInLine && stands_out(own, others);
}

}  // namespace tensordiff
