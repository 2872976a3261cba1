// The first token of a step, which depends on no other token.

#pragma once

#include "diagnose/site.h"

namespace tensordiff {

// ‖b − a‖ / ‖a‖ of the first row; infinite where it cannot be read. What attention does to later
// tokens (masks, RoPE, scales, caches) leaves the first one as it is: it sees itself alone.
double first_token_error(const Site& site);

// The error of a step at the tokens where it is smallest, without the first token of each sequence:
// at three of them at least, and at one in eight. Infinite where there are fewer tokens.
double error_of_best_tokens(const Site& site);

}  // namespace tensordiff
