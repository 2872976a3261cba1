// What one part of a comparison has measured, as a value and as a file.
//
// The file, all numbers little-endian:
//   magic    "tdpart\r\n", which a transfer as text would damage
//   hash     32 bytes: SHA-256 of all that follows
//   head     version and instruction set of the program, part, parts, fingerprint, inputs, options
//   pieces   each with its pair, its copy, and what was measured
// A number has 8 bytes, a text is its length and its bytes, a list its count and its entries.

#pragma once

#include <string>
#include <vector>

#include "base/byte_source.h"
#include "compare/pieces.h"
#include "parts/part_number.h"

namespace tensordiff {

// An option of the command line that made a part.
struct GivenOption {
  std::string name;   // "atol"
  std::string value;  // Empty for a switch.

  bool operator==(const GivenOption&) const = default;
};

struct PartHead {
  std::string version;  // Of the program.
  std::string target;   // The instruction set it used: another may round sums differently.
  PartNumber number;
  std::string fingerprint;  // 32 bytes that tell the inputs and options of the comparison.
  std::vector<std::string> inputs;
  std::vector<GivenOption> options;
};

struct PairPiece {
  uint64_t pair = 0;
  uint64_t copy = 0;  // As in Measurement.
  Piece piece;
};

struct Partial {
  PartHead head;
  std::vector<PairPiece> pieces;
};

inline constexpr std::string_view kPartMagic = "tdpart\r\n";

std::string write_partial(const Partial& partial);

// The file may be torn, or made by somebody else.
Result<Partial> read_partial(ByteView bytes);

}  // namespace tensordiff
