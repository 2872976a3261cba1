#include "analyze/attention_heads.h"

#include <fmt/format.h>

#include <map>

#include "align/view.h"
#include "analyze/structure.h"
#include "base/text.h"

namespace tensordiff {
namespace {

bool has(const Row& pair, std::string_view word) {
  return lower(pair.a.name).find(word) != std::string::npos;
}

AlignedPair part(const AlignedPair& views, std::size_t axis, uint64_t first, uint64_t size) {
  return {narrowed(views.a, axis, first, size), narrowed(views.b, axis, first, size), {}};
}

class Collector {
 public:
  Collector(uint64_t heads, uint64_t kv_heads) : heads_(heads), kv_heads_(kv_heads) {}

  void add(const Row& pair, std::map<int64_t, AttentionLayer>& layers,
           std::vector<std::string>& skipped) {
    const Place& place = pair.a.place;
    if (!place.known || place.parameter == Param::bias || !place.layer_named) return;
    if (pair.views.a.shape.size() != 2) return;
    AttentionLayer& layer = layers[place.layer];
    layer.depth = place.layer;
    // GPT-2 keeps its matrices the other way round, inputs first.
    const bool turned = has(pair, "c_attn") || has(pair, "c_proj");
    if (place.step == Role::query) layer.q = matrix(pair.views, true, heads_);
    if (place.step == Role::key) layer.k = matrix(pair.views, true, kv_heads_);
    if (place.step == Role::value) layer.v = matrix(pair.views, true, kv_heads_);
    if (place.step == Role::attention_output) layer.o = matrix(pair.views, turned, heads_);
    if (place.step == Role::fused_qkv && !split_fused(pair, layer)) skipped.push_back(pair.a.name);
  }

 private:
  static std::optional<HeadMatrix> matrix(const AlignedPair& views, bool along_rows,
                                          uint64_t heads) {
    const uint64_t length = views.a.shape[along_rows ? 0 : 1];
    if (heads == 0 || length % heads != 0 || views.a.elements() == 0) return std::nullopt;
    return HeadMatrix{views, along_rows, heads, length / heads, {}};
  }

  // Query, key and value one after the other; other orders are not told apart by shape.
  bool split_fused(const Row& pair, AttentionLayer& layer) const {
    const bool turned = has(pair, "c_attn");
    if (!turned && !has(pair, "in_proj") && !has(pair, "qkv_proj") && !has(pair, "w_pack"))
      return false;
    const std::size_t axis = turned ? 1 : 0;
    const uint64_t length = pair.views.a.shape[axis], all = heads_ + 2 * kv_heads_;
    if (length == 0 || length % all != 0) return false;
    const uint64_t size = length / all;
    const uint64_t q = heads_ * size, kv = kv_heads_ * size;
    layer.q = matrix(part(pair.views, axis, 0, q), !turned, heads_);
    layer.k = matrix(part(pair.views, axis, q, kv), !turned, kv_heads_);
    layer.v = matrix(part(pair.views, axis, q + kv, kv), !turned, kv_heads_);
    return true;
  }

  uint64_t heads_, kv_heads_;
};

void measure(std::optional<HeadMatrix>& matrix) {
  if (!matrix) return;
  const uint64_t columns = matrix->views.a.shape[1];
  const uint64_t run = matrix->along_rows ? matrix->head_size * columns : matrix->head_size;
  Result<std::vector<GroupSum>> sums = group_sums(matrix->views, {run, matrix->heads});
  if (sums.ok())
    matrix->sums = std::move(sums).value();
  else
    matrix.reset();
}

}  // namespace

const GroupSum& shared(const HeadMatrix& matrix, uint64_t h, uint64_t heads) {
  return matrix.sums[h * matrix.heads / heads];
}

GroupSum AttentionLayer::head(uint64_t h) const {
  GroupSum sum;
  for (const std::optional<HeadMatrix>* matrix : {&q, &k, &v, &o})
    if (*matrix) sum.add(shared(**matrix, h, heads()));
  return sum;
}

Attention attention_of(const Study& study) {
  Attention found;
  const Structure a = structure_of(study.a(), study.facts_a());
  const Structure b = structure_of(study.b(), study.facts_b());
  found.heads = a.heads ? a.heads : b.heads;
  found.kv_heads = a.kv_heads ? a.kv_heads : b.kv_heads;
  if (!attends(a.family)) {
    found.missing = "query, key, value and output projections under names that are known";
    return found;
  }
  if (!found.heads || *found.heads > kGroupsMax) {
    found.missing = "the number of attention heads: config.json beside the model, or metadata";
    return found;
  }
  if (a.heads && b.heads && *a.heads != *b.heads) {
    found.missing = fmt::format("as many heads on both sides: A has {}, B {} (--what-changed)",
                                *a.heads, *b.heads);
    return found;
  }
  std::map<int64_t, AttentionLayer> layers;
  Collector collector(*found.heads, found.kv_heads.value_or(*found.heads));
  for (const Row* pair : study.weights()) collector.add(*pair, layers, found.skipped);
  for (auto& [depth, layer] : layers) {
    for (std::optional<HeadMatrix>* matrix : {&layer.q, &layer.k, &layer.v, &layer.o})
      measure(*matrix);
    if (layer.q) found.layers.push_back(std::move(layer));
  }
  if (found.layers.empty()) found.missing = "projections whose sizes the number of heads divides";
  return found;
}

}  // namespace tensordiff
