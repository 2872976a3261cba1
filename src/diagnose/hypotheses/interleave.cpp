// Two halves against pairs: b has x0 y0 x1 y1 … where a has x0 x1 … y0 y1 …, or the other way
// round, inside each head or over all features.
//
// This is how rotary pairs are laid out in the two families of models, and how gate and up are
// stored by some kernels.

#include <fmt/format.h>

#include <cmath>

#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

constexpr uint64_t kSizeMin = 4;  // Smaller blocks interleaved are themselves.
constexpr uint64_t kTrialRows = 4;

// Where in a block of `size` features of a the feature `at` of b comes from.
uint64_t source_of(uint64_t at, uint64_t size, bool pairs_in_b) {
  const uint64_t half = size / 2;
  return pairs_in_b ? at / 2 + (at % 2) * half : (at < half ? 2 * at : 2 * (at - half) + 1);
}

double left_over(const Case& it, uint64_t size, bool pairs_in_b, uint64_t rows) {
  double gap = 0, all = 0;
  for (uint64_t row = 0; row < rows; ++row) {
    for (uint64_t i = 0; i < it.a.features; ++i) {
      const uint64_t from = i / size * size + source_of(i % size, size, pairs_in_b);
      const double apart = it.b.row(row)[i] - it.a.row(row)[from];
      if (std::isfinite(apart)) gap += apart * apart;
      all += it.a.row(row)[i] * it.a.row(row)[i];
    }
  }
  return all > 0 ? std::sqrt(gap / all) : 1;
}

Matrix interleaved(const Matrix& a, uint64_t size, bool pairs_in_b) {
  return filled(a, [&](uint64_t row, uint64_t i) {
    return a.row(row)[i / size * size + source_of(i % size, size, pairs_in_b)];
  });
}

std::optional<Explanation> examine(const Case& it) {
  std::vector<uint64_t> sizes;
  if (it.a.heads > 0) sizes.push_back(it.a.features / it.a.heads);
  for (uint64_t size = kSizeMin; size <= it.a.features; size += 2)
    if (it.a.features % size == 0) sizes.push_back(size);
  Explanation best;
  best.after = INFINITY;
  for (const uint64_t size : sizes) {
    if (size < kSizeMin || size % 2 != 0) continue;
    for (const bool pairs_in_b : {true, false}) {
      // A few rows tell most candidates off.
      const uint64_t rows = std::min(it.a.rows(), kTrialRows);
      if (left_over(it, size, pairs_in_b, rows) > it.before / 2) continue;
      const double after = left_over(it, size, pairs_in_b, it.a.rows());
      if (after >= best.after) continue;
      best = explained_by(it, interleaved(it.a, size, pairs_in_b));
      best.after = after;
      best.text = fmt::format("inside each block of {} features B has {} where A has {}", size,
                              pairs_in_b ? "interleaved pairs" : "two halves",
                              pairs_in_b ? "two halves" : "interleaved pairs");
      best.parameters = {{"block", static_cast<double>(size)},
                         {"b", std::string(pairs_in_b ? "interleaved" : "halves")}};
    }
  }
  if (best.text.empty()) return std::nullopt;
  return best;
}

}  // namespace

constinit const Diagnosis diagnoses::interleave = {
    .code = "interleave",
    .question = "Does one side have two halves where the other has interleaved pairs?",
    .explains = "weights of q and k not permuted for the RoPE in use; gate and up interleaved",
    .layout = true,
    .examine = examine,
};

}  // namespace tensordiff
