// A Trend as text, JSON, CSV or a document.

#pragma once

#include <string>

#include "analyze/trend.h"
#include "report/document.h"
#include "report/renderer.h"

namespace tensordiff {

// "▁▂▅█": one mark for each value, between the least and the largest, by order of magnitude;
// a dot for none, "!" for what is not finite.
std::string sparkline(const std::vector<std::optional<double>>& values);

// A row for each group, with its course in a few marks; with options.verbose one for each step too.
std::string trend_text(const Trend& trend, const RenderOptions& options);
std::string trend_json(const Trend& trend);
std::string trend_csv(const Trend& trend);
doc::Document trend_document(const Trend& trend);

}  // namespace tensordiff
