// The noise floor of each tensor as a file: what `tensordiff runs` measures and --noise reads.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/roots.h"

namespace tensordiff {

// By the name of A: how far runs of the same model are apart, relative to A in the L2 norm.
using NoiseFloor = std::map<std::string, double>;

std::string noise_text(const NoiseFloor& floor, std::size_t runs);

// Whether a text is such a file at all.
bool is_noise_text(std::string_view text);
Result<NoiseFloor> read_noise(std::string_view text);

// Nothing where the path is empty or is no such file: a run, then.
Result<std::optional<NoiseFloor>> open_noise(const std::string& path, const Roots& roots);

}  // namespace tensordiff
