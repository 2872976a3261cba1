// The whole tool as one function: open, match, align, compare, explain. Read pipeline.cpp first.

#pragma once

#include <functional>
#include <string>

#include "align/aligner.h"
#include "compare/comparison.h"
#include "diagnose/diagnose.h"
#include "formats/format.h"
#include "match/matcher.h"
#include "report/report.h"

namespace tensordiff {

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
  MatchOptions match;
  AlignOptions align;
  TensorParallel tp;
  CompareOptions compare;
  DiagnoseOptions diagnose;
  std::string noise;  // A third run, as good as a, whose distance from a is the noise; empty: none.
  std::vector<std::string> paths;  // Only tensors whose name starts so; `*` globs allowed.
  std::string ignore_regex;        // Not tensors whose name this finds.
  bool shape_only = false;         // Compare names, dtypes and shapes; read no elements.
  bool unpaired_stats = false;     // Statistics of unpaired tensors too.
  // Called from time to time with the bytes done and the bytes in all; may be empty.
  std::function<void(uint64_t done, uint64_t total)> progress;
};

Result<Report> compare_models(const Request& request);

}  // namespace tensordiff
