// Many comparisons in one table: what `tensordiff batch` shows.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "report/document.h"
#include "report/renderer.h"

namespace tensordiff {

// One comparison, as far as the table tells of it.
struct BatchRow {
  std::string name;
  std::string a, b;
  Conclusion verdict = Conclusion::trouble;  // Trouble where no report could be made.
  int status = 0;                            // 0, 1 or 2, as the program exits.
  uint64_t pairs = 0, different = 0, unpaired = 0;
  std::optional<double> worst;  // The largest relative L2 error.
  std::string divergence;       // Where the two part, and why; empty for nowhere.
  std::string message;          // What went wrong; empty for nothing.
};

BatchRow batch_row(const Report& report);

// A row as JSON, and back. For the report, and for the state that a batch resumes from.
void write_row(JsonWriter& json, const BatchRow& row);
Result<BatchRow> read_row(const Json& json);

// The exit status of the worst.
int worst_exit(const std::vector<BatchRow>& rows);

// The names of the outputs.
inline constexpr std::string_view kBatchOutputs[] = {"text",     "json", "csv",
                                                     "markdown", "html", "junit"};
std::string render_batch(const std::vector<BatchRow>& rows, std::string_view output,
                         const RenderOptions& options);

}  // namespace tensordiff
