// A way to show a Report, and the list of them.
//
// A renderer turns the finished value into text and decides nothing about it; printing and the exit
// status are the caller's. To add one: write report/<name>.cpp and add it to the list below.

#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "report/report.h"

namespace tensordiff {

// The order of the rows, where the reader may choose it.
enum class Sort { layer, name, similarity, difference, size };

struct RenderOptions {
  std::optional<Sort> sort = {};              // Else the order that suits the renderer.
  std::optional<std::set<Status>> show = {};  // Only pairs of these; else what suits the renderer.
  bool show_unpaired = true;
  std::optional<std::size_t> top = {};  // At most so many rows; 0: all.
  bool brief = false;                   // Text: the summary and nothing else.
  bool verbose = false;                 // Text: every pair, and how it was brought to one layout.
  bool review = false;  // For people: only what a reviewer has to know, in half a page.
  bool charts = false;  // Markdown: pictures too. A page always has them.
  bool color = false;
  std::size_t width = 100;  // Columns of the terminal.
};

struct Renderer {
  std::string_view name;     // As -o takes it.
  std::string_view summary;  // One line for --help and docs/output.md.
  bool unpaired_stats;       // Whether it shows statistics of tensors without a partner.
  std::string (*render)(const Report& report, const RenderOptions& options);
};

namespace renderers {

extern const Renderer text;
extern const Renderer stats;
extern const Renderer json;
extern const Renderer yaml;
extern const Renderer report;
extern const Renderer csv;
extern const Renderer markdown;
extern const Renderer html;
extern const Renderer junit;

inline constexpr const Renderer* kAll[] = {&text, &stats,    &json, &yaml, &report,
                                           &csv,  &markdown, &html, &junit};

}  // namespace renderers

}  // namespace tensordiff
