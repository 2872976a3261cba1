// Reads what the names of tensors tell, once, right after a file was opened.

#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/catalog.h"

namespace tensordiff {

// What a name tells by itself.
Place read_place(std::string_view name);

// The places of names that belong together: a few spellings mean one thing in one family of models
// and another in the next, and what else there is tells which.
std::vector<Place> read_places(std::span<const std::string> names);

// Fills in the places of all tensors. Call it again where names have changed.
void read_places(Catalog& catalog);

// The same, unless it was done.
void read_missing_places(Catalog& catalog);

// What stands behind and before the number of the layer in a name that has one.
std::string_view stage_in(std::string_view name, const Place& place);
std::string_view folder_in(std::string_view name, const Place& place);

// The 13 stages of a transformer layer in the order in which they are computed.
std::span<const std::string_view> known_stages();

}  // namespace tensordiff
