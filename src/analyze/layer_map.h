// Which layer of A each layer of B was made from, whatever their numbers: layers may have been
// dropped, repeated or stacked anew.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyze/linear_algebra.h"
#include "analyze/study.h"

namespace tensordiff {

// A patch of a matrix and its centred() Gram matrix, both of unit length.
struct MatrixSketch {
  Shape shape;  // Of the matrix; patches of other shapes lie elsewhere.
  Dense values, gram;
};
std::optional<MatrixSketch> sketch_of(const View& view);

// The matrices of one layer by kind.
struct LayerSketch {
  std::string name;
  int64_t number = 0;
  std::map<std::string, MatrixSketch> matrices;
};

// Means over the kinds that both have; count 0: there are none.
struct Likeness {
  double cosine = 0, cka = 0, count = 0;
};

// How like each layer of A (down) is each of B; the layers by name and number.
struct Likenesses {
  std::vector<std::string> names_a, names_b;
  std::vector<int64_t> a, b;
  std::vector<Likeness> values;

  const Likeness& at(std::size_t of_a, std::size_t of_b) const {
    return values[of_a * b.size() + of_b];
  }
};
Likenesses likenesses(const std::vector<LayerSketch>& a, const std::vector<LayerSketch>& b);

struct LayerMap {
  Likenesses like;                // Of all layers of both sides, paired or not; at most 128 each.
  std::vector<int64_t> from;      // For each of B that of A it is like; -1: none.
  std::vector<int64_t> dropped;   // Layers of A that none of B is like,
  std::vector<int64_t> repeated;  // and those that several are like.
  bool moved = false;             // Some layer comes from one of another number.

  std::vector<double> cosines() const;  // NaN: nothing in common.

  // Layers were dropped, repeated or moved; that those of another model are among them is no
  // restacking by itself.
  bool restacked() const;
  // "A 0-7, A 4-11": what stands in B, in its order.
  std::string text() const;
};
// Empty where a side has no layers.
LayerMap map_layers(const Study& study);

}  // namespace tensordiff
