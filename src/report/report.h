// The whole result of a comparison, as a plain value. Computing ends here and showing begins.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/answer.h"
#include "compare/row.h"
#include "convert/form.h"
#include "diagnose/finding.h"
#include "report/metadata.h"
#include "tensor/catalog.h"

namespace tensordiff {

struct LogitsComparison;  // logits/compare_logits.h

// One side, as a whole.
struct Side {
  std::string path;
  std::string format;
  uint64_t tensors = 0;
  uint64_t elements = 0;
  uint64_t bytes = 0;
  std::vector<Problem> problems;
};

// How a difference stands to an earlier result (--baseline).
enum class Novelty { known, grown, added };
std::string_view name_of(std::optional<Novelty> novelty);  // "" for none.

// A pair with what was concluded about it.
struct PairRow : Row {
  std::string message;             // Why it is incomparable or an error, or a remark; may be empty.
  std::optional<Verdict> verdict;  // Of the noise model, where it was asked.
  std::optional<Novelty> novelty;  // Of a difference, where there is a baseline.
};

using FirstDivergence = Divergence;

// What a report comes to as a whole, from the best to the worst.
enum class Conclusion {
  same,          // All values are equal, and nothing is unpaired.
  close,         // What differs is within tolerance.
  shapes_match,  // Values were not compared (--shape-only).
  known,         // What differs, differed before (--baseline).
  different,
  trouble,  // An input could not be read, as a whole or in part, or nothing was compared.
};
inline constexpr std::size_t kConclusions = 6;
std::string_view name_of(Conclusion conclusion);
std::optional<Conclusion> conclusion_named(std::string_view name);

struct Summary {
  uint64_t identical = 0, equal = 0, close = 0, same_shape = 0;
  uint64_t different = 0, incomparable = 0, error = 0;
  Conclusion verdict = Conclusion::trouble;
  // What the verdict leaves out, or why it is trouble though no row is; empty for nothing.
  std::string caveat = {};
};

// Against an earlier result: what is new, what has grown, what is as it was (--baseline).
struct BaselineDelta {
  uint64_t known = 0;  // Differences that were there already.
  uint64_t gone = 0;   // And that were and are no more.
  std::vector<std::string> added, grown;

  bool holds() const { return added.empty() && grown.empty(); }
};

// What was done to the tensors of one kind to make one checkpoint of the other.
struct ConversionRow {
  std::string how;                      // "transposed"; "as it is" for nothing.
  std::string a, b;                     // Their names, with '#' for numbers.
  std::vector<std::size_t> pairs;       // Those that follow it, as indexes of Report::pairs.
  std::vector<std::size_t> exceptions;  // And those of the kind that do not.
  Form form = {};                       // What `how` says, for programs.
};

struct Report {
  Side a, b;
  bool alone = false;            // One input, each of its tensors with each other.
  bool shape_only = false;       // No element was read.
  bool steps = false;            // The pairs are steps of a run, in order; else they are weights.
  std::string nothing_selected;  // Why no tensor takes part, where filters leave none.
  Summary summary;
  std::optional<FirstDivergence> first_divergence;
  std::vector<Divergence> next_divergences;  // Errors made after it, in execution order.
  std::vector<Finding> findings;
  std::vector<Trial> trials;   // Only when asked for (--explain).
  std::vector<PairRow> pairs;  // In display order.
  // Tensors without a partner, with what the renderers need to show of them.
  struct Unpaired {
    TensorId id;
    bool layer_absent = false;  // The other side has nothing of its layer: not a difference.
    Stats stats = {};           // Only when asked for (--stats, -o json).
    std::string nearest = {};   // The name of the other side that is most like it; "" for none.
    double likeness = 0;        // How alike they are, 0 to 1.
    std::string why = {};       // Why they are no pair all the same; may be empty.
    std::optional<Novelty> novelty = {};
    bool not_dumped = false;  // Of two dumps: the other side did not record it. Coverage.
    bool merged = false;      // The other side holds it merged into another tensor.

    bool is_difference() const { return !layer_absent && !not_dumped; }
  };
  std::vector<Unpaired> only_a, only_b;
  // Those that are no weights (counters, masks, optimizer state): no difference. `why`: what it is.
  std::vector<Unpaired> auxiliary_a, auxiliary_b;
  std::vector<Answer> analyses;  // Those that were asked for.
  std::optional<BaselineDelta> baseline;
  std::vector<std::string> notes;  // What pairing and alignment assumed.
  std::vector<MetadataChange> metadata;
  std::vector<ConversionRow> conversion;  // Of two checkpoints; kinds with exceptions first.
  // Where logits or log-probabilities are all there is; else none.
  std::shared_ptr<const LogitsComparison> logits;
};

// Counts the rows and says what they come to.
Summary summarise(const Report& report);

}  // namespace tensordiff
