// One pair as a step of a run: what it computes, from what, and how far the two sides are apart.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "align/aligner.h"
#include "compare/comparison.h"
#include "diagnose/finding.h"
#include "diagnose/matrix.h"
#include "diagnose/weights.h"
#include "formats/model_config.h"

namespace tensordiff {

struct Beyond;  // compare/beyond.h

struct Site {
  std::size_t pair = 0;     // Index of its row in the report.
  std::size_t capture = 0;  // Its place in the file of a.
  std::string name_a, name_b;
  Place place_a, place_b;  // What these names tell.
  std::optional<int64_t> layer;
  std::string stage;
  AlignedPair views;
  Comparison comparison;
  std::shared_ptr<const Beyond> beyond;  // Where what is beyond tolerance lies, where it is known.

  Role role = Role::other;
  std::vector<std::size_t> inputs;  // Indexes of sites, as far as they are in the dumps.

  double roundoff = 0;          // Of the coarser side, by its values rather than by its dtype.
  double error = 0;             // ‖b − a‖ / ‖a‖
  double error_in = 0;          // The largest error of its inputs.
  double budget = 0;            // What error rounding may leave here.
  std::optional<double> noise;  // What error the noise run has here.
  Verdict verdict = Verdict::match;
  bool created = false;  // A bug whose inputs are none.
  std::string reason;    // Why it is a bug: the rule that it broke.
  std::string note;      // Why it deserves a look, though it is none.

  bool compared() const { return comparison.status < Status::incomparable; }
  bool bug() const { return verdict == Verdict::bug; }
  // One side has no number where the other has one.
  bool is_lost() const { return comparison.diff.nonfinite_mismatch > 0; }
};

struct Run {
  std::vector<Site> sites;  // In execution order.
  Extent extent;
  ModelConfig facts;         // Of the configuration, where one was given.
  Weights weights;           // Of the model, where they were given.
  bool activations = false;  // A dump of what layers compute, not a checkpoint of weights.
  bool ends_only = false;    // Logits alone, without the layers that they come from.
};

// What a step computes, by the names of both sides. Roles that differ only in how a module is cut
// are one here: the last projection of an MLP and the MLP as a whole give the same.
Role role_of(const Site& site);

// Puts the sites in the order in which they were computed, and says which feed which. `order` names
// tensors of a in that order; empty: by layers, stages and capture.
Run make_run(std::vector<Site> sites, const std::vector<std::string>& order);

// The site of a role in the layer of another; nothing where there is none.
const Site* find_role(const Run& run, const Site& near, Role role);

}  // namespace tensordiff
