// An opinion with evidence: what kind of difference a pair shows, and how well that explains it.

#pragma once

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

struct Finding {
  std::string code;      // Of the diagnosis that made it.
  std::size_t pair = 0;  // Index of the row in the report.
  double confidence = 0;
  std::string explanation;  // One sentence: "b = 0.125 × a".
  std::vector<Parameter> parameters;
  std::optional<double> residual_before, residual_after;  // ‖b − a‖ and ‖b − T(a)‖ over ‖a‖.
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
