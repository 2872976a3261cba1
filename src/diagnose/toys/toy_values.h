// What tests make of the values and dumps of a toy.

#pragma once

#include "diagnose/toys/toy_model.h"

namespace tensordiff {

inline Values random_values(uint64_t count, unsigned seed, double size = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, size);
  Values values(count);
  for (double& value : values) value = normal(random);
  return values;
}

// As where the residual stream was not dumped.
inline std::vector<ToyModel::Dump> without_stream(std::vector<ToyModel::Dump> dumps) {
  std::erase_if(dumps, [](const ToyModel::Dump& dump) { return dump.stage == "output"; });
  return dumps;
}

}  // namespace tensordiff
