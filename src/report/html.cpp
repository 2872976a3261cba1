// A document as one page of HTML that works from the disk, without a network, for years.

#include <fmt/format.h>

#include "base/base64.h"
#include "base/build_info.h"
#include "base/sha256.h"
#include "base/text.h"
#include "report/chart.h"
#include "report/document.h"
#include "report/html_page.h"

namespace tensordiff::doc {
namespace {

constexpr std::size_t kLengthMax = 4000;

std::string escaped(std::string_view text) { return html_escape(printable(text, kLengthMax)); }

std::string items(const std::vector<std::string>& list) {
  std::string out = "<ul>";
  for (const std::string& item : list) out += fmt::format("<li>{}</li>", escaped(item));
  return out + "</ul>\n";
}

struct Writer {
  std::string out;

  void operator()(const Heading& heading) {
    out += fmt::format("<h2>{}</h2>\n", escaped(heading.text));
  }

  void operator()(const Text& text) {
    out += fmt::format("<p class=\"{}\">{}</p>\n", name_of(text.look), escaped(text.text));
  }

  void operator()(const Callout& callout) {
    out += fmt::format("<div class=\"callout {}\"><strong>{}</strong>", name_of(callout.look),
                       escaped(callout.title));
    if (!callout.body.empty()) out += fmt::format("<p>{}</p>", escaped(callout.body));
    if (!callout.facts.empty()) out += items(callout.facts);
    out += "</div>\n";
  }

  void operator()(const Tiles& tiles) {
    out += "<div class=\"tiles\">";
    for (const Tile& tile : tiles.tiles)
      out += fmt::format("<div class=\"tile\"><b class=\"{}\">{}</b><span>{}</span></div>",
                         name_of(tile.look), escaped(tile.value), escaped(tile.label));
    out += "</div>\n";
  }

  void operator()(const Table& table) {
    out += "<div class=\"card\">";
    if (table.searchable)
      out +=
          "<input type=\"search\" placeholder=\"Find in the table\" "
          "aria-label=\"Find in the table\">";
    out += fmt::format("<div class=\"scroll\"><table{}><thead><tr>",
                       table.searchable ? " class=\"searchable\"" : "");
    for (const Column& column : table.columns) {
      const std::string title = escaped(column.title);
      out += fmt::format("<th scope=\"col\"{}>{}</th>", column.number ? " class=\"n\"" : "",
                         table.searchable ? "<button>" + title + "</button>" : title);
    }
    out += "</tr></thead><tbody>\n";
    for (const std::vector<Cell>& row : table.rows) add_row(table, row);
    out += "</tbody></table></div>";
    if (!table.note.empty()) out += fmt::format("<p class=\"note\">{}</p>", escaped(table.note));
    out += "</div>\n";
  }

  void operator()(const Chart& chart) {
    out += fmt::format(
        "<figure class=\"card\"><figcaption>{}</figcaption>"
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">{}</svg></figure>\n",
        escaped(chart.title), chart.width, chart.height, escaped(chart.title), chart.body);
  }

  void operator()(const List& list) { out += items(list.items); }

  void operator()(const Fold& fold) {
    out += fmt::format("<details><summary>{}</summary>{}</details>\n", escaped(fold.title),
                       items(fold.list.items));
  }

 private:
  void add_row(const Table& table, const std::vector<Cell>& row) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const Cell& cell = row[i];
      std::string look(cell.look == Look::plain ? "" : name_of(cell.look));
      if (table.columns[i].number) look += look.empty() ? "n" : " n";
      out += look.empty() ? "<td" : fmt::format("<td class=\"{}\"", look);
      if (cell.number) out += fmt::format(" data-n=\"{}\"", number_attribute(*cell.number));
      out += cell.code ? fmt::format("><code>{}</code></td>", escaped(cell.text))
                       : fmt::format(">{}</td>", escaped(cell.text));
    }
    out += "</tr>\n";
  }

  // As JavaScript spells it.
  static std::string number_attribute(double number) {
    if (number != number) return "Infinity";
    if (number - number != 0) return number > 0 ? "Infinity" : "-Infinity";
    return fmt::format("{}", number);
  }
};

std::string policy(std::string_view style) {
  return fmt::format(
      "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; "
      "form-action 'none'",
      base64(sha256(style)), base64(sha256(kPageScript)));
}

}  // namespace

std::string html_of(const Document& document) {
  const std::string style = std::string(kPageStyle) + std::string(kChartStyle);
  Writer writer;
  for (const Block& block : document.blocks) std::visit(writer, block);
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<title>{} · {}</title>\n<style>{}</style></head>\n<body><main>\n"
      "<header><h1>{}</h1><span class=\"badge {}\">{}</span>"
      "<button class=\"theme\" type=\"button\">Light / dark</button></header>\n"
      "<p class=\"subtitle\">{}</p>\n{}"
      "<footer>Made by tensordiff {}.</footer>\n</main>\n<script>{}</script></body></html>\n",
      policy(style), escaped(document.title), escaped(document.verdict), style,
      escaped(document.title), name_of(document.look), escaped(document.verdict),
      escaped(document.subtitle), writer.out, kVersion, kPageScript);
}

std::string_view name_of(Look look) {
  constexpr std::string_view kNames[] = {"plain", "dim", "good", "close", "bad", "trouble"};
  return kNames[static_cast<std::size_t>(look)];
}

std::string svg_of(const Chart& chart) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{}\" "
      "height=\"{}\"><style>{}</style>{}</svg>",
      chart.width, chart.height, chart.width, chart.height, kChartStyle, chart.body);
}

}  // namespace tensordiff::doc
