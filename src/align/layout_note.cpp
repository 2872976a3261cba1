#include "align/layout_note.h"

#include <algorithm>

namespace tensordiff {
namespace {

using Kind = LayoutNote::Kind;

bool is_part(const LayoutNote& note) {
  return note.kind == Kind::one_of_stack || note.kind == Kind::only_beginning ||
         note.kind == Kind::only_end;
}

}  // namespace

bool has(const LayoutNotes& notes, Kind kind) {
  return std::ranges::find(notes, kind, &LayoutNote::kind) != notes.end();
}

bool leaves_out(const LayoutNotes& notes) { return std::ranges::any_of(notes, is_part); }

bool is_told(const LayoutNotes& notes) { return std::ranges::all_of(notes, is_part); }

}  // namespace tensordiff
