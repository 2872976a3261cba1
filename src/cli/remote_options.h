// Options of inputs on other machines, which every command takes.

#pragma once

#include "cli/command.h"

namespace tensordiff::option_groups {

extern const OptionGroup remote;

}  // namespace tensordiff::option_groups
