// Which layer of A each layer of B was made from, whatever their numbers: layers may have been
// dropped, repeated or stacked anew.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "analyze/linear_algebra.h"
#include "analyze/study.h"

namespace tensordiff {

// Patches of the matrices of one layer by kind, and their Gram matrices.
struct LayerSketch {
  std::string name;
  int64_t number = 0;
  std::map<std::string, std::pair<Dense, Dense>> matrices;
  std::map<std::string, Shape> shapes;  // Of the matrices; patches of others lie elsewhere.
};

// All layers of both sides, paired or not; kinds go by the names of A. At most kSketchesMax each.
struct LayerSketches {
  std::vector<LayerSketch> a, b;
};
LayerSketches sketch_layers(const Study& study);
inline constexpr std::size_t kSketchesMax = 128;

// Means over the kinds that both have; count 0: there are none.
struct Likeness {
  double cosine = 0, cka = 0, count = 0;
};
Likeness likeness(const LayerSketch& a, const LayerSketch& b);

struct LayerMap {
  std::vector<int64_t> a, b;      // Numbers of the layers of each side.
  std::vector<int64_t> from;      // For each of B that of A it is like; -1: none.
  std::vector<int64_t> dropped;   // Layers of A that none of B is like,
  std::vector<int64_t> repeated;  // and those that several are like.
  bool moved = false;             // Some layer comes from one of another number.

  std::vector<double> cosines;  // Of each of A (down) with each of B; NaN: nothing in common.

  // Layers were dropped, repeated or moved; that those of another model are among them is no
  // restacking by itself.
  bool restacked() const;
  // "A 0-7, A 4-11": what stands in B, in its order.
  std::string text() const;
};
// Empty where a side has no layers.
LayerMap map_layers(const Study& study);

}  // namespace tensordiff
