// What a walk through a pickle finds, and how far it may go.

#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "formats/limits.h"
#include "formats/pickle/names.h"

namespace tensordiff::pickle {

inline constexpr std::size_t kProblemsMax = 100;  // Of each kind; the rest is counted.

// One for a pickle and the torch files inside it.
struct Findings {
  Findings(std::string place, const Limits& most) : where(std::move(place)), limits(most) {}

  std::string where;
  const Limits& limits;
  Path path;
  NamedTensors tensors;
  std::vector<Problem> problems;
  uint64_t problems_left_out = 0;
  uint64_t visits = 0;  // Values looked at, and keys.
  uint64_t steps = 0;   // Paths followed from a value to one inside it,
  uint64_t edges = 0;   // of so many if each value were met once.
  bool once = false;    // Values that were met before are left out from now on.
  bool full = false;
  std::string scalars;  // The bytes of Python's own numbers, all in one place.
  std::vector<std::pair<std::size_t, std::size_t>> scalar_places;  // Tensor, offset in scalars.

  void report(std::string message, Severity severity = Severity::suspicious) {
    if (problems.size() >= kProblemsMax) return void(++problems_left_out);
    problems.push_back({where, std::move(message), severity});
  }
  // Whether there is room for one more; says so once when there is not.
  bool room() {
    if (full) return false;
    // Some values are met by way of others without a step; they are bounded all the same.
    if (visits++ > limits.values_max || steps++ > 2 * edges + limits.repeats_max)
      stop("values", fmt::format("more than {} values by different paths; the rest was not looked "
                                 "at",
                                 std::min(visits, steps)));
    else if (tensors.size() >= limits.tensors_max)
      stop("tensors", fmt::format("more than {} tensors, of which the rest is not listed",
                                  limits.tensors_max));
    else if (tensors.name_bytes() > limits.names_bytes_max)
      stop("names", fmt::format("names of more than {}; the rest is not listed",
                                human_bytes(limits.names_bytes_max)));
    return !full;
  }
  void stop(std::string_view limit, std::string_view what) {
    report(limit_hit(limit, what).message(), Severity::unreadable);
    full = true;
  }
  // Whether a value that was met before may be listed again.
  bool may_repeat() {
    if (once || steps <= edges + limits.repeats_max) return !once;
    once = true;
    report(
        limit_hit("repeats",
                  fmt::format("more than {} values that the pickle holds in several places; '{}' "
                              "and others are listed once",
                              limits.repeats_max, printable(path.plain())))
            .message());
    return false;
  }
};

}  // namespace tensordiff::pickle
