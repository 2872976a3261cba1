// What a batch has done already, in a file that it can go on from: --resume.
//
// A result counts as done while its inputs, their sizes and times, and its options are what they
// were. The file is replaced as a whole after each comparison, so that it is never half written.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/batch_list.h"
#include "report/batch_report.h"

namespace tensordiff {

class BatchState {
 public:
  // An empty path keeps nothing. A file that is not there yet is an empty state.
  static Result<BatchState> open(std::string path);

  // What was found for this stamp, unless it was trouble, which is tried again.
  std::optional<BatchRow> find(const std::string& name, const std::string& stamp) const;

  Result<void> add(const std::string& stamp, const BatchRow& row);

 private:
  struct Done {
    std::string stamp;
    BatchRow row;
  };
  std::string path_;
  std::map<std::string, Done> done_;
};

// Changes when the inputs of a run, or what is asked of it, do.
std::string stamp_of(const BatchRun& run, const std::vector<Settings::Given>& given);

// Replaces the file as a whole: whoever reads it sees the old text or the new, never a part.
Result<void> write_whole(const std::string& path, std::string_view text);

}  // namespace tensordiff
