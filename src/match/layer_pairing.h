// Which layer of b is which of a, for inputs whose layer numbers have nothing in common: dumps of
// one layer each, or of a model whose numbers start elsewhere.

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/catalog.h"

namespace tensordiff {

// A tensor with its place: what it is within its layer, and which layer that is.
struct Placed {
  std::size_t tensor = 0;  // Index into its catalog.
  int64_t layer = 0;
  std::string what;
};

struct LayerPairing {
  std::map<int64_t, int64_t> a_of_b;
  std::vector<std::string> notes;  // Which layers were paired, and why so.
};

// The layers of one side.
struct PlacedIn {
  const Catalog& catalog;
  const std::vector<Placed>& placed;
};

struct LayerSearch {
  std::string_view noun = "layer";  // What the numbers count, for the notes.
  bool read_values = true;
  bool values_only = false;  // Nothing in order where values do not tell.
};

// Pairs the layers whose sampled values agree best. Where values cannot tell, those that keep the
// distance of the layers that they could tell, and then the rest in order.
LayerPairing pair_layers(const PlacedIn& a, const PlacedIn& b, const LayerSearch& search = {});

}  // namespace tensordiff
