// What is said of a pair of which not all was compared, or not as it stands.

#pragma once

#include <string>
#include <string_view>

#include "align/aligner.h"

namespace tensordiff {

// `size` is that of the axis before the step, which truncates or selects.
std::string part_note(const Step& step, uint64_t size);

// That one reading of the shapes keeps all axes where they are, and the values want another.
inline constexpr std::string_view kOtherOrder =
    "the shapes fit as they are, but the values only with the axes in another order";

// That the values speak for no reading of the shapes, or for several alike.
inline constexpr std::string_view kNotConfirmed = "layout not confirmed by values";

// Whether the message of a pair has such a note.
bool tells_of_a_part(std::string_view message);

}  // namespace tensordiff
