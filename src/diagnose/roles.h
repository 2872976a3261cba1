// What the names of steps tell.

#pragma once

#include <string_view>
#include <vector>

#include "diagnose/site.h"

namespace tensordiff {

// Whether a name ends so, at the border of a word.
bool ends_with_word(std::string_view name, std::string_view ending);

// A name without what pairing put behind it: "c_attn[0:96]", "c_attn [q]".
std::string_view bare(std::string_view name);

// Tells norms apart that only the other names of the run make clear.
void settle_norms(std::vector<Site>& sites);

}  // namespace tensordiff
