// What the name of code in a file means for whoever loads the file with the library it was made by.

#pragma once

#include <string_view>

#include "tensor/catalog.h"

namespace tensordiff::pickle {

// `note` where the name is known and harmless: a class that only holds values, such as a layer of
// torch.nn. `dangerous` where it is known to act: to run a command, to import, to open a file or a
// connection. `suspicious` where nothing is known of it.
Severity severity_of(std::string_view global);

}  // namespace tensordiff::pickle
