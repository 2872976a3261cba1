// attention_analysis: how much did each projection and each head change?
//
//   change of a head = ‖Δ‖ / ‖A‖ over its rows of W_Q, W_K, W_V and its columns of W_O; where
//   several heads share one of keys and values, that one counts for each of them

#include <algorithm>
#include <cmath>

#include "analyze/analysis.h"
#include "analyze/attention_heads.h"

namespace tensordiff {
namespace {

GroupSum whole(const std::optional<HeadMatrix>& matrix) {
  GroupSum sum;
  if (matrix)
    for (const GroupSum& head : matrix->sums) sum.add(head);
  return sum;
}

struct HeadChange {
  int64_t layer;
  uint64_t head;
  double change;
};

void examine(const Study& study, Answer& answer) {
  const Attention& attention = study.attention();
  if (!attention.missing.empty()) {
    answer.unknown("heads", attention.missing);
    return;
  }
  answer.field("layers", attention.layers.size()).field("heads", attention.heads);
  answer.field("kv_heads", attention.kv_heads);
  answer.field("head_size", attention.layers[0].q->head_size);
  GroupSum all[4];
  std::vector<HeadChange> heads;
  Chart chart{
      Chart::Kind::heat_map, "change_by_head", "change of each head, relative to A", {}, {}, {}};
  for (uint64_t h = 0; h < *attention.heads; ++h) chart.x.push_back(std::to_string(h));
  Listing layers{"by_layer", {"layer", "q", "k", "v", "o"}, {}, 0};
  for (const AttentionLayer& layer : attention.layers) {
    const GroupSum sums[4] = {whole(layer.q), whole(layer.k), whole(layer.v), whole(layer.o)};
    for (std::size_t i = 0; i < 4; ++i) all[i].add(sums[i]);
    layers.add({layer.depth, sums[0].relative(), sums[1].relative(), sums[2].relative(),
                sums[3].relative()});
    chart.y.push_back(std::to_string(layer.depth));
    for (uint64_t h = 0; h < layer.heads(); ++h) {
      heads.push_back({layer.depth, h, layer.head(h).relative().value_or(0)});
      chart.values.push_back(heads.back().change);
    }
  }
  answer.field("change_q", all[0].relative()).field("change_k", all[1].relative());
  answer.field("change_v", all[2].relative()).field("change_o", all[3].relative());
  std::ranges::stable_sort(heads, std::greater(), &HeadChange::change);
  answer.field("most_changed_layer", heads[0].layer).field("most_changed_head", heads[0].head);
  answer.field("changed_heads",
               static_cast<uint64_t>(std::ranges::count_if(
                   heads, [](const HeadChange& head) { return head.change > 0; })));
  answer.lists.push_back(std::move(layers));
  Listing& list = answer.list("most_changed", {"layer", "head", "change"});
  for (const HeadChange& head : heads) list.add({head.layer, head.head, head.change});
  answer.charts.push_back(std::move(chart));
  for (const std::string& name : attention.skipped)
    answer.notes.push_back("fused in an order that is not told by its shape: " + name);
}

}  // namespace

constinit const Analysis analyses::attention_analysis = {
    .name = "attention_analysis",
    .flag = "--attention-analysis",
    .question = "How much did each attention projection and each head change?",
    .definition = "size of the change of W_Q, W_K, W_V, W_O by layer and by head",
    .examine = examine,
};

}  // namespace tensordiff
