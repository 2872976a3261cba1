#include "diagnose/graph/last_calls.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "diagnose/graph/edges.h"
#include "diagnose/graph/module_tree.h"
#include "diagnose/replay/activation.h"
#include "tensor/sample.h"

namespace tensordiff {
namespace {

constexpr std::size_t kSample = 64;
constexpr double kFits = 0.01;  // Of the size: what a narrow type leaves of a function.
constexpr std::size_t kLookedAhead = 64;
// To know a layer scale by: so many channels, and elements of each. One factor fits one element of
// a channel whatever they are; of unrelated values, it leaves about three quarters of four.
constexpr uint64_t kChannels = 16, kOfEach = 4;

// Elements of some channels, one channel after the other; none where the axis has not so many of
// both.
std::vector<uint64_t> positions_by_channel(const std::vector<uint64_t>& shape, std::size_t axis) {
  uint64_t inner = 1, outer = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i < axis) outer *= shape[i];
    if (i > axis) inner *= shape[i];
  }
  const uint64_t size = shape[axis], others = outer * inner;
  std::vector<uint64_t> positions;
  if (size < kChannels || others < kOfEach) return positions;
  for (uint64_t c = 0; c < kChannels; ++c)
    for (uint64_t k = 0; k < kOfEach; ++k) {
      const uint64_t channel = c * size / kChannels, other = k * others / kOfEach;
      positions.push_back((other / inner * size + channel) * inner + other % inner);
    }
  return positions;
}

// Whether each channel of one is a multiple of that of the other, and not all the same: a mere
// multiple, as of embeddings in a list of all states, may have been made of either.
bool scales_channels(const std::vector<double>& x, const std::vector<double>& y) {
  double size = 0, left = 0, all_xx = 0, all_xy = 0;
  for (std::size_t begin = 0; begin < x.size(); begin += kOfEach) {
    double xx = 0, xy = 0, yy = 0;
    for (std::size_t i = begin; i < begin + kOfEach; ++i)
      xx += x[i] * x[i], xy += x[i] * y[i], yy += y[i] * y[i];
    size += yy;
    all_xx += xx, all_xy += xy;
    left += xx > 0 ? yy - xy * xy / xx : yy;
  }
  const double most = kFits * kFits * size;
  return size > 0 && left <= most && all_xx > 0 && size - all_xy * all_xy / all_xx > most;
}

// A few values of A, read once for each site.
class Samples {
 public:
  explicit Samples(const std::vector<Site>& sites)
      : sites_(sites), values_(sites.size()), by_last_(sites.size()), by_second_(sites.size()) {}

  // Whether one step is a function of another, element by element.
  bool is_function(std::size_t of, std::size_t site) {
    const View &from = sites_[of].views.a, &to = sites_[site].views.a;
    if (from.shape != to.shape || !sites_[of].compared() || !sites_[site].compared()) return false;
    const std::vector<double>&x = read(of), &y = read(site);
    if (x.size() != y.size() || x.empty()) return false;
    if (is_scaled(of, site)) return true;
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
  using Values = std::optional<std::vector<double>>;

  // A layer scale, which is no module: one factor for each channel, of the last axis or of the
  // second.
  bool is_scaled(std::size_t of, std::size_t site) {
    const std::vector<uint64_t>& shape = sites_[site].views.a.shape;
    if (shape.size() < 2) return false;
    return std::ranges::any_of(std::array{shape.size() - 1, std::size_t{1}}, [&](std::size_t axis) {
      const auto read_at = [&](std::size_t each) -> const std::vector<double>& {
        return read(each, axis == 1 ? by_second_[each] : by_last_[each],
                    [&](const View& view) { return positions_by_channel(view.shape, axis); });
      };
      const std::vector<double>&x = read_at(of), &y = read_at(site);
      return !x.empty() && x.size() == y.size() && scales_channels(x, y);
    });
  }

  const std::vector<double>& read(std::size_t site) {
    return read(site, values_[site],
                [](const View& view) { return sample_positions(view.elements(), kSample); });
  }
  template <typename Positions>
  const std::vector<double>& read(std::size_t site, Values& values, Positions&& positions) {
    if (values) return *values;
    values.emplace();
    const View& view = sites_[site].views.a;
    const Result<Reader> reader =
        is_complex(view.dtype) ? Result<Reader>(Error("complex")) : Reader::open(view);
    if (reader.ok()) *values = values_at(reader.value(), positions(view));
    return *values;
  }

  const std::vector<Site>& sites_;
  std::vector<Values> values_, by_last_, by_second_;
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
  // What the next step is a function of was computed before that: a convolution and its norm.
  if (site + 1 < count && samples.is_function(site, site + 1)) return std::nullopt;
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

// The sites of each kind: what the blocks of a model have each.
using Kinds = std::map<std::string, std::vector<std::size_t>>;

// The step of a later block that a site is a function of, where all blocks call one module: it is
// named in the first of them alone, and holds what it gave in the last.
std::optional<std::size_t> shared_function_of(const ModuleTree& tree,
                                              const std::vector<Site>& sites, std::size_t site,
                                              const Kinds& kinds, Samples& samples) {
  const std::size_t module = tree.module_of(site), parent = tree[module].parent;
  if (!tree[module].inside.empty() || parent == Module::kRoot || !tree.block_of(site) ||
      kinds.at(kind_of(sites[site])).size() > 1)
    return std::nullopt;
  std::optional<std::size_t> found;
  for (const std::size_t other : tree[parent].inside)
    for (const std::size_t beside : tree[other].outputs) {
      if (other == module) continue;
      if (samples.is_function(beside, site)) return std::nullopt;
      for (const std::size_t like : kinds.at(kind_of(sites[beside])))
        if (like > site && like > found.value_or(site) && like != beside &&
            samples.is_function(like, site))
          found = like;
    }
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
  Kinds kinds;
  for (std::size_t i = 0; i < sites.size(); ++i) kinds[kind_of(sites[i])].push_back(i);
  std::vector<Position> places;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    places.emplace_back(i, kStays);
    if (const auto container = given_on_by(tree, i, copies))
      places[i] = {*container, kBefore};
    else if (const auto output = repeats(tree, sites, i, copies))
      places[i] = {*output, kBehind};
    else if (const auto source = function_of(tree, i, sites.size(), samples))
      places[i] = {*source, kBehind};
    else if (const auto shared = shared_function_of(tree, sites, i, kinds, samples))
      places[i] = {*shared, kBehind};
  }
  std::vector<std::size_t> order(sites.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return places[i]; });
  std::vector<Site> sorted;
  for (const std::size_t i : order) sorted.push_back(std::move(sites[i]));
  sites = std::move(sorted);
}

}  // namespace tensordiff
