// Which part of a comparison a process has to do: K of N.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tensordiff {

struct PartNumber {
  uint64_t part = 1;  // From 1 on.
  uint64_t of = 1;

  bool operator==(const PartNumber&) const = default;
};

// More processes than any cluster has; a limit for numbers that come from a file.
inline constexpr uint64_t kPartsMax = 1 << 20;

// "3/16"
Result<PartNumber> parse_part(std::string_view text);

// Which part this process is of its job, by the variables that Slurm, torchrun, Open MPI and
// Kubernetes set. `variable` gives their values; empty: not set.
Result<PartNumber> part_of_job(const std::function<std::string(const char* name)>& variable);

}  // namespace tensordiff
