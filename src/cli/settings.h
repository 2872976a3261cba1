// What the options on the command line ask for, as meaning: names are looked up, sizes are numbers.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "cli/elements.h"
#include "parts/part_number.h"
#include "pipeline.h"
#include "report/baseline.h"
#include "report/renderer.h"
#include "serve/options.h"

namespace tensordiff {

enum class ColorChoice { automatic, always, never };

// Rules of a conversion by the kinds that they are for: names of A and B with '#' for numbers.
using ConversionRules = std::map<std::pair<std::string, std::string>, std::string>;

struct Settings {
  // Every command.
  OpenOptions open;
  std::string_view output = "text";  // Of the names that the command knows.
  std::string out;                   // File to write to instead of stdout.
  ColorChoice color = ColorChoice::automatic;
  bool quiet = false;
  std::size_t threads = 0;  // 0: one for each core.
  bool config = true;       // Whether files with settings are read.

  // What was asked for, in the order in which it took effect, as it was written.
  struct Given {
    std::string name;         // "atol"
    std::string value;        // Empty for a switch.
    std::string origin = {};  // The file and the line; empty: the command line.
  };
  std::vector<Given> given;

  // compare
  Request request;
  RenderOptions render;
  bool single = false;  // --single: one input, each of its tensors with each other.
  bool exit_zero = false;
  bool full_report = false;  // --generate-report: in the form that --out's name asks for.
  std::shared_ptr<const Baseline> baseline;  // An earlier result; may be none.
  std::string save_pairs;                    // File for the pairs that were made.
  std::string earlier;                       // Digest of A from before.
  std::optional<PartNumber> part;            // Only measure this share of the work.

  // merge
  std::string input_a, input_b;  // Where the inputs are now; empty: where the parts say.

  // conversion
  std::optional<ConversionRules> known_rules;  // Of an earlier run.

  // runs
  std::string save_noise;  // File for the noise floor.

  // batch
  std::string resume;  // File that keeps what is done.

  // check
  Severity fail_on = Severity::suspicious;

  // git
  bool global = false;  // For all repositories of the user.

  // show
  bool stats = false;
  std::optional<uint64_t> values;
  std::string slice;
  std::optional<Condition> find;

  // serve, demo
  serve::ServeOptions serve;
  bool open_browser = true;
};

}  // namespace tensordiff
