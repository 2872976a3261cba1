#include "parts/part_number.h"

#include <charconv>
#include <optional>

#include "base/text.h"

namespace tensordiff {
namespace {

std::optional<uint64_t> number_in(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// One way in which a job tells its processes who they are.
struct JobVariables {
  const char* index;
  const char* count;
  const char* first;  // The smallest index there is; nullptr: 0.
};
// The most specific first: a step of an array job has the variables of both.
constexpr JobVariables kJobs[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr},
    {"RANK", "WORLD_SIZE", nullptr},
    {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN"},
    {"SLURM_PROCID", "SLURM_NTASKS", nullptr},
    // Kubernetes does not tell the number of completions; the manifest sets it (docs/scale.md).
    {"JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", nullptr},
};

}  // namespace

Result<PartNumber> parse_part(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto part = number_in(text.substr(0, slash));
  const auto of = number_in(slash == text.npos ? "" : text.substr(slash + 1));
  if (!part || !of) return Error("'{}' is not K/N, such as 3/16, nor auto", printable(text));
  if (*of == 0 || *of > kPartsMax) return Error("the number of parts must be 1 to {}", kPartsMax);
  if (*part == 0 || *part > *of)
    return Error("parts are numbered from 1/{} to {}/{}", *of, *of, *of);
  return PartNumber{*part, *of};
}

Result<PartNumber> part_of_job(const std::function<std::string(const char* name)>& variable) {
  for (const JobVariables& job : kJobs) {
    const std::string index = variable(job.index), count = variable(job.count);
    if (index.empty()) continue;
    if (count.empty()) return Error("{} is set, but {} is not", job.index, job.count);
    const std::string first = job.first ? variable(job.first) : "";
    const auto at = number_in(index), of = number_in(count),
               from = number_in(first.empty() ? "0" : first);
    if (!at || !of || !from || *at < *from || *at - *from >= *of || *of > kPartsMax)
      return Error("{}={} and {}={} do not number the parts of a job", job.index, printable(index),
                   job.count, printable(count));
    return PartNumber{*at - *from + 1, *of};
  }
  return Error(
      "no job is recognized by its variables (SLURM_PROCID, SLURM_ARRAY_TASK_ID, RANK, "
      "OMPI_COMM_WORLD_RANK, JOB_COMPLETION_INDEX); give K/N");
}

}  // namespace tensordiff
