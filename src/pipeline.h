// The whole tool as one function: open, match, align, compare, explain. Read pipeline.cpp first.

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "analyze/options.h"
#include "compare/comparison.h"
#include "convert/conversion.h"
#include "diagnose/diagnose.h"
#include "formats/format.h"
#include "layout/pair_views.h"
#include "match/matcher.h"
#include "report/report.h"

namespace tensordiff {

class ToleranceRules;  // compare/tolerance_rules.h

// Whether tensors that lie on several ranks are gathered: --tp.
struct TensorParallel {
  bool enabled = true;
  uint64_t ranks =
      0;  // How many there have to be on one side or the other; 0: as many as are found.
};

struct Request {
  std::string a;
  std::string b;  // Empty: each tensor of a is compared with each other.
  OpenOptions open;
  std::string layout;  // Of dumps: the name of one, "none", or "" for what is recognised.
  MatchOptions match;
  AlignOptions align;
  std::vector<DimsOf> dims;  // The last one that names a pair replaces what would be inferred.
  TensorParallel tp;
  CompareOptions compare;
  std::shared_ptr<const ToleranceRules> rules;  // Tolerances by name; may be none.
  DiagnoseOptions diagnose;
  AnalyzeOptions analyze;
  std::string noise;  // A third run, as good as a, whose distance from a is the noise; empty: none.
  std::shared_ptr<const Catalog> noise_run;  // The same, where it is open already.
  std::string weights;  // The model that made the dumps, to compute steps again; empty: not given.
  std::vector<std::string> paths;  // Only tensors whose name starts so; `*` globs allowed.
  std::string ignore_regex;        // Not tensors whose name this finds.
  bool require_all = false;        // Also of dumps, what only one side has is a difference.
  bool shape_only = false;         // Compare names, dtypes and shapes; read no elements.
  bool unpaired_stats = false;     // Statistics of unpaired tensors too.
  // Called from time to time with the bytes done and the bytes in all; may be empty.
  std::function<void(uint64_t done, uint64_t total)> progress;
  // Called with each row once it is measured, from any thread; may be empty.
  std::function<void(const PairRow& row)> on_row;
};

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

// The two views of one pair as they are compared.
Result<AlignedPair> align_pair(const Pairing& pairing, std::size_t pair, const Request& request);

Result<Report> compare_models(const Request& request);

}  // namespace tensordiff
