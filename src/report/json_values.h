// The values that more than one JSON output shows, written in one way.

#pragma once

#include <vector>

#include "align/aligner.h"
#include "base/json.h"
#include "compare/comparison.h"
#include "diagnose/finding.h"
#include "tensor/catalog.h"

namespace tensordiff {

void write_stats(JsonWriter& json, const Stats& stats);
// What was done, and with which numbers: members of an object that the caller has begun.
void write_step(JsonWriter& json, const Step& step);
// As an object, by name.
void write_parameters(JsonWriter& json, const std::vector<Parameter>& parameters);
void write_problems(JsonWriter& json, const std::vector<Problem>& problems);

// An empty text says that there is nothing to say, and becomes null.
void text_or_null(JsonWriter& json, std::string_view key, std::string_view text);

}  // namespace tensordiff
