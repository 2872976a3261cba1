// The public C++ API of tensordiff: compare two models, get a verdict and the full report.
//
//   const auto outcome = tensordiff::api::compare("a.safetensors", "b.pt");
//   if (outcome.verdict == tensordiff::api::Verdict::trouble) std::cerr << outcome.error;
//
// The only installed header; it needs nothing but the standard library. Link tensordiff_core.

#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace tensordiff::api {

enum class Verdict {
  same,       // Nothing differs: all values are equal and nothing is unpaired.
  close,      // What differs is within tolerance.
  different,  // Something differs, has no common layout, or has no partner.
  trouble,    // An input could not be read, as a whole or in part.
};

struct Options {
  std::optional<double> atol, rtol;  // Instead of the default of the coarser dtype of each pair.
  bool equal_nan = true;             // NaN at the same place on both sides is agreement.
  std::size_t threads = 0;           // For the whole process; 0: one for each core.
};

struct Outcome {
  Verdict verdict = Verdict::trouble;
  std::string report_json;  // As `-o report` prints it; empty when there is an error.
  std::string error;        // Why there is no report; empty when there is one.
};

// Compares two files, folders or archives. a is the reference: errors are relative to it. Prints
// nothing and throws nothing but std::bad_alloc.
Outcome compare(const std::string& a, const std::string& b, const Options& options = {});

// The program's exit status for a verdict, as of diff(1): 0 same, 1 different, 2 trouble.
int exit_status(Verdict verdict);

}  // namespace tensordiff::api
