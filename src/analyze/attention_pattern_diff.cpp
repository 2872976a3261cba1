// attention_pattern_diff: do heads look at other places than before?
//
// From attention maps, where they were dumped (tensors like attn_weights whose rows add up to 1):
//   distance of a head = mean over its rows of ½ Σ|b − a|, 0 the same, 1 nothing in common.
// Else from the weights that make the maps:
//   distance of a head = 1 − cos(W_Q) · cos(W_K), each between a and b; and heads of b that are
//   like another head of a than their own are reported as moved.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyze/analysis.h"
#include "analyze/attention_heads.h"
#include "analyze/linear_algebra.h"
#include "analyze/patch.h"
#include "base/text.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr double kSumSlack = 0.02;        // Rows of 16-bit maps do not quite add up to 1.
constexpr std::size_t kRowsOfHead = 256;  // Of a map; more tell no more.
constexpr double kLike = 0.9,
                 kUnlike = 0.5;  // Cosines of a moved head: with its own, with its place.
constexpr std::size_t kSignatureRows = 8, kSignatureColumns = 32;

struct HeadDistance {
  std::string where;  // The name of the map, or of the layer.
  uint64_t head;
  double distance;
};

bool is_map(const Row& pair) {
  const std::string name = lower(pair.a.name);
  if (pair.views.a.shape.size() < 3 || !pair.compared() || pair.views.a.elements() == 0)
    return false;
  if (is_complex(pair.views.a.dtype) || is_complex(pair.views.b.dtype)) return false;
  for (const std::string_view word : {"attn_weights", "attention_weights", "attention_probs",
                                      "attn_probs", "attentions", "attn_map", "attention_map"})
    if (name.find(word) != std::string::npos) return true;
  return false;
}

// The distance of each head of a map, or nothing where its rows do not add up to 1.
std::vector<HeadDistance> map_distances(const Row& pair) {
  const Shape& shape = pair.views.a.shape;
  const uint64_t columns = shape.back(), rows = shape[shape.size() - 2];
  const uint64_t heads = shape[shape.size() - 3];
  const uint64_t maps = pair.views.a.elements() / (rows * columns);
  const Result<Reader> a = Reader::open(pair.views.a), b = Reader::open(pair.views.b);
  if (!a.ok() || !b.ok() || columns > kGroupsMax || heads > 4096) return {};
  std::vector<HeadDistance> found(heads);
  std::vector<double> x(columns), y(columns);
  uint64_t counted = 0;
  for (uint64_t map = 0; map < maps; ++map) {
    for (const uint64_t row : spread(rows, kRowsOfHead)) {
      a.value().values((map * rows + row) * columns, columns, x.data());
      b.value().values((map * rows + row) * columns, columns, y.data());
      double sum = 0, apart = 0;
      for (std::size_t i = 0; i < columns; ++i) sum += x[i], apart += std::abs(y[i] - x[i]) / 2;
      if (!(std::abs(sum - 1) < kSumSlack)) return {};
      found[map % heads].distance += std::isfinite(apart) ? apart : 1;
    }
    counted += map % heads == 0;
  }
  for (uint64_t head = 0; head < heads; ++head) {
    found[head].where = pair.a.name;
    found[head].head = head;
    found[head].distance /= static_cast<double>(counted * std::min<uint64_t>(rows, kRowsOfHead));
  }
  return found;
}

// A few values of each head, at the same places of each.
Dense signatures(const HeadMatrix& matrix, const View& view) {
  const Result<Reader> reader = Reader::open(view);
  Dense found{matrix.heads, 0, {}};
  if (!reader.ok()) return {};
  const uint64_t columns = view.shape[1];
  const uint64_t across = matrix.along_rows ? columns : view.shape[0];
  for (uint64_t h = 0; h < matrix.heads; ++h)
    for (const uint64_t within : spread(matrix.head_size, kSignatureRows))
      for (const uint64_t other : spread(across, kSignatureColumns)) {
        const uint64_t along = h * matrix.head_size + within;
        found.values.push_back(reader.value().value(matrix.along_rows ? along * columns + other
                                                                      : other * columns + along));
      }
  found.columns = found.values.size() / matrix.heads;
  return found;
}

// Heads of b that are like another head of a: "head 3 of b is head 1 of a".
void find_moved(const AttentionLayer& layer, Listing& moved) {
  const Dense a = signatures(*layer.q, layer.q->views.a),
              b = signatures(*layer.q, layer.q->views.b);
  if (a.empty() || b.empty()) return;
  for (std::size_t h = 0; h < b.rows; ++h) {
    if (cosine(a.row(h), b.row(h)) >= kUnlike) continue;
    std::size_t best = h;
    double likeness = kLike;
    for (std::size_t other = 0; other < a.rows; ++other)
      if (const double like = cosine(a.row(other), b.row(h)); like >= likeness)
        best = other, likeness = like;
    if (best != h) moved.add({layer.depth, uint64_t{h}, uint64_t{best}, likeness});
  }
}

double cosine_of(const GroupSum& sum) {
  return sum.aa > 0 && sum.bb > 0 ? sum.ab / std::sqrt(sum.aa * sum.bb) : sum.aa == sum.bb;
}

void from_weights(const Study& study, std::vector<HeadDistance>& heads, Answer& answer) {
  const Attention& attention = study.attention();
  if (!attention.missing.empty()) {
    answer.missing.push_back("attention maps, or " + attention.missing);
    return;
  }
  Listing moved{"moved_heads", {"layer", "head_b", "head_a", "likeness"}, {}, 0};
  for (const AttentionLayer& layer : attention.layers) {
    for (uint64_t h = 0; h < layer.heads(); ++h) {
      const double keys = layer.k ? cosine_of(shared(*layer.k, h, layer.heads())) : 1;
      heads.push_back({fmt::format("layer {}", layer.depth), h,
                       std::max(0.0, 1 - cosine_of(layer.q->sums[h]) * keys)});
    }
    find_moved(layer, moved);
  }
  answer.field("moved", moved.rows_in_all);
  answer.lists.push_back(std::move(moved));
  answer.notes.push_back("no maps were dumped: distances are of the weights that make them");
}

void examine(const Study& study, Answer& answer) {
  std::vector<HeadDistance> heads;
  for (const Row* pair : study.pairs()) {
    if (!is_map(*pair)) continue;
    const std::vector<HeadDistance> found = map_distances(*pair);
    heads.insert(heads.end(), found.begin(), found.end());
  }
  const bool maps = !heads.empty();
  if (!maps) from_weights(study, heads, answer);
  if (heads.empty()) {
    answer.field("distance", "unknown");
    return;
  }
  double sum = 0;
  for (const HeadDistance& head : heads) sum += head.distance;
  std::ranges::stable_sort(heads, std::greater(), &HeadDistance::distance);
  answer.field("source", maps ? "attention_maps" : "weights");
  answer.field("distance", sum / static_cast<double>(heads.size()));
  answer.field("largest", heads[0].distance).field("heads", heads.size());
  Listing& list = answer.list("by_distance", {"where", "head", "distance"});
  for (const HeadDistance& head : heads) list.add({head.where, head.head, head.distance});
}

}  // namespace

constinit const Analysis analyses::attention_pattern_diff = {
    .name = "attention_pattern_diff",
    .flag = "--attention-pattern-diff",
    .question = "Do heads attend to other positions, or are they in another order?",
    .definition = "distance of attention maps, or of the weights that make them; moved heads",
    .examine = examine,
};

}  // namespace tensordiff
