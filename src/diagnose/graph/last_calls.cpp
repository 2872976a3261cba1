#include "diagnose/graph/last_calls.h"

#include <algorithm>
#include <cmath>

#include "diagnose/activation.h"
#include "diagnose/graph/edges.h"
#include "diagnose/graph/module_tree.h"
#include "tensor/sample.h"

namespace tensordiff {
namespace {

constexpr std::size_t kSample = 64;
constexpr double kFits = 0.01;  // Of the size: what a narrow type leaves of a function.
constexpr std::size_t kLookedAhead = 64;

// A few values of A, read once for each site.
class Samples {
 public:
  explicit Samples(const std::vector<Site>& sites) : sites_(sites), values_(sites.size()) {}

  // Whether one step is a function of another, element by element.
  bool is_function(std::size_t of, std::size_t site) {
    const View &from = sites_[of].views.a, &to = sites_[site].views.a;
    if (from.shape != to.shape || !sites_[of].compared() || !sites_[site].compared()) return false;
    const std::vector<double>&x = read(of), &y = read(site);
    if (x.size() != y.size() || x.empty()) return false;
    double size = 0;
    for (const double value : y) size += value * value;
    return std::ranges::any_of(activation_functions(), [&](const ActivationFunction& function) {
      double gap = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double apart = function.value(x[i]) - y[i];
        gap += apart * apart;
      }
      return gap <= kFits * kFits * size;
    });
  }

 private:
  const std::vector<double>& read(std::size_t site) {
    std::optional<std::vector<double>>& values = values_[site];
    if (values) return *values;
    values.emplace();
    const View& view = sites_[site].views.a;
    const Result<Reader> reader =
        is_complex(view.dtype) ? Result<Reader>(Error("complex")) : Reader::open(view);
    if (reader.ok())
      *values = values_at(reader.value(), sample_positions(view.elements(), kSample));
    return *values;
  }

  const std::vector<Site>& sites_;
  std::vector<std::optional<std::vector<double>>> values_;
};

// Where a site goes: before or behind which other one.
using Position = std::pair<std::size_t, int>;
constexpr int kBefore = 0, kStays = 1, kBehind = 2;

// The container that gives what a site holds, with other steps in between. `copies` has the next
// site that holds the same as each; itself where there is none.
std::optional<std::size_t> given_on_by(const ModuleTree& tree, std::size_t site,
                                       const std::vector<std::size_t>& copies) {
  for (std::size_t last = site, copy = copies[site]; copy != last;
       last = copy, copy = copies[copy]) {
    // What is one of several outputs may have been computed at any time.
    const bool alone = tree[tree.module_of(copy)].outputs.size() == 1;
    if (alone && copy > last + 1 && tree.contains(tree.module_of(copy), tree.module_of(site)))
      return copy;
  }
  return std::nullopt;
}

// The later step beside a site that it is a function of, where no earlier one is that.
std::optional<std::size_t> function_of(const ModuleTree& tree, std::size_t site, std::size_t count,
                                       Samples& samples) {
  const std::size_t module = tree.module_of(site), parent = tree[module].parent;
  if (!tree[module].inside.empty() || parent == Module::kRoot) return std::nullopt;
  std::optional<std::size_t> found;
  const std::size_t end = std::min(count, site + kLookedAhead);
  for (std::size_t i = site + 1; i < end && !found; ++i) {
    // An identity behind it is a function of it, and it of that.
    const bool beside = tree.contains(parent, tree.module_of(i)) && tree.module_of(i) != parent;
    if (beside && i > site + 1 && samples.is_function(i, site)) found = i;
  }
  for (std::size_t i = site; found && i-- > 0 && i + kLookedAhead > site;)
    if (samples.is_function(i, site)) return std::nullopt;
  return found;
}

// The step beside a site whose output it holds, far behind it: a dropout that a stack of layers
// calls first on its input and then on its output. Not where it holds what an earlier step gave.
std::optional<std::size_t> repeats(const ModuleTree& tree, const std::vector<Site>& sites,
                                   std::size_t site, const std::vector<std::size_t>& copies) {
  const std::size_t module = tree.module_of(site), parent = tree[module].parent;
  const std::size_t copy = copies[site];
  const bool beside = tree[tree.module_of(copy)].parent == parent;
  const bool plain = tree[module].inside.empty() && tree[tree.module_of(copy)].inside.empty();
  if (copy <= site + 1 || sites[site].copy_of || !beside || !plain || parent == Module::kRoot)
    return std::nullopt;
  return copy;
}

}  // namespace

void move_last_calls(std::vector<Site>& sites) {
  const ModuleTree tree(sites);
  Samples samples(sites);
  find_copies(sites);
  std::vector<std::size_t> copies(sites.size());
  for (std::size_t i = 0; i < sites.size(); ++i) copies[i] = i;
  for (std::size_t i = 0; i < sites.size(); ++i)
    if (sites[i].copy_of) copies[*sites[i].copy_of] = i;
  std::vector<Position> places;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    places.emplace_back(i, kStays);
    if (const auto container = given_on_by(tree, i, copies))
      places[i] = {*container, kBefore};
    else if (const auto output = repeats(tree, sites, i, copies))
      places[i] = {*output, kBehind};
    else if (const auto source = function_of(tree, i, sites.size(), samples))
      places[i] = {*source, kBehind};
  }
  std::vector<std::size_t> order(sites.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return places[i]; });
  std::vector<Site> sorted;
  for (const std::size_t i : order) sorted.push_back(std::move(sites[i]));
  sites = std::move(sorted);
}

}  // namespace tensordiff
