// A weight rounded to few levels, the usual ways.

#pragma once

#include <string>
#include <vector>

#include "diagnose/finding.h"
#include "diagnose/operators/parameters.h"

namespace tensordiff::operators {

struct Quantised {
  TablePtr made;
  std::string text;
  double bits = 0;  // log2 of the ways tried.
  std::vector<tensordiff::Parameter> parameters = {};
};

// Empty where the weight is not one of a file.
std::vector<Quantised> quantised_ways(const TablePtr& weight);

}  // namespace tensordiff::operators
