// What the options on the command line ask for, as meaning: names are looked up, sizes are numbers.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/elements.h"
#include "pipeline.h"
#include "report/renderer.h"

namespace tensordiff {

enum class ColorChoice { automatic, always, never };

struct Settings {
  // Every command.
  OpenOptions open;
  std::string_view output = "text";  // Of the names that the command knows.
  std::string out;                   // File to write to instead of stdout.
  ColorChoice color = ColorChoice::automatic;
  bool quiet = false;
  std::size_t threads = 0;  // 0: one for each core.

  // compare
  Request request;
  RenderOptions render;
  bool exit_zero = false;
  std::string save_pairs;  // File for the pairs that were made.

  // show
  bool stats = false;
  std::optional<uint64_t> values;
  std::string slice;
  std::optional<Condition> find;
};

}  // namespace tensordiff
