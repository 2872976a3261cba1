// A document for people, before it is Markdown or a page of HTML.
//
// Whoever has something to tell builds one of these blocks; the two writers know how each looks.
// Text is plain: names out of files go in as they are and are made harmless by the writers.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tensordiff::doc {

// What a piece means; the writers know which colour or mark that is.
enum class Look { plain, dim, good, close, bad, trouble };
std::string_view name_of(Look look);

struct Heading {
  std::string text;
};

struct Text {
  std::string text;
  Look look = Look::plain;
};

// A box that the eye finds first.
struct Callout {
  Look look = Look::plain;
  std::string title;
  std::string body = {};
  std::vector<std::string> facts = {};
};

// A few numbers that sum it up.
struct Tile {
  std::string label;
  std::string value;
  Look look = Look::plain;
};
struct Tiles {
  std::vector<Tile> tiles;
};

struct Cell {
  std::string text;
  Look look = Look::plain;
  bool code = false;                  // A name out of a file.
  std::optional<double> number = {};  // What it sorts by, where the text would not do.
};
struct Column {
  std::string title;
  bool number = false;  // To the right, and sorts as one.
};
struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::string note = {};    // What was left out.
  bool searchable = false;  // Where a page can: sort by column, find by text.
};

// A picture: SVG without its outer element, drawn with the classes of chart.h.
struct Chart {
  std::string title;
  std::string body;
  int width = 0;
  int height = 0;
};

struct List {
  std::vector<std::string> items;
};

// Told, but not in the way.
struct Fold {
  std::string title;
  List list;
};

using Block = std::variant<Heading, Text, Callout, Tiles, Table, Chart, List, Fold>;

struct Document {
  std::string title;
  std::string verdict;  // One word.
  Look look = Look::plain;
  std::string subtitle;
  std::vector<Block> blocks;
};

// Markdown as GitHub reads it. Charts are pictures inside the text, and only when asked for.
std::string markdown_of(const Document& document, bool charts);

// A page that needs nothing but itself: styles, script and pictures inside, nothing from outside.
std::string html_of(const Document& document);

// SVG as a file of its own, for Markdown.
std::string svg_of(const Chart& chart);

}  // namespace tensordiff::doc
