// What a batch has to compare: a list in YAML, or two folders whose entries have the same names.
//
//   options: {atol: 1e-5}       # for all of them, as in .tensordiff.yaml
//   runs:
//     - name: seven             # else the name of b
//       a: ref/7b.safetensors   # paths lie relative to the list
//       b: new/7b.safetensors
//       rtol: 0.01              # for this one

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/config.h"

namespace tensordiff {

struct BatchRun {
  std::string name;
  std::string a, b;                  // One is empty where the other folder has no such entry.
  std::vector<ConfigEntry> options;  // In the order in which they are applied.
};

// From the text of the list; `file` is where it lies.
Result<std::vector<BatchRun>> parse_batch(std::string_view text, const std::string& file);

// Entries of two folders by name, without the ending where that alone differs; in order. What has
// no tensors, such as a tokenizer, is left out.
Result<std::vector<BatchRun>> match_folders(const std::string& a, const std::string& b);

}  // namespace tensordiff
