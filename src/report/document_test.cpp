#include "report/document.h"

#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/sha256.h"

namespace tensordiff::doc {
namespace {

// What somebody might call a tensor to be run, shown or believed.
constexpr std::string_view kEvil = "</script><img src=x onerror=alert(1)>|`**|\x1b[2J\"'&\n# no";

Document sample(std::string name) {
  Document document{"a → b", "different", Look::bad, "a = x, b = y", {}};
  document.blocks.emplace_back(Heading{name});
  document.blocks.emplace_back(Text{name, Look::dim});
  document.blocks.emplace_back(Callout{Look::bad, name, name, {name}});
  document.blocks.emplace_back(Tiles{{{name, "12", Look::good}}});
  Table table{{{"pair"}, {"rel L2", true}}, {{{name, Look::plain, true}, {"0.5", Look::bad}}}};
  table.rows[0][1].number = 0.5;
  table.searchable = true;
  table.note = name;
  document.blocks.emplace_back(table);
  document.blocks.emplace_back(Chart{name, "<circle class=\"bad\"/>", 10, 20});
  document.blocks.emplace_back(List{{name}});
  document.blocks.emplace_back(Fold{name, {{name}}});
  return document;
}

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(Html, LetsNoNameOutOfItsPlace) {
  const std::string page = html_of(sample(std::string(kEvil)));
  EXPECT_EQ(count(page, "<script"), 1U);
  EXPECT_EQ(count(page, "</script"), 1U);
  EXPECT_EQ(count(page, "<img"), 0U);
  EXPECT_EQ(page.find('\x1b'), page.npos);
  EXPECT_NE(page.find("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"), page.npos);
}

// The policy names the very bytes between the tags: were one changed, the browser would refuse it.
TEST(Html, AllowsItsOwnStyleAndScriptAndNothingElse) {
  const std::string page = html_of(sample("w"));
  const auto between = [&](std::string_view open, std::string_view close) {
    const std::size_t from = page.find(open) + open.size();
    return page.substr(from, page.find(close, from) - from);
  };
  const std::string policy = between("Content-Security-Policy\" content=\"", "\">");
  EXPECT_TRUE(policy.starts_with("default-src 'none'; "));
  EXPECT_NE(policy.find("sha256-" + base64(sha256(between("<style>", "</style>")))), policy.npos);
  EXPECT_NE(policy.find("sha256-" + base64(sha256(between("<script>", "</script>")))), policy.npos);
  EXPECT_EQ(page.find("style=\""), page.npos);
  EXPECT_EQ(page.find("http://"), page.npos);
  EXPECT_EQ(page.find("https://"), page.npos);
}

TEST(Html, SortsNumbersByTheirValue) {
  const std::string page = html_of(sample("w"));
  EXPECT_NE(page.find("<td class=\"bad n\" data-n=\"0.5\">0.5</td>"), page.npos) << page;
  EXPECT_NE(page.find("<table class=\"searchable\">"), page.npos);
}

TEST(Markdown, ShowsEachBlock) {
  EXPECT_EQ(markdown_of(sample("w"), false),
            "# ❌ a → b: different\n\na = x, b = y\n\n## w\n\nw\n\n> ❌ **w**  \n> w\n>\n> - w\n\n"
            "✅ **12** w\n\n| pair | rel L2 |\n|---|--:|\n| `w` | 0.5 |\n\nw\n\n- w\n\n"
            "<details><summary>w</summary>\n\n- w\n\n</details>\n");
}

TEST(Markdown, LetsNoNameOutOfItsPlace) {
  const std::string text = markdown_of(sample(std::string(kEvil)), false);
  EXPECT_EQ(count(text, "\n# no"), 0U) << text;
  EXPECT_EQ(text.find('\x1b'), text.npos);
  // Every mark has its backslash, in a cell as well: there a bar would end even a code span.
  EXPECT_NE(text.find("\\</script\\>\\<img src=x onerror=alert(1)\\>\\|\\`\\*\\*\\|"), text.npos);
  EXPECT_NE(text.find("| \\</script\\>\\<img src=x onerror=alert(1)\\>\\|\\`\\*\\*\\|"), text.npos);
}

TEST(Markdown, HasChartsWhenAskedFor) {
  EXPECT_EQ(markdown_of(sample("w"), false).find("data:image"), std::string::npos);
  const std::string text = markdown_of(sample("w"), true);
  EXPECT_NE(text.find("![w](data:image/svg+xml;base64,"), text.npos);
  EXPECT_NE(text.find(base64(svg_of({"w", "<circle class=\"bad\"/>", 10, 20}))), text.npos);
}

}  // namespace
}  // namespace tensordiff::doc
