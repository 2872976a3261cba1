#include "compare/metric.h"

namespace tensordiff {
namespace {

using enum Metric::Good;

std::optional<double> count(uint64_t number) { return static_cast<double>(number); }

std::optional<double> exceeding_share(const Diff& diff) {
  const uint64_t all = diff.compared + diff.nonfinite_mismatch + diff.nonfinite_agreeing;
  if (all == 0) return std::nullopt;
  return static_cast<double>(diff.exceeding + diff.nonfinite_mismatch) / static_cast<double>(all);
}

constexpr Metric kMetrics[] = {
    {"cosine", high, [](const Diff& diff) { return diff.cosine; }},
    {"pcc", high, [](const Diff& diff) { return diff.pcc; }},
    {"max_abs", low, [](const Diff& diff) { return diff.max_abs; }},
    {"mean_abs", low, [](const Diff& diff) { return diff.mean_abs; }},
    {"mse", low, [](const Diff& diff) { return diff.mse; }},
    {"rmse", low, [](const Diff& diff) { return diff.rmse; }},
    {"max_rel", low, [](const Diff& diff) { return diff.max_rel; }},
    {"mean_rel", low, [](const Diff& diff) { return diff.mean_rel; }},
    {"rel_l2", low, [](const Diff& diff) { return diff.rel_l2; }},
    {"norm_ratio", near_one, [](const Diff& diff) { return diff.norm_ratio; }},
    {"rtol_needed", low, [](const Diff& diff) { return diff.rtol_needed; }},
    {"ulp_max", low,
     [](const Diff& diff) { return diff.ulp_max ? count(*diff.ulp_max) : std::nullopt; }},
    {"exceeding", low, [](const Diff& diff) { return count(diff.exceeding); }},
    {"exceeding_share", low, exceeding_share},
    {"nonfinite_mismatch", low, [](const Diff& diff) { return count(diff.nonfinite_mismatch); }},
};

}  // namespace

std::span<const Metric> metrics() { return kMetrics; }

const Metric* metric_named(std::string_view name) {
  for (const Metric& metric : kMetrics)
    if (metric.name == name) return &metric;
  return nullptr;
}

}  // namespace tensordiff
