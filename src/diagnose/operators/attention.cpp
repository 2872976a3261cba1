#include "diagnose/operators/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace tensordiff::operators {
namespace {

constexpr uint64_t kValuesMax = uint64_t{1} << 23;  // Of the keys of one sequence.

uint64_t tokens_of(const Extents& extents, uint64_t batch) {
  return extents.rows() / std::max<uint64_t>(1, batch);
}

// Turns all heads of a row at a position.
void turn(const Rope& rope, double position, std::span<double> row, uint64_t dim) {
  const uint64_t half = rope.dims / 2;
  for (uint64_t i = 0; i < half; ++i) {
    const double angle =
        position * rope.stretch *
        std::pow(rope.base, -2.0 * static_cast<double>(i) / static_cast<double>(rope.dims));
    const double cosine = std::cos(angle), sine = std::sin(angle);
    for (uint64_t head = 0; head < row.size(); head += dim) {
      double& x = row[head + (rope.pairs ? 2 * i : i)];
      double& y = row[head + (rope.pairs ? 2 * i + 1 : i + half)];
      const double turned = x * cosine - y * sine;
      y = y * cosine + x * sine;
      x = turned;
    }
  }
}

// What ALiBi takes off for each token of distance: a geometric series over the heads.
double slope_of(uint64_t head, uint64_t heads) {
  uint64_t power = 1;
  while (power * 2 <= heads) power *= 2;
  const auto of = static_cast<double>(power);
  if (head < power) return std::exp2(-8.0 * static_cast<double>(head + 1) / of);
  return std::exp2(-4.0 * static_cast<double>(2 * (head - power) + 1) / of);
}

}  // namespace

// The keys and values of one sequence, turned.
struct Attention::Sequence {
  uint64_t index = 0;
  Block keys, values, bias;
};

Attention::Attention(AttentionForm form, Inputs inputs)
    : form_(std::move(form)), inputs_(std::move(inputs)), extents_(inputs_.query->extents()) {
  const uint64_t batch = extents_.rows_by_axis.size() > 1 ? extents_.rows_by_axis[0] : 1;
  queries_ = tokens_of(extents_, batch);
  keys_ = tokens_of(inputs_.key->extents(), batch);
  extents_.features = inputs_.value->extents().features / form_.kv_heads * form_.heads;
}

// One query of all heads; false where it sees no key.
bool Attention::attend(const Sequence& of, uint64_t token, const double* query, double* out) const {
  const uint64_t dim = inputs_.query->extents().features / form_.heads;
  const uint64_t value_dim = inputs_.value->extents().features / form_.kv_heads;
  const uint64_t shared = std::max<uint64_t>(1, form_.heads / form_.kv_heads);
  const auto at = static_cast<int64_t>(token);
  int64_t end = form_.causal ? at + 1 + form_.late : static_cast<int64_t>(keys_);
  end = std::min(end, static_cast<int64_t>(keys_));
  int64_t begin = form_.window > 0 ? at + 1 - static_cast<int64_t>(form_.window) : 0;
  if (!form_.seen.empty()) {
    begin = std::max(begin, static_cast<int64_t>(form_.seen[of.index].first));
    end = std::min(end, static_cast<int64_t>(form_.seen[of.index].second));
  }
  begin = std::max<int64_t>(begin, 0);
  if (begin >= end) return false;
  std::vector<double> scores(static_cast<std::size_t>(end - begin));
  for (uint64_t h = 0; h < form_.heads; ++h) {
    const uint64_t kv = form_.tiled ? h % form_.kv_heads : h / shared;
    double most = -std::numeric_limits<double>::infinity();
    for (int64_t s = begin; s < end; ++s) {
      const double* key = of.keys.row(static_cast<uint64_t>(s)) + kv * dim;
      double score = 0;
      for (uint64_t i = 0; i < dim; ++i) score += query[h * dim + i] * key[i];
      score *= form_.scale;
      if (form_.cap > 0) score = form_.cap * std::tanh(score / form_.cap);
      if (!of.bias.empty()) score += of.bias.row(token * keys_ + static_cast<uint64_t>(s))[h];
      if (form_.alibi) score -= slope_of(h, form_.heads) * static_cast<double>(at - s);
      scores[static_cast<std::size_t>(s - begin)] = score;
      most = std::max(most, score);
    }
    double total = 0;
    for (double& score : scores) total += score = std::exp(score - most);
    double* to = out + h * value_dim;
    std::fill(to, to + value_dim, 0.0);
    for (int64_t s = begin; s < end; ++s) {
      const double* value = of.values.row(static_cast<uint64_t>(s)) + kv * value_dim;
      const double share = scores[static_cast<std::size_t>(s - begin)] / total;
      for (uint64_t i = 0; i < value_dim; ++i) to[i] += share * value[i];
    }
  }
  return true;
}

double Attention::position_of(uint64_t sequence, uint64_t token) const {
  if (form_.uncounted.empty()) return static_cast<double>(token);
  const uint64_t padding = form_.uncounted[sequence];
  return token < padding ? form_.padding_at : static_cast<double>(token - padding);
}

Block Attention::predict(const Reading& from, const Grid& grid) const {
  const uint64_t features = inputs_.query->extents().features;
  if (keys_ * inputs_.key->extents().features > kValuesMax || queries_ == 0 || keys_ == 0)
    return {};
  Block queries = inputs_.query->predict(from, {grid.rows});
  if (queries.empty()) return {};
  Block all{extents_.features};
  all.values.resize(grid.rows.size() * extents_.features);
  Sequence of;
  uint64_t loaded = UINT64_MAX;
  const uint64_t dim = features / form_.heads;
  for (std::size_t r = 0; r < grid.rows.size(); ++r) {
    of.index = grid.rows[r] / queries_;
    const uint64_t token = grid.rows[r] % queries_;
    if (of.index != loaded) {
      Grid rows;
      // Queries come in order: of a causal sequence no later key is seen than the last of them.
      for (uint64_t s = 0; s < keys_; ++s) rows.rows.push_back(of.index * keys_ + s);
      of.keys = inputs_.key->predict(from, rows);
      of.values = inputs_.value->predict(from, rows);
      if (of.keys.empty() || of.values.empty()) return {};
      if (inputs_.bias) {
        Grid places;
        for (uint64_t i = 0; i < queries_ * keys_; ++i) places.rows.push_back(i);
        of.bias = inputs_.bias->predict(from, places);
        if (of.bias.empty() || of.bias.features != form_.heads) return {};
      }
      for (uint64_t s = 0; s < keys_ && form_.rope.base > 0 && form_.rope.of_keys; ++s)
        turn(form_.rope, position_of(of.index, s), {of.keys.row(s), of.keys.features}, dim);
      loaded = of.index;
    }
    if (form_.rope.base > 0 && form_.rope.of_queries)
      turn(form_.rope, position_of(of.index, token) + form_.rope.ahead,
           {queries.row(r), queries.features}, dim);
    if (!attend(of, token, queries.row(r), all.row(r)))
      std::fill(all.row(r), all.row(r) + all.features, std::numeric_limits<double>::quiet_NaN());
  }
  if (grid.columns.empty()) return all;
  Block picked{grid.columns.size()};
  for (uint64_t r = 0; r < all.rows(); ++r)
    for (const uint64_t column : grid.columns) picked.values.push_back(all.row(r)[column]);
  return picked;
}

}  // namespace tensordiff::operators
