// What stands around the part of a name that tells the role: towers, wrappers, experts, parameters.
// These are much the same in all conventions.

#pragma once

#include "naming/words.h"

namespace tensordiff {

// The first word that names a tower.
Tower tower_in(const Words& words);

// Takes out what is wrapped around modules.
void drop_wrapped_modules(Words& words);

// Takes out the words for experts with their number: Place::kNone, kAll, kShared or the number.
int32_t take_expert(Words& words);

// Takes the last words out where these are a parameter.
Param take_parameter(Words& words);

// Whether a name ends with the word for a parameter: "proj.weight", and not "proj".
bool names_parameter(std::string_view name);

// The parameter that a short word may stand for ("w", "b"), which has other meanings, too.
Param short_parameter(std::string_view word);

}  // namespace tensordiff
