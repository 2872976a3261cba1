// What there is to say of the inputs of a diagnosis, besides its result.

#pragma once

#include <string>
#include <vector>

#include "diagnose/diagnose.h"
#include "tensor/catalog.h"

namespace tensordiff {

// What --weights was good for.
std::string weights_note(const Insight& insight);

// Where one side is a dump and the other the model that made it, --weights is what is meant.
void note_mixed_kinds(const Catalog& a, const Catalog& b, std::vector<std::string>& notes);

}  // namespace tensordiff
