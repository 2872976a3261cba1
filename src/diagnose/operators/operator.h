// What a step computes, as a tree of operators over dumped tensors.
//
// An operator gives what comes out for either run, from what that run itself put in: predict() on
// A's inputs tells whether this is what the step computes at all, on B's whether B computes it,
// too. A change is the same tree with one thing in it done otherwise; the mistake is the change
// that turns B's own inputs into B's output. A tree knows no names of layers and no roles:
// parameters, shapes and A's values are the evidence.
//
// To add one: write operators/<name>.cpp and add a row to `kAll` in proposal.h.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/finding.h"
#include "diagnose/site.h"

namespace tensordiff::operators {

// Which axis of a tensor holds the features.
enum class Layout {
  tokens,    // The last one, or heads and the last one: [batch, tokens, ...].
  channels,  // The second: [n, channels, height, width].
  plain,     // The last one; all others are rows as they stand.
};

// The sizes of what an operator gives: rows by their axes, {batch, tokens} or {n, height, width}.
struct Extents {
  std::vector<uint64_t> rows_by_axis;
  uint64_t features = 0;
  Layout layout = Layout::tokens;

  uint64_t rows() const;
  bool operator==(const Extents&) const = default;
};

// Some rows and columns; no columns: all of them.
struct Grid {
  std::vector<uint64_t> rows, columns = {};
};

// Values at a grid, row by row. Empty where they cannot be had.
struct Block {
  uint64_t features = 0;
  std::vector<double> values = {};

  bool empty() const { return values.empty(); }
  uint64_t rows() const { return features == 0 ? 0 : values.size() / features; }
  double* row(uint64_t index) { return values.data() + index * features; }
  const double* row(uint64_t index) const { return values.data() + index * features; }
};

// Which run is read. With a unit, each dumped value is off by as much, up or down at random: what
// that does to the output is the noise that one rounding of the inputs makes.
struct Reading {
  View AlignedPair::*side = &AlignedPair::a;
  double unit = 0;
};

// Whether the parameters were given, fitted to A, or are not known.
enum class Standing { given, fitted, unknown };
std::string_view name_of(Standing standing);

// What kind of hypothesis a change is.
enum class Family { affine, index, parameter, quantiser, term, substitution, support };
std::string_view name_of(Family family);

class Operator;
using OperatorPtr = std::shared_ptr<const Operator>;

struct Change {
  OperatorPtr made;
  std::string code;   // A row of diagnoses::kAll.
  std::string text;   // "B leaves the bias out"
  std::string cause;  // One word for programs: "bias_missing".
  Family family = Family::parameter;
  double bits = 0;  // log2 of the alternatives that were tried with it.
  double dof = 0;   // Numbers that were fitted to B.
  std::vector<Parameter> parameters = {};
  double unit = 0;  // The unit roundoff that B's values have by it; 0: what they seem to have.
};

class Context;

class Operator {
 public:
  virtual ~Operator() = default;
  virtual std::string_view kind() const = 0;
  virtual const Extents& extents() const = 0;
  virtual Block predict(const Reading& from, const Grid& grid) const = 0;
  // What people get wrong in such a step.
  virtual std::vector<Change> changes(const Context& context) const = 0;
  virtual Standing standing() const { return Standing::given; }
  // What it is computed from, for a sentence: "'model.norm'".
  virtual std::string text() const = 0;
};

// The changes of a part of a tree as changes of the whole: `around` puts a part into it.
template <class Around>
void lift(const std::vector<Change>& inner, const Around& around, std::vector<Change>& changes) {
  for (const Change& change : inner) {
    changes.push_back(change);
    changes.back().made = around(change.made);
  }
}

}  // namespace tensordiff::operators
