// What the reader of a pair should know about its layout. Code asks for the kind; report/wording.h
// has the words.

#pragma once

#include <cstdint>
#include <vector>

namespace tensordiff {

struct LayoutNote {
  enum class Kind : uint8_t {
    flattened,       // No axes in common: compared element by element, in the order of storage.
    one_of_stack,    // `side` stacks `size` on `axis`; only the first is compared.
    only_beginning,  // `side` has `size` on `axis`; only the first `kept` are compared.
    only_end,        // The same with the last `kept`.
    not_confirmed,   // The values speak for no reading of the shapes, or for several alike.
    other_order,     // The shapes fit as they are, the values only with the axes moved.
    rope_rows,       // `side` has halves where the other has neighbours, in heads of `size` rows.
  };
  Kind kind = Kind::not_confirmed;
  char side = 'a';
  uint64_t axis = 0, size = 0, kept = 0;

  bool operator==(const LayoutNote&) const = default;
};
inline constexpr std::size_t kLayoutNotes = 7;

using LayoutNotes = std::vector<LayoutNote>;

bool has(const LayoutNotes& notes, LayoutNote::Kind kind);

// Whether not all elements were compared.
bool leaves_out(const LayoutNotes& notes);

// Whether the values, or the shapes alone, tell the layout: parts may be left out all the same.
bool is_told(const LayoutNotes& notes);

}  // namespace tensordiff
