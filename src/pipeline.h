// The whole tool as one function: open, match, align, compare, explain. Read pipeline.cpp first.

#pragma once

#include <memory>
#include <span>

#include "request.h"

namespace tensordiff {

// Both sides and which tensor answers to which, before an element is compared.
struct Pairing {
  Catalog a, b;        // Without what the filters leave out; what lies on several ranks is one.
  bool alone = false;  // One input, compared with itself: b is a.
  Matching matching;
  std::shared_ptr<const Conversion> conversion;  // Of two checkpoints; none for dumps.
  Merges merges;                                 // What their tensors could be merged with.
  Report report;  // All there is to say without reading; its pairs have no numbers yet.
};

// The two halves of compare_models(), for whoever has the inputs open already, or wants to show
// names before there are numbers. compare_pairs() takes the pairing's report, or a copy of it.
Result<Pairing> pair_up(Catalog a, std::optional<Catalog> b, const Request& request);
Result<Report> compare_pairs(const Pairing& pairing, Report report, const Request& request);

// Only measures these pairs, by request.measure. Nothing is judged.
Result<void> measure_pairs(const Pairing& pairing, std::span<const std::size_t> pairs,
                           const Request& request);

// The two views of one pair as they are compared.
Result<AlignedPair> align_pair(const Pairing& pairing, std::size_t pair, const Request& request);

// Opens both inputs of a request and pairs them up.
Result<Pairing> open_and_pair(const Request& request);

Result<Report> compare_models(const Request& request);

}  // namespace tensordiff
