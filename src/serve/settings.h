// What the user chose for a session: its inputs, tolerance, matching and pairs made by hand. One
// JSON object, in requests and in the database.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "pipeline.h"

namespace tensordiff::serve {

// What the axes of one pair are, as the user said: "b s (h d) -> s h d".
struct Layout {
  std::string a;  // The name of the pair in a.
  std::string dims;

  bool operator==(const Layout&) const = default;
};

// Explore: one input, each of its tensors with every other. Mixed: several sources on a side.
enum class Mode { compare, explore, mixed };
std::string_view name_of(Mode mode);

struct Settings {
  std::string name;
  Mode mode = Mode::compare;
  std::vector<std::string> a, b;  // Sources.
  std::optional<double> atol, rtol;
  bool equal_nan = true;
  std::vector<std::string> strategies;  // Empty: all.
  std::string regex;                    // Where a name has its layer and stage; empty: nowhere.
  double fuzzy_threshold = 0.6;
  bool align = true;
  std::vector<NamePair> pairings;
  bool only = false;            // No other pairs than these.
  std::vector<NamePair> apart;  // Taken apart by hand: never paired with each other.
  std::vector<Layout> layouts;

  // The one that its sources ask for, where the user chose none.
  Mode usual_mode() const;
  // Nothing where the user said nothing.
  const Layout* layout_of(std::string_view a) const;
  // Empty dims: found out again. An error says what is wrong with them.
  Result<void> set_layout(const std::string& a, const std::string& dims);

  bool operator==(const Settings&) const = default;
};

// Changes what the object names and leaves the rest as it is. An error names the field.
Result<void> apply(const Json& changes, Settings& settings);

void write_policy(JsonWriter& json, const Settings& settings);
void write_match(JsonWriter& json, const Settings& settings);
std::string text_of(const Settings& settings);

// What the pipeline is asked for.
Result<tensordiff::Request> request_for(const Settings& settings);

}  // namespace tensordiff::serve
