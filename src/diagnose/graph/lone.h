// What only one of two dumps holds: steps may have read it all the same.

#pragma once

#include <span>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"

namespace tensordiff {

// A tensor that has no partner of its shape on the other side.
struct Lone {
  std::string name;
  std::size_t capture = 0;  // Its place in the file.
  View view;
};

struct LoneTensors {
  std::vector<Lone> a, b;
};

// The tensors of one side that have no partner, and those whose partner has another shape.
std::vector<Lone> lone_tensors(const Catalog& catalog, std::span<const Leftover> leftovers,
                               const std::vector<Site>& sites, std::size_t Row::*capture);

// As diagnose(), with what the pairs do not show.
Insight diagnose(std::vector<Site> sites, const DiagnoseOptions& options, const LoneTensors& lone);

}  // namespace tensordiff
