#include "diagnose/graph/asides.h"

#include <algorithm>
#include <set>
#include <string>

#include "diagnose/carried.h"
#include "diagnose/graph/module_tree.h"

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

}  // namespace

bool find_asides(Run& run) {
  std::set<std::string> kinds;
  for (const Site& site : run.sites)
    if (site.bug() && site.compared() && !site.aside && holds_another(run, site) &&
        reader_agrees(run, site))
      kinds.insert(kind_of(site));
  bool found = false;
  for (Site& site : run.sites) {
    if (site.aside || !site.compared() || !kinds.contains(kind_of(site)) ||
        !holds_another(run, site))
      continue;
    site.aside = found = true;
  }
  return found;
}

}  // namespace tensordiff
