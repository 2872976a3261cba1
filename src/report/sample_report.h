// A small report written by hand, for the tests of the renderers: one pair of each status and a
// tensor left over on each side.

#pragma once

#include "report/report.h"

namespace tensordiff {

// Statistics of `finite` numbers, from the least to the largest.
inline Stats stats_between(uint64_t finite, double min, double max) {
  Stats stats;
  stats.finite = finite;
  stats.zeros = min == 0 && max == 0 ? finite : 0;
  stats.mean = (min + max) / 2;
  stats.std = (max - min) / 4;
  stats.min = min;
  stats.max = max;
  return stats;
}

// Of a tensor without a single finite number.
inline Stats nonfinite_stats(uint64_t nan, uint64_t inf) {
  Stats stats;
  stats.nan = nan;
  stats.inf = inf;
  return stats;
}

inline PairRow sample_pair(std::size_t index, const std::string& name, Status status) {
  PairRow row;
  row.index = index;
  row.a = {name, DType::f32, {2, 3}, ""};
  row.b = {name, DType::bf16, {2, 3}, ""};
  row.matched_by = &matchers::exact;
  row.shape = {2, 3};
  Comparison& comparison = row.comparison;
  comparison.status = status;
  comparison.a = stats_between(6, -1, 2);
  comparison.b = stats_between(6, -1, 2.5);
  Diff& diff = comparison.diff;
  diff.compared = 6;
  diff.equal = 5;
  diff.max_abs = 0.5;
  diff.max_abs_at = {1, 2};
  diff.a_there = 2;
  diff.b_there = 2.5;
  diff.rel_l2 = 0.125;
  diff.cosine = 0.75;
  diff.exceeding = status == Status::different ? 1 : 0;
  diff.tolerance = {1e-5, 0.016};
  return row;
}

// A pair that was not compared, and why.
inline PairRow sample_failure(std::size_t index, const std::string& name, Status status,
                              std::string message) {
  PairRow row = sample_pair(index, name, status);
  row.shape = {};
  row.comparison = {};
  row.comparison.status = status;
  row.message = std::move(message);
  return row;
}

inline Report sample_report() {
  Report report;
  report.a = {"a.pt", "torch-zip", 6, 36, 144, {{"evil.pkl", "posix.system was not run"}}};
  report.b = {"b.npz", "npz", 6, 36, 144, {}};
  report.steps = true;
  report.pairs = {
      sample_pair(0, "same", Status::identical),
      sample_pair(1, "near", Status::close),
      sample_pair(2, "off", Status::different),
      sample_failure(3, "odd", Status::incomparable, "no common layout for [2, 3] and [7]"),
      sample_failure(4, "cut", Status::error, "B: deflate stream ends early"),
  };
  report.pairs[3].b.shape = {7};
  report.pairs[2].layer = 1;
  report.pairs[2].stage = "query";
  report.pairs[2].steps = {{'a', Op::squeeze, {0}},
                           {'b', Op::permute, {1, 0}},
                           {'b', Op::split, {1, 8, 64}},
                           {'b', Op::truncate, {0, 20}}};
  report.summary = {.identical = 1,
                    .close = 1,
                    .different = 1,
                    .incomparable = 1,
                    .error = 1,
                    .verdict = Conclusion::trouble};
  report.first_divergence = {2, true, "its inputs agree; its output does not"};
  report.only_a = {{{"gone", DType::f32, {4}, ""}, false, stats_between(4, 1, 1)}};
  report.only_b = {{{"new", DType::i64, {}, ""}, false, stats_between(1, 3, 3)}};
  report.notes = {"layer 3 of B is compared with layer 1 of A"};
  return report;
}

}  // namespace tensordiff
