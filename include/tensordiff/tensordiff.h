// The public C++ API of tensordiff: compare two models, find the first divergence and its cause.
//
//   using namespace tensordiff::api;
//   const Outcome outcome = compare("a.safetensors", "b.pt");
//   if (!outcome.error.empty()) std::cerr << outcome.error;
//   for (const Finding& finding : outcome.report.findings) std::cout << finding.explanation;
//
// The only installed header; it needs nothing but the standard library (C++20). With CMake:
// find_package(tensordiff) and link tensordiff::tensordiff; elsewhere: pkg-config tensordiff.
//
// compare() may be called from several threads at once. What it does beside returning a value:
//   - It maps the files it reads, and unpacks compressed ones to nameless files in $TMPDIR or /tmp.
//   - It starts threads and keeps them for later calls; each call uses at most Options::threads.
//   - The first call that maps a file sets a handler of SIGBUS for the process: a file that is cut
//     short while it is read becomes an error. Faults elsewhere go to the handler that was there
//     before. A host that sets its own handler later should pass on faults that are not its own.
//   - HDF5 files are listed by a sandboxed process of the program tensordiff; see use_program().
// It prints nothing, never exits, runs nothing that is found in a file, changes neither locale nor
// environment, and throws nothing but std::bad_alloc.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#if defined(__GNUC__)
#define TENSORDIFF_API __attribute__((visibility("default")))
#else
#define TENSORDIFF_API
#endif

namespace tensordiff::api {

// A tensor in the caller's memory. Nothing is copied: it has to stay as it is while compare() runs.
struct Tensor {
  std::string name;
  std::string dtype;  // "f32", "bf16", "i64" ...: the names that docs/formats.md lists.
  std::vector<uint64_t> shape;
  const void* data = nullptr;
  std::vector<int64_t> strides = {};  // In elements, none negative; empty: row-major, no gaps.
};

// A file, folder or archive, or tensors in memory.
using Input = std::variant<std::string, std::vector<Tensor>>;

struct Options {
  std::optional<double> atol, rtol;  // Instead of the default of the coarser dtype of each pair.
  bool equal_nan = true;             // NaN at the same place on both sides is agreement.
  std::optional<Input> noise;        // A second run of A, to measure the noise between runs.
  std::optional<Input> weights;      // The model that made the dumps, to compute steps again.
  std::vector<std::string> paths;    // Only names with one of these prefixes; `*` globs allowed.
  std::string ignore_regex;          // Skip tensors whose name matches this; empty: skip none.
  bool diagnose = true;              // Look for the cause of differences.
  bool json = false;                 // Fill Outcome::report_json.
  std::size_t threads = 0;           // Of this call; 0: one for each core.
  // Called with the bytes done and the bytes in all, from any thread, one call at a time; must not
  // throw.
  std::function<void(uint64_t done, uint64_t total)> progress;
  std::stop_token stop;  // Calls the comparison off: compare() then returns soon, as cancelled.
};

enum class Verdict {
  same,       // Nothing differs: all values are equal and nothing is unpaired.
  close,      // What differs is within tolerance.
  different,  // Something differs, has no common layout, or has no partner.
  trouble,    // An input could not be read, as a whole or in part.
};

enum class Status { identical, equal, close, different, incomparable, error };

// How far the two sides of a pair are apart; docs/metrics.md defines each. d = B - A; an empty
// optional is a metric that is not defined for this pair.
struct Diff {
  uint64_t compared = 0;  // Positions at which both sides are finite.
  uint64_t equal = 0;     // And have the same value.
  std::optional<double> max_abs;
  std::vector<uint64_t> max_abs_at;  // Where that is; empty where it is not defined.
  std::optional<double> a_there, b_there;
  std::optional<double> mean_abs, mse, rmse, max_rel, mean_rel, rel_l2, cosine, pcc, norm_ratio;
  std::optional<uint64_t> ulp_max;
  uint64_t nonfinite_mismatch = 0, nonfinite_agreeing = 0;
  uint64_t exceeding = 0;  // Positions beyond the tolerance, atol + rtol * |A|.
  double atol = 0, rtol = 0;
  std::optional<double> rtol_needed;
};

struct Pair {
  std::string name_a, name_b;
  std::optional<int64_t> layer;
  std::string stage;       // Of the layer: "post_attn"; empty where the names tell of none.
  std::string matched_by;  // The strategy that paired them.
  std::string dtype_a, dtype_b;
  std::vector<uint64_t> shape_a, shape_b;
  std::vector<uint64_t> shape;  // The one in which they were compared.
  Status status = Status::error;
  Diff diff;            // Unset where the status is incomparable or error.
  std::string message;  // Why it is incomparable or an error, or a note; may be empty.
};

// A tensor without a partner.
struct Unpaired {
  std::string name, dtype;
  std::vector<uint64_t> shape;
  std::string message;  // Why it could not be read; empty when it could.
};

struct Parameter {
  std::string name;
  std::variant<double, std::string, std::vector<uint64_t>> value;
};

// Why a pair differs.
struct Finding {
  std::string code;      // Of the diagnosis: docs/diagnosis.md lists them.
  std::size_t pair = 0;  // Index into Report::pairs.
  double confidence = 0;
  std::string explanation;
  std::vector<Parameter> parameters;
  std::optional<double> residual_before, residual_after;
  bool convention = false;  // A layout that later steps undo: no mistake.
};

struct Divergence {
  std::size_t pair = 0;
  bool created = false;  // Its inputs agree, so the error is made here.
  std::string explanation;
};

struct Report {
  Verdict verdict = Verdict::trouble;
  std::vector<Pair> pairs;
  std::vector<Unpaired> only_a, only_b;
  std::optional<Divergence> first_divergence;
  std::vector<Divergence> next_divergences;
  std::vector<Finding> findings;
  std::vector<std::string> problems;  // What could not be read in part: "A: where: what".
  std::vector<std::string> notes;     // What pairing and alignment assumed.
};

struct Outcome {
  Report report;            // Empty, with verdict trouble, when there is an error.
  std::string report_json;  // As `-o report` prints it, when Options::json asks for it.
  std::string error;        // Why there is no report; empty when there is one.
  bool cancelled = false;   // Options::stop was used.
};

// Compares two models. A is the reference: errors are relative to it.
TENSORDIFF_API Outcome compare(const Input& a, const Input& b, const Options& options = {});

// The program's exit status for a verdict, as of diff(1): 0 same or close, 1 different, 2 trouble.
TENSORDIFF_API int exit_status(Verdict verdict);

// Where the program tensordiff is, for the whole process: HDF5 files cannot be read without.
// Unless this or the variable TENSORDIFF_PROGRAM says so, it is looked for beside the library and
// in ../bin.
TENSORDIFF_API void use_program(const std::string& path);

// "0.2.0". The soname changes with the first number that is not 0.
TENSORDIFF_API const char* version();

}  // namespace tensordiff::api
