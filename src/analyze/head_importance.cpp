// head_importance: which heads can say most, and did that change?
//
//   importance = ‖W_V of the head‖ · ‖W_O of the head‖, as a share of its layer: a bound on how
//                much the head can write, whatever it attends to
//   heads in use = exp(entropy of the shares) / heads: 1 all alike, 1/heads a single one

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analyze/analysis.h"
#include "analyze/attention_heads.h"
#include "analyze/linear_algebra.h"

namespace tensordiff {
namespace {

struct Importance {
  int64_t layer;
  uint64_t head;
  double a, b;
};

using Shares = std::vector<double>;

Shares shares_of(const AttentionLayer& layer, double GroupSum::*side) {
  Shares shares;
  for (uint64_t h = 0; h < layer.heads(); ++h)
    shares.push_back(
        std::sqrt(shared(*layer.v, h, layer.heads()).*side * (layer.o->sums[h].*side)));
  const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share = total > 0 ? share / total : 0;
  return shares;
}

double in_use(const Shares& shares) {
  double entropy = 0;
  for (const double share : shares)
    if (share > 0) entropy -= share * std::log(share);
  return shares.empty() ? 0 : std::exp(entropy) / static_cast<double>(shares.size());
}

// Places in ascending order; equal values share the mean of theirs.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> found(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    for (std::size_t i = first; i < end; ++i)
      found[order[i]] = static_cast<double>(first + end - 1) / 2;
    first = end;
  }
  return found;
}

// Spearman's: do the heads of b stand in the order of those of a?
std::optional<double> rank_correlation(const std::vector<Importance>& heads) {
  std::vector<double> a, b;
  for (const Importance& head : heads) a.push_back(head.a), b.push_back(head.b);
  std::vector<double> x = ranks(a), y = ranks(b);
  const double mean = static_cast<double>(x.size() - 1) / 2;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] -= mean, y[i] -= mean;
  if (dot(x, x) == 0 || dot(y, y) == 0) return std::nullopt;
  return cosine(x, y);
}

void examine(const Study& study, Answer& answer) {
  Attention attention = study.attention();
  std::erase_if(attention.layers, [](const AttentionLayer& layer) { return !layer.v || !layer.o; });
  if (attention.missing.empty() && attention.layers.empty())
    attention.missing = "value and output projections of the same layer";
  if (!attention.missing.empty()) {
    answer.unknown("most_important_head", attention.missing);
    return;
  }
  std::vector<Importance> heads;
  double use_a = 0, use_b = 0;
  Chart chart{Chart::Kind::heat_map,
              "importance_b",
              "share of each head in what its layer can write",
              {},
              {},
              {}};
  for (uint64_t h = 0; h < *attention.heads; ++h) chart.x.push_back(std::to_string(h));
  for (const AttentionLayer& layer : attention.layers) {
    const Shares a = shares_of(layer, &GroupSum::aa), b = shares_of(layer, &GroupSum::bb);
    for (uint64_t h = 0; h < a.size(); ++h) heads.push_back({layer.depth, h, a[h], b[h]});
    use_a += in_use(a) / static_cast<double>(attention.layers.size());
    use_b += in_use(b) / static_cast<double>(attention.layers.size());
    chart.y.push_back(std::to_string(layer.depth));
    chart.values.insert(chart.values.end(), b.begin(), b.end());
  }
  answer.field("rank_correlation", rank_correlation(heads));
  std::ranges::stable_sort(heads, std::greater(), &Importance::b);
  answer.field("most_important_layer", heads[0].layer).field("most_important_head", heads[0].head);
  answer.field("heads_in_use_a", use_a).field("heads_in_use_b", use_b);
  Listing& list = answer.list("by_importance", {"layer", "head", "importance_a", "importance_b"});
  for (const Importance& head : heads) list.add({head.layer, head.head, head.a, head.b});
  answer.charts.push_back(std::move(chart));
}

}  // namespace

constinit const Analysis analyses::head_importance = {
    .name = "head_importance",
    .flag = "--head-importance",
    .question = "Which heads matter most, and did that change?",
    .definition = "norms of W_V times W_O of each head, as a share of its layer",
    .examine = examine,
};

}  // namespace tensordiff
