// Files that stand beside a model and describe it: config.json, trainer_state.json, tokenizer.json.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "formats/format.h"

namespace tensordiff {

// What the metadata keys of settings from config.json start with.
inline constexpr std::string_view kConfigPrefix = "config.json: ";

// The path of a file of this name that belongs to an input; nothing where there is none, or where
// it merely lies in the same folder. It belongs to a folder that is opened whole, to a shard index,
// to the shards that an index names or that are numbered, and to a file under one of the names that
// trainers give to the model that they save together with it.
std::optional<std::string> companion(const std::string& input, std::string_view file);

// The same for an input on another machine, whether or not there is such a file.
std::optional<std::string> remote_companion(const std::string& input, bool folder,
                                            std::string_view file);

// All settings of a JSON object as text, nested keys joined with dots.
std::vector<Metadata> settings_in(const Json& json);

// Adds "config.json: hidden_size" and its like to the metadata, never more than text. One that
// cannot be read is said to be so: it is no fault of the model.
void add_config(const ByteSource& json, const Limits& limits, Catalog& catalog);

}  // namespace tensordiff
