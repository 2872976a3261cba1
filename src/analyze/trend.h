// Checkpoints of one training run, in order: how far each step moved the weights, and whether the
// steps go on in one direction.
//
// For each group of tensors (a layer, the embedding) and each step i:
//   update_i = ‖x_i − x_{i−1}‖ / ‖x_{i−1}‖
//   cosine_i = ⟨x_i − x_{i−1}, x_{i−1} − x_{i−2}⟩ / (‖x_i − x_{i−1}‖ ‖x_{i−1} − x_{i−2}‖)
// Elements that are not finite in one of the checkpoints concerned are counted and left out. The
// files are read once, in pieces: memory does not grow with the size of the tensors.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analyze/convergence.h"
#include "base/result.h"
#include "tensor/catalog.h"

namespace tensordiff {

// One checkpoint.
struct TrendStep {
  std::string path;
  std::optional<double> step, loss, score;  // Where the checkpoint holds them.
};

// What one checkpoint did to one group.
struct TrendPoint {
  std::optional<double> norm;    // ‖x_i‖ over the finite elements.
  std::optional<double> update;  // Nothing for the first checkpoint.
  std::optional<double> cosine;  // With the update before; nothing for the first two.
  uint64_t nonfinite = 0;
};

struct TrendGroup {
  std::string name;
  uint64_t tensors = 0;
  uint64_t elements = 0;
  std::vector<TrendPoint> points;  // One for each checkpoint.
};

struct Trend {
  std::vector<TrendStep> steps;
  std::vector<TrendGroup> groups;  // The first is all of them together, "all".
  Course course = Course::unknown;
  std::string reason;
  std::vector<std::string> notes;  // Which tensors were left out, and why.
};

// At least two checkpoints. `progress` may be empty.
Result<Trend> measure_trend(const std::vector<Catalog>& checkpoints,
                            const std::function<void(uint64_t done, uint64_t total)>& progress);

}  // namespace tensordiff
