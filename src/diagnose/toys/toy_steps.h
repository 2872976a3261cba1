// Steps that tests write down by hand: a name and the values of both sides, of 16 tokens each.

#pragma once

#include "compare/comparison.h"
#include "diagnose/diagnose.h"
#include "diagnose/toys/toy_values.h"
#include "naming/naming.h"

namespace tensordiff {

struct Held {
  std::string name;
  Values a, b;
};

// In this order of capture.
inline std::vector<Site> sites_of(const std::vector<Held>& held, DType dtype = DType::f32) {
  std::vector<std::string> names;
  for (const Held& each : held) names.push_back(each.name);
  const std::vector<Place> places = read_places(names);
  std::vector<Site> sites;
  for (const Held& each : held) {
    Site site;
    site.index = site.capture = site.capture_b = sites.size();
    site.a.name = site.b.name = each.name;
    site.a.place = site.b.place = places[sites.size()];
    site.views.a = view_of({16, each.a.size() / 16}, each.a, dtype);
    site.views.b = view_of({16, each.b.size() / 16}, each.b, dtype);
    site.comparison = compare(site.views, {}).value();
    sites.push_back(std::move(site));
  }
  return sites;
}

// The names that were called a bug.
inline std::string alarms(const std::vector<Held>& held) {
  std::string told;
  for (const Outcome& outcome : diagnose(sites_of(held), {}).outcomes)
    if (outcome.verdict == Verdict::bug) told += held[outcome.pair].name + " ";
  return told;
}

}  // namespace tensordiff
