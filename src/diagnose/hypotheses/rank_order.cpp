#include "diagnose/hypotheses/rank_order.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "align/evidence.h"
#include "align/view.h"
#include "base/side.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

// What each rank of a side holds; empty where they are not all known.
std::vector<View> shards_of(const AlignedPair& pair, char side, std::size_t ranks) {
  std::vector<std::optional<View>> held(ranks);
  for (const Copy& copy : pair.copies) {
    if (copy.side != side || std::max(copy.rank, copy.like) >= ranks) continue;
    held[copy.rank] = copy.view;
    held[copy.like] = copy.like_view;
  }
  std::vector<View> shards;
  for (std::optional<View>& view : held)
    if (view) shards.push_back(std::move(*view));
  if (shards.size() != ranks) shards.clear();
  return shards;
}

// Which piece each rank holds, numbered as they first come, and the pieces.
struct Dealt {
  std::vector<uint64_t> piece_of;
  std::vector<View> pieces;
};

Dealt deal(const std::vector<View>& shards) {
  Dealt dealt;
  for (const View& shard : shards) {
    const auto same = std::ranges::find_if(dealt.pieces, [&](const View& piece) {
      return piece.shape == shard.shape && samples_equal({piece, shard, {}});
    });
    dealt.piece_of.push_back(static_cast<uint64_t>(same - dealt.pieces.begin()));
    if (same == dealt.pieces.end()) dealt.pieces.push_back(shard);
  }
  return dealt;
}

std::optional<Explanation> on_side(const Case& it, char side) {
  const AlignedPair& views = it.site.views;
  const auto concat = std::ranges::find(views.steps, side, &Step::side);
  if (concat == views.steps.end() || concat->op != Op::concat || concat->argument[2] < 2)
    return std::nullopt;
  const uint64_t ranks = concat->argument[1], copies = concat->argument[2];
  const Dealt dealt = deal(shards_of(views, side, ranks));
  if (dealt.pieces.size() != ranks / copies) return std::nullopt;
  std::vector<uint64_t> expected;
  for (uint64_t rank = 0; rank < ranks; ++rank) expected.push_back(rank / copies);
  if (dealt.piece_of == expected) return std::nullopt;

  View whole = concatenated(dealt.pieces, concat->argument[0]);
  for (auto step = concat + 1; step != views.steps.end(); ++step)
    if (step->side == side) whole = apply(*step, std::move(whole));
  const Result<Matrix> put_right = read_matrix(whole, it.run.extent);
  const Matrix& other = side == 'a' ? it.b : it.a;
  if (!put_right.ok() || !same_form(put_right.value(), other)) return std::nullopt;
  Explanation found;
  found.after = distance(put_right.value().values, other.values) / it.norm_a;
  found.text = fmt::format(
      "the ranks of {} are in the wrong order: they hold the pieces [{}], not [{}]; in that order "
      "they match",
      capital(side), fmt::join(dealt.piece_of, ", "), fmt::join(expected, ", "));
  found.parameters = {{"ranks", static_cast<double>(ranks)}, {"source", dealt.piece_of}};
  return found;
}

}  // namespace

std::optional<Explanation> ranks_in_another_order(const Case& it) {
  if (it.norm_a == 0) return std::nullopt;
  for (const char side : {'a', 'b'})
    if (std::optional<Explanation> found = on_side(it, side); found && accepted(it, *found))
      return found;
  return std::nullopt;
}

}  // namespace tensordiff
