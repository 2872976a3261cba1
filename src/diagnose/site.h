// One pair as a step of a run: what it computes, from what, and how far the two sides are apart.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compare/row.h"
#include "diagnose/finding.h"
#include "diagnose/operators/weights.h"
#include "diagnose/sample/matrix.h"
#include "formats/model_config.h"

namespace tensordiff {

struct ActivationFunction;  // diagnose/replay/activation.h

// How a step is made of earlier ones, which are sites of the same run.
struct MadeOf {
  std::vector<std::size_t> terms = {};           // Added up.
  const ActivationFunction* function = nullptr;  // Of the sum; null: the sum itself.
  std::optional<std::size_t> factor = {};        // What that is multiplied by.
};

// It has a Row of its own, as a step may also be looked at in part (finite_tokens.h).
struct Site : Row {
  Site() = default;
  explicit Site(Row row) : Row(std::move(row)) {}

  // The repeated block that it is in, numbered over all lists of blocks: encoder layer 0 and
  // decoder layer 0 are two.
  std::optional<int64_t> block;
  std::size_t list = 0;  // Which list that block is in.
  Role role = Role::other;
  std::vector<std::size_t> inputs;         // Indexes of sites, as far as they are in the dumps.
  std::vector<std::size_t> recorded = {};  // Pairs that it reads, as a trace recorded them.
  // An earlier site that holds the same in A: a container and its last module, dropout at rest.
  std::optional<std::size_t> copy_of;
  bool repeats = false;                // B holds the same there as well.
  std::optional<MadeOf> made_of = {};  // Where A's values tell.
  // What B holds under this name is not what the steps behind it read: told, and no mistake.
  bool aside = false;

  double roundoff = 0;          // Of the coarser side, by its values rather than by its dtype.
  double error = 0;             // ‖b − a‖ / ‖a‖
  double error_in = 0;          // The largest error of its inputs.
  double budget = 0;            // What error rounding may leave here.
  std::optional<double> noise;  // What error the noise run has here.
  Verdict verdict = Verdict::match;
  bool created = false;  // A bug whose inputs are none.
  std::string reason;    // Why it is a bug: the rule that it broke.
  std::string note;      // Why it deserves a look, though it is none.

  bool bug() const { return verdict == Verdict::bug; }
  // One side has no number where the other has one.
  bool is_lost() const { return comparison.diff.nonfinite_mismatch > 0; }
};

struct Run {
  std::vector<Site> sites;  // In execution order.
  // Indexes of the sites by role, then by block, then in their order: make_run() fills it.
  std::vector<std::size_t> by_role = {};
  Extent extent;
  ModelConfig facts;         // Of the configuration, where one was given.
  Weights weights;           // Of the model, where they were given.
  bool activations = false;  // A dump of what layers compute, not a checkpoint of weights.
  bool ends_only = false;    // Logits alone, without the layers that they come from.
  // The unit roundoff of B's products, where it is coarser than what the values of both sides need.
  double product_roundoff = 0;
};

// What a step computes, by the names of both sides. Roles that differ only in how a module is cut
// are one here: the last projection of an MLP and the MLP as a whole give the same.
Role role_of(const Site& site);

// Puts the sites in the order in which they were computed, and says which feed which. `order` names
// tensors of A in that order; empty: by capture, where a file has kept it, else by roles.
Run make_run(std::vector<Site> sites, const std::vector<std::string>& order);

// What a step reads of those that hold the same as a source in A: the last before it, as dropout
// behind a projection.
const Site* as_read_by(const Run& run, const Site* source, const Site& reader);

// The sites of a role in a block, in their order.
std::vector<const Site*> sites_of(const Run& run, Role role, std::optional<int64_t> block);

// The site of a role in the block of another, as that reads it; nothing where there is none.
const Site* find_role(const Run& run, const Site& near, Role role);

}  // namespace tensordiff
