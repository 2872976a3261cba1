// A document as Markdown. Everything that comes from a file is escaped or stands in a code span.

#include <fmt/format.h>

#include <algorithm>

#include "base/base64.h"
#include "base/text.h"
#include "report/document.h"

namespace tensordiff::doc {
namespace {

constexpr std::size_t kLengthMax = 4000;

std::string escaped(std::string_view text) {
  constexpr std::string_view kMarks = "\\`*_{}[]<>#|~$";
  const std::string clean = printable(text, kLengthMax);
  const auto follows = [&](std::size_t at, std::string_view what) {
    return std::string_view(clean).substr(at).starts_with(what);
  };
  std::string out;
  for (std::size_t at = 0; at < clean.size(); ++at) {
    const char c = clean[at];
    // No name calls a user of the site to help, and no address becomes a link.
    const bool link = follows(at, "://") || (c == '.' && out.ends_with("www"));
    if (c == '&' || c == '@' || link) {
      out += c == '&' ? "&amp;" : fmt::format("&#{};", static_cast<int>(c));
      continue;
    }
    if (kMarks.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// Between more backticks than stand together inside. A bar ends a cell even there, and a backslash
// before it has no one meaning: such names are written without.
std::string code_span(std::string_view text) {
  const std::string clean = printable(text, kLengthMax);
  if (clean.find('|') != std::string::npos) return escaped(text);
  std::size_t run = 0, longest = 0;
  for (const char c : clean) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  if (clean.empty()) return "";
  const std::string fence(longest + 1, '`');
  const std::string gap = longest > 0 ? " " : "";
  return fence + gap + clean + gap + fence;
}

std::string_view mark_of(Look look) {
  constexpr std::string_view kMarks[] = {"", "", "✅ ", "🟡 ", "❌ ", "⚠️ "};
  return kMarks[static_cast<std::size_t>(look)];
}

struct Writer {
  bool charts;
  std::string out;

  void operator()(const Heading& heading) {
    out += fmt::format("## {}\n\n", escaped(heading.text));
  }

  void operator()(const Text& text) {
    out += fmt::format("{}{}\n\n", mark_of(text.look), escaped(text.text));
  }

  void operator()(const Callout& callout) {
    out += fmt::format("> {}**{}**", mark_of(callout.look), escaped(callout.title));
    if (!callout.body.empty()) out += fmt::format("  \n> {}", escaped(callout.body));
    if (!callout.facts.empty()) out += "\n>";
    for (const std::string& fact : callout.facts) out += fmt::format("\n> - {}", escaped(fact));
    out += "\n\n";
  }

  void operator()(const Tiles& tiles) {
    std::string list;
    for (const Tile& tile : tiles.tiles)
      list += fmt::format("{}{}**{}** {}", list.empty() ? "" : " · ", mark_of(tile.look),
                          escaped(tile.value), escaped(tile.label));
    out += list + "\n\n";
  }

  void operator()(const Table& table) {
    out += "|";
    for (const Column& column : table.columns) out += fmt::format(" {} |", escaped(column.title));
    out += "\n|";
    for (const Column& column : table.columns) out += column.number ? "--:|" : "---|";
    for (const std::vector<Cell>& row : table.rows) {
      out += "\n|";
      for (const Cell& cell : row)
        out += fmt::format(" {} |", cell.code ? code_span(cell.text) : escaped(cell.text));
    }
    out += "\n\n";
    if (!table.note.empty()) out += fmt::format("{}\n\n", escaped(table.note));
  }

  void operator()(const Chart& chart) {
    if (!charts) return;
    out += fmt::format("**{}**\n\n![{}](data:image/svg+xml;base64,{})\n\n", escaped(chart.title),
                       escaped(chart.title), base64(svg_of(chart)));
  }

  void operator()(const List& list) {
    for (const std::string& item : list.items) out += fmt::format("- {}\n", escaped(item));
    out += "\n";
  }

  void operator()(const Fold& fold) {
    out += fmt::format("<details><summary>{}</summary>\n\n", escaped(fold.title));
    (*this)(fold.list);
    out += "</details>\n\n";
  }
};

}  // namespace

std::string markdown_of(const Document& document, bool charts) {
  Writer writer{charts, ""};
  writer.out = fmt::format("# {}{}: {}\n\n", mark_of(document.look), escaped(document.title),
                           escaped(document.verdict));
  if (!document.subtitle.empty()) writer.out += escaped(document.subtitle) + "\n\n";
  for (const Block& block : document.blocks) std::visit(writer, block);
  while (writer.out.ends_with("\n\n")) writer.out.pop_back();
  return writer.out;
}

}  // namespace tensordiff::doc
