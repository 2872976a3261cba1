#include "compare/pieces.h"

#include <algorithm>
#include <cassert>

#include "compare/metrics.h"
#include "compare/opened.h"
#include "compare/traversal.h"

namespace tensordiff {
namespace {

// The values that the report may show of these totals.
void note_spots(const Opened& both, Piece& piece) {
  for (const Measured& total : piece.totals)
    for (const uint64_t at : {total.sums.max_abs < 0 ? UINT64_MAX : total.sums.max_abs_at,
                              total.sums.mismatch_at, total.sums.agreeing_at})
      if (at != UINT64_MAX) piece.spots.push_back({at, both.a.value(at), both.b.value(at)});
}

Result<void> fill_piece(const AlignedPair& pair, const CompareOptions& options, const Share& share,
                        Piece& piece) {
  const bool first = share.first == 0;
  piece.by_bytes = is_by_bytes(pair);
  if (piece.by_bytes || tolerance_by_values(pair, options)) {
    piece.chunks = 1, piece.end = first ? 1 : 0;
    if (!first) return {};
    if (piece.by_bytes) {
      piece.same_bytes = TRY(compare_stored(pair)).status == Status::identical;
      return {};
    }
  }
  const Opened both = TRY(Opened::open(pair));
  if (tolerance_by_values(pair, options)) {
    piece.totals = {both.measure_all(pair, options)};
  } else {
    const Tolerance tolerance = tolerance_for(pair.a.dtype, pair.b.dtype, options);
    piece.totals = both.measure(tolerance, options, [&](uint64_t chunks) {
      const UnitRange mine = units_in(share, chunks);
      piece.chunks = chunks, piece.first = mine.begin, piece.end = mine.end;
      return ChunkRange{mine.begin, mine.end};
    });
    if (piece.first == 0) piece.totals = {merged<Measured>(std::move(piece.totals), {})};
  }
  note_spots(both, piece);
  return both.intact();
}

// Positions and counts that somebody else wrote, before anything is computed with them.
Result<void> check_sums(const Sums& sums, uint64_t elements) {
  const auto outside = [&](uint64_t at) { return at != UINT64_MAX && at >= elements; };
  if (sums.count > elements || outside(sums.mismatch_at) || outside(sums.agreeing_at) ||
      (sums.count > 0 && sums.max_abs_at >= elements) ||
      (sums.mismatch > 0 && sums.mismatch_at == UINT64_MAX) ||
      (sums.agreeing > 0 && sums.agreeing_at == UINT64_MAX))
    return Error("the partial result has positions outside of the tensor");
  return {};
}

// Tiles are read again by whoever explains the pair.
Result<void> check_runs(const AlignedPair& pair, const Beyond& beyond, uint64_t chunks) {
  if (beyond.runs.empty()) return {};
  const Opened both = TRY(Opened::open(pair));
  const Traversal walk(both.a, both.b);
  const uint64_t tiles = walk.flat() ? (pair.a.elements() + kTileElements - 1) / kTileElements
                                     : walk.blocks() * (kBlockElements / kTileElements);
  const bool fits = std::ranges::all_of(
      beyond.runs, [&](const TileRun& run) { return run.first < run.end && run.end <= tiles; });
  const bool whole = chunks == 1 || chunks == chunk_count(walk.blocks(), kChunkBlocks);
  if (!fits || !whole) return Error("the partial result is of another tensor");
  return {};
}

}  // namespace

UnitRange units_in(const Share& share, uint64_t units) {
  // The first unit that begins at or behind the start of a slice.
  const auto unit_at = [&](uint64_t slice) {
    __extension__ using Wide = unsigned __int128;
    const Wide at = (Wide(slice) * units + share.of - 1) / share.of;
    return static_cast<uint64_t>(std::min<Wide>(at, units));
  };
  return {unit_at(share.first), unit_at(share.end)};
}

Piece measure_piece(const AlignedPair& pair, const CompareOptions& options, const Share& share) {
  Piece piece;
  if (const Result<void> done = fill_piece(pair, options, share, piece); !done.ok()) {
    piece = {};
    piece.error = done.error().message();
  }
  return piece;
}

Result<Comparison> compare_pieces(const AlignedPair& pair, const CompareOptions& options,
                                  std::span<const Piece* const> pieces, Beyond& beyond) {
  assert(pair.a.shape == pair.b.shape);
  for (const Piece* piece : pieces)
    if (!piece->error.empty()) return Error("{}", piece->error);
  const uint64_t chunks = pieces.empty() ? 0 : pieces[0]->chunks;
  uint64_t done = 0;
  Measured total;
  for (const Piece* piece : pieces) {
    const uint64_t totals = piece->by_bytes ? 0 : piece->first == 0 ? 1 : piece->end - piece->first;
    if (piece->chunks != chunks || piece->first != done || piece->end < done ||
        piece->by_bytes != is_by_bytes(pair) || piece->totals.size() != totals)
      return Error("the partial results do not fit together");
    done = piece->end;
    for (const Measured& each : piece->totals) {
      TRY(check_sums(each.sums, pair.a.elements()));
      if (piece->first == 0)
        total = each;
      else
        total.merge(each);
    }
  }
  if (pieces.empty() || done != chunks) return Error("a partial result is missing");
  if (is_by_bytes(pair)) {
    Comparison comparison;
    comparison.status = pieces[0]->same_bytes ? Status::identical : Status::different;
    return comparison;
  }
  TRY(check_runs(pair, total.beyond, chunks));
  const auto there = [&](uint64_t at) -> Result<Spot> {
    for (const Piece* piece : pieces)
      for (const Spot& spot : piece->spots)
        if (spot.position == at) return spot;
    return Error("the partial result lacks the values at position {}", at);
  };
  return finish(pair, options, std::move(total), there, beyond);
}

}  // namespace tensordiff
