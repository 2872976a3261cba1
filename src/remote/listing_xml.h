// The XML in which object stores list what they hold: one page of ListObjectsV2.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "remote/scheme.h"

namespace tensordiff::remote {

struct ListingPage {
  std::vector<Listed> objects;  // Named by their whole keys.
  std::string next;             // What asks for the next page; empty: this was the last.
};

// Knows elements and the five entities, which is all that such a page has.
Result<ListingPage> parse_listing(std::string_view xml);

}  // namespace tensordiff::remote
