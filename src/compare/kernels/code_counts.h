// How often each pair of codes occurs among elements of 8 bits: all that there is to know of them
// but their positions, in at most 65,536 counts.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tensordiff::kernels {

struct CodePair {
  uint8_t a = 0, b = 0;
  uint32_t count = 0;

  bool operator==(const CodePair&) const = default;
};

// Counts up to kCountedMax pairs at a time.
class CodeCounts {
 public:
  static constexpr std::size_t kCountedMax = 65536;
  static constexpr std::size_t kTables = 8, kPairs = 65536;
  // A cache would have no room for the same place of all tables a power of two apart.
  static constexpr std::size_t kTablesApart = kPairs + 320;

  CodeCounts();
  // The pairs that occur, by a ^ b, then by a. They are valid until it is called again.
  std::span<const CodePair> count(const uint8_t* a, const uint8_t* b, std::size_t count);

 private:
  // Eight tables in turn, because adding to a count that was just stored has to wait for it; no
  // count of an eighth of all pairs exceeds 16 bits. A pair is at (a ^ b, a): pairs of codes that
  // are alike lie next to each other.
  struct alignas(64) Tables {
    uint16_t counts[kTables * kTablesApart];
  };
  std::unique_ptr<Tables> tables_;
  std::vector<CodePair> found_;
};

// In which order the codes of a type have their values.
enum class CodeOrder { unsigned_int, signed_int, sign_and_size };

// How many codes of that order the two of a pair are apart, at most.
uint8_t codes_apart(CodeOrder order, const uint8_t* a, const uint8_t* b, std::size_t count);

namespace reference {
std::vector<CodePair> count_codes(const uint8_t* a, const uint8_t* b, std::size_t count);
uint8_t codes_apart(CodeOrder order, const uint8_t* a, const uint8_t* b, std::size_t count);
}  // namespace reference

}  // namespace tensordiff::kernels
