// `-o markdown` and `-o html`: the same document, written in two ways.

#include "report/compare_document.h"

namespace tensordiff {
namespace {

constexpr std::size_t kMarkdownRows = 50;  // What a comment on a pull request can bear.
constexpr std::size_t kPageRows = 5000;    // What a browser sorts at once.

// Where the user does not say: in Markdown what differs, and where nothing does, the closest calls.
std::string render_markdown(const Report& report, const RenderOptions& asked) {
  RenderOptions options = asked;
  if (!options.show && !options.verbose) {
    const Summary& summary = report.summary;
    options.show = summary.different + summary.incomparable + summary.error > 0
                       ? std::set{Status::error, Status::incomparable, Status::different}
                       : std::set{Status::close};
    if (!options.sort) options.sort = Sort::difference;
  }
  if (!options.top && !options.verbose) options.top = kMarkdownRows;
  return doc::markdown_of(compare_document(report, options), options.charts);
}

std::string render_html(const Report& report, const RenderOptions& asked) {
  RenderOptions options = asked;
  if (!options.top) options.top = kPageRows;
  return doc::html_of(compare_document(report, options));
}

}  // namespace

constinit const Renderer renderers::markdown = {
    .name = "markdown",
    .summary = "for pull requests and notes: the verdict, findings, what differs",
    .unpaired_stats = false,
    .render = render_markdown,
};

constinit const Renderer renderers::html = {
    .name = "html",
    .summary = "one self-contained page with charts and a sortable table",
    .unpaired_stats = false,
    .render = render_html,
};

}  // namespace tensordiff
