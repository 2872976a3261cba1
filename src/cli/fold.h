// Long lines of an answer, broken between words for a terminal. Pipes get whole lines.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tensordiff {

// "cause      a long sentence" goes on below the sentence. Rows of tables, which are indented by
// less than a label, stay as they are.
std::string folded(std::string_view text, std::size_t width);

}  // namespace tensordiff
