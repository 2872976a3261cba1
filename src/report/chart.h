// Pictures as SVG: drawn with class names only, so that a page can colour them for light and dark.
//
// Classes: those of doc::Look for marks, "axis", "grid" and "label" for what is around them, and
// "h0" to "h9" for the steps of a scale.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/document.h"

namespace tensordiff {

// Text inside HTML or SVG: what has a meaning there is escaped, and what has none on a screen.
std::string html_escape(std::string_view text);

// One value in a row of many; the label is told when it is pointed at.
struct ChartPoint {
  std::string label;
  std::optional<double> value;  // None: nothing is drawn. Not finite: at the upper edge.
  doc::Look look = doc::Look::plain;
  std::string group = {};  // Points of one group stand together; named below the axis.
  bool marked = false;     // The one to look at.
};

// Values that may be decades apart, in order, on a logarithmic axis; zeros stand below it.
doc::Chart dot_chart(std::string title, const std::vector<ChartPoint>& points);

// The largest of something, a bar each, in the order given.
doc::Chart bar_chart(std::string title, const std::vector<ChartPoint>& points);

// A grid of values, dark where they are large.
struct HeatMap {
  std::vector<std::string> rows, columns;
  std::vector<std::optional<double>> values;  // Row by row.
  std::string unit;                           // What a value is, for the labels.
  bool decades = true;  // One step for each decade up to 10; else from the least to the largest.
};
doc::Chart heat_map(std::string title, const HeatMap& map);

// Several series over the same steps, each with its name at its end.
struct ChartSeries {
  std::string name;
  std::vector<std::optional<double>> values;  // One for each step.
};
doc::Chart line_chart(std::string title, const std::vector<std::string>& steps,
                      const std::vector<ChartSeries>& series);

}  // namespace tensordiff
