// The answers of the analyses, as the renderers show them.

#pragma once

#include <string>
#include <vector>

#include "analyze/answer.h"
#include "base/json.h"
#include "report/style.h"

namespace tensordiff {

// {"magnitude": 0.05, "largest": [{"tensor": …}], "charts": {…}, "missing": […], "notes": […]}
void write_answer(JsonWriter& json, const Answer& answer);

// "learning_progress: trend=unknown, magnitude=0.0543", without a newline.
std::string answer_line(const Answer& answer);

// Why the exit status is 1 though nothing differs, a line each.
std::string alarm_lines(const std::vector<Answer>& answers, const Style& style);

// For a person: the line, what is missing, and the first rows of each list.
std::string answers_text(const std::vector<Answer>& answers, const Style& style,
                         std::size_t rows_max, std::size_t width);

}  // namespace tensordiff
