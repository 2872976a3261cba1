// How text for people looks: colours by meaning, and widths as a terminal counts them.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "report/report.h"

namespace tensordiff {

// What a piece of text means; Style knows which colour that is.
enum class Tone { plain, bold, dim, good, bad, trouble };

Tone tone_of(Status status);
Tone tone_of(Conclusion verdict);

class Style {
 public:
  explicit Style(bool color) : color_(color) {}
  std::string operator()(Tone tone, std::string_view text) const;

 private:
  bool color_;
};

// Columns that UTF-8 text takes; every character counts as one.
std::size_t columns(std::string_view text);

// Text of at most `width` columns: what is too long loses its middle, where names say the least.
std::string shorten(std::string_view text, std::size_t width);

}  // namespace tensordiff
