// What is asked of the pipeline: two inputs and how to compare them.

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

struct Beyond;  // compare/beyond.h

// What is being measured: a pair of the matching, or ranks of one side that should be the same.
struct Measurement {
  std::size_t pair = 0;
  std::size_t copy = 0;  // 0: the pair itself; else which of its copies, from 1 on.
  std::size_t copies = 0;
};

struct Request {
  std::string a;
  std::string b;  // Empty: each tensor of a is compared with each other.
  OpenOptions open;
  std::string layout;  // Of dumps: the name of one, "none", or "" for what is recognised.
  MatchOptions match;
  std::vector<NamePair> apart;  // Never paired with each other, whatever strategy would.
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
  // Measures in place of compare(): a share of a run on many machines, or what such shares have
  // measured (parts/). Called from any thread; may be empty.
  std::function<Result<Comparison>(const Measurement& what, const AlignedPair& pair,
                                   const CompareOptions& options, Beyond& beyond)>
      measure;
  // Called from time to time with the bytes done and the bytes in all; may be empty.
  std::function<void(uint64_t done, uint64_t total)> progress;
  // Called with each row once it is measured, from any thread; may be empty.
  std::function<void(const PairRow& row)> on_row;
};

}  // namespace tensordiff
