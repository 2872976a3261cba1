// An opinion with evidence: what kind of difference a pair shows, and how well that explains it.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tensordiff {

// What a pair comes to, once rounding is told from mistakes.
enum class Verdict {
  match,      // Equal, or within the elementwise tolerance of one operation.
  precision,  // Beyond it, but what rounding over this many steps leaves behind.
  bug,        // Neither.
};
std::string_view name_of(Verdict verdict);

struct Parameter {
  std::string name;
  std::variant<double, std::string, std::vector<uint64_t>> value;
};

// A few values that stand next to each other along the last axis, as they are and as the finding
// explains them: what a reader can check by eye.
struct EvidenceSlice {
  std::vector<uint64_t> at;   // The first of them, in the shape that the pair was compared in.
  std::vector<double> a, b;   // The values of both sides.
  std::vector<double> model;  // T(a), or the step computed again; empty where there is none.
};

struct Finding {
  std::string code;      // Of the diagnosis that made it.
  std::size_t pair = 0;  // Index of the row in the report.
  double confidence = 0;
  std::string explanation;  // One sentence: "b = 0.125 × a".
  std::vector<Parameter> parameters;
  std::optional<double> residual_before, residual_after;  // ‖b − a‖ and ‖b − T(a)‖ over ‖a‖.
  std::optional<EvidenceSlice> evidence;
  bool convention = false;  // A layout that later steps undo: told, but no mistake.
};

// Where the two part.
struct Divergence {
  std::size_t pair = 0;
  bool created = false;  // Its inputs agree, so that the error is made here and not carried.
  std::string explanation;
};

// What was tried on a pair, and what became of it, for --explain.
struct Trial {
  std::size_t pair = 0;
  std::string code;
  std::string outcome;
};

}  // namespace tensordiff
