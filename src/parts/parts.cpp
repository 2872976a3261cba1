#include "parts/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "base/build_info.h"
#include "base/text.h"
#include "compare/kernels/tile.h"
#include "parts/fingerprint.h"
#include "parts/plan.h"

namespace tensordiff {
namespace {

constexpr std::size_t kNamedMax = 20;  // Of parts that are missing.

// A copy is a unit of its own, in the share that its number falls into.
bool has_copy(const Share& share, const Measurement& what) {
  const UnitRange copies = units_in(share, what.copies);
  return what.copy - 1 >= copies.begin && what.copy - 1 < copies.end;
}

// The share of a pair that this part has, and what it measures of it.
class PartMeter {
 public:
  explicit PartMeter(const std::vector<Slice>& slices) {
    for (const Slice& slice : slices) shares_[slice.pair] = slice.share;
  }

  Result<Comparison> measure(const Measurement& what, const AlignedPair& pair,
                             const CompareOptions& options) {
    Share share = shares_.at(what.pair);
    Comparison nothing;
    nothing.status = Status::identical;  // So that nobody stops at it.
    if (what.copy > 0 && !has_copy(share, what)) return nothing;
    if (what.copy > 0) share = {};
    Piece piece = measure_piece(pair, options, share);
    const bool empty = piece.first == piece.end && piece.error.empty();
    // Of a tensor without elements, the first share tells that it has none.
    if (empty && (share.first > 0 || piece.chunks > 0)) return nothing;
    const std::lock_guard lock(mutex_);
    pieces_[{what.pair, what.copy}] = std::move(piece);
    return nothing;
  }

  std::vector<PairPiece> take() {
    std::vector<PairPiece> pieces;
    for (auto& [key, piece] : pieces_) pieces.push_back({key.first, key.second, std::move(piece)});
    return pieces;
  }

 private:
  std::map<std::size_t, Share> shares_;
  std::mutex mutex_;
  std::map<std::pair<std::size_t, std::size_t>, Piece> pieces_;
};

std::string again(const PartNumber& number) {
  return fmt::format("run it again with --part {}/{}", number.part, number.of);
}

// The fingerprint that most parts have: those with another one do not belong.
const std::string& usual_fingerprint(const std::vector<NamedPartial>& parts) {
  std::map<std::string_view, std::size_t> seen;
  for (const NamedPartial& each : parts) ++seen[each.partial.head.fingerprint];
  const NamedPartial* usual = &parts[0];
  for (const NamedPartial& each : parts)
    if (seen[each.partial.head.fingerprint] > seen[usual->partial.head.fingerprint]) usual = &each;
  return usual->partial.head.fingerprint;
}

}  // namespace

Result<Partial> measure_part(const Request& request, const PartNumber& number,
                             std::vector<GivenOption> options) {
  const Pairing pairing = TRY(open_and_pair(request));
  Partial partial;
  partial.head = {kVersion,    kernels::target_name(), number, fingerprint_of(pairing, options),
                  {request.a}, std::move(options)};
  if (!request.b.empty()) partial.head.inputs.push_back(request.b);
  if (request.shape_only) return partial;

  const std::vector<Slice> slices = plan_part(costs_of(pairing), number);
  std::vector<std::size_t> pairs;
  for (const Slice& slice : slices) pairs.push_back(slice.pair);
  PartMeter meter(slices);
  Request by_part = request;
  by_part.measure = [&](const Measurement& what, const AlignedPair& pair, const CompareOptions& how,
                        Beyond&) { return meter.measure(what, pair, how); };
  TRY(measure_pairs(pairing, pairs, by_part));
  partial.pieces = meter.take();
  return partial;
}

Result<void> check_parts(const std::vector<NamedPartial>& parts) {
  if (parts.empty()) return Error("needs partial results, which compare --part writes");
  const std::string& fingerprint = usual_fingerprint(parts);
  std::map<uint64_t, const NamedPartial*> found;
  uint64_t of = 0;
  for (const NamedPartial& each : parts)
    if (each.partial.head.fingerprint == fingerprint)
      of = std::max(of, each.partial.head.number.of);
  for (const NamedPartial& each : parts) {
    const PartHead& head = each.partial.head;
    const std::string name = printable(each.name, 1000);
    if (head.version != kVersion)
      return Error("{}: made by tensordiff {}, but this is {}", name, printable(head.version),
                   kVersion);
    if (head.fingerprint != fingerprint)
      return Error("{}: part of another comparison: its inputs or options differ from the others",
                   name);
    if (head.number.of != of)
      return Error("{}: part {} of {}, but the others are parts of {}", name, head.number.part,
                   head.number.of, of);
    const auto [at, is_new] = found.emplace(head.number.part, &each);
    if (!is_new)
      return Error("{}: part {} of {}, as is {}; pass only one of them", name, head.number.part, of,
                   printable(at->second->name, 1000));
  }
  std::vector<uint64_t> missing;
  for (uint64_t part = 1; part <= of && missing.size() < kNamedMax; ++part)
    if (!found.contains(part)) missing.push_back(part);
  if (missing.empty()) return {};
  const uint64_t absent = of - found.size();
  return Error("part{} {}{} of {} {} missing: {}", absent == 1 ? "" : "s", fmt::join(missing, ", "),
               absent > missing.size() ? ", …" : "", of, absent == 1 ? "is" : "are",
               again({missing[0], of}));
}

Result<Report> merge_parts(Request request, const std::vector<NamedPartial>& parts) {
  Pairing pairing = TRY(open_and_pair(request));
  const PartHead& head = parts[0].partial.head;
  if (fingerprint_of(pairing, head.options) != head.fingerprint)
    return Error("the inputs are not those that the parts were made of, or they have changed");
  // By part, so that the pieces of a pair stand in the order of its chunks.
  std::vector<const NamedPartial*> in_order;
  for (const NamedPartial& each : parts) in_order.push_back(&each);
  std::ranges::sort(in_order, {}, [](const auto* each) { return each->partial.head.number.part; });
  std::map<std::pair<uint64_t, uint64_t>, std::vector<const Piece*>> pieces;
  for (const NamedPartial* each : in_order)
    for (const PairPiece& piece : each->partial.pieces)
      pieces[{piece.pair, piece.copy}].push_back(&piece.piece);
  request.measure = [&](const Measurement& what, const AlignedPair& pair,
                        const CompareOptions& options, Beyond& beyond) -> Result<Comparison> {
    const auto found = pieces.find({what.pair, what.copy});
    if (found == pieces.end()) return Error("a partial result is missing");
    return compare_pieces(pair, options, found->second, beyond);
  };
  Report report = std::move(pairing.report);
  return compare_pairs(pairing, std::move(report), request);
}

}  // namespace tensordiff
