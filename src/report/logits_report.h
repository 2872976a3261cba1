// What two runs predict, compared: as text, JSON, CSV or a document.

#pragma once

#include <string>

#include "base/json.h"
#include "logits/compare_logits.h"
#include "report/document.h"
#include "report/renderer.h"

namespace tensordiff {

std::string logits_text(const LogitsComparison& comparison, const RenderOptions& options);

// The lines about the numbers alone, "KL  0.0031 ± 0.0002 ...", each as a label and a text.
std::vector<std::pair<std::string, std::string>> logits_lines(const LogitsComparison& comparison);

// As one JSON object, for a value that has been started with key().
void write_logits(JsonWriter& json, const LogitsComparison& comparison);
std::string logits_json(const LogitsComparison& comparison);
std::string logits_csv(const LogitsComparison& comparison);  // A row for each position.
doc::Document logits_document(const LogitsComparison& comparison);

// Divergence by position, of at most some hundreds of points: each is the worst of its stretch.
doc::Chart logits_chart(const LogitsComparison& comparison);

}  // namespace tensordiff
