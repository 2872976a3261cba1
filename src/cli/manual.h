// Manual pages, made from the rows of commands and options.

#pragma once

#include <string>

#include "cli/command.h"

namespace tensordiff {

// The page tensordiff(1), as roff.
std::string program_manual();

// The page of one command, tensordiff-show(1).
std::string command_manual(const Command& command);

}  // namespace tensordiff
