// Names of archive members. They are only ever looked up and shown, never opened as paths; a name
// that would be dangerous as a path still says that somebody meant harm.

#pragma once

#include <string_view>

namespace tensordiff {

// What is wrong with a member's name; empty when nothing is.
std::string_view member_name_fault(std::string_view name);

}  // namespace tensordiff
