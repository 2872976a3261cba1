#include "serve/routes.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "serve/rows.h"

namespace tensordiff::serve {
namespace {

std::string page() {
  std::ifstream file(TENSORDIFF_SOURCE_DIR "/docs/http-api.md");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Routes, AreThoseThatTheDocumentDescribes) {
  const std::string text = page();
  std::set<std::string> documented, known;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    for (const char* method : {"| `GET /", "| `POST /", "| `PUT /", "| `PATCH /", "| `DELETE /"})
      if (line.starts_with(method)) documented.insert(line);
  for (const Route& route : routes())
    known.insert(fmt::format("| `{} {}` | {} |", route.method, route.pattern, route.summary));
  EXPECT_EQ(documented, known);
}

TEST(Routes, ColumnsAreDocumented) {
  const std::string text = page();
  for (const std::string_view column : row_columns())
    EXPECT_NE(text.find(fmt::format("`{}`", column)), std::string::npos) << column;
}

TEST(Routes, FindsByMethodAndPath) {
  const Match match = find_route("GET", "/api/v1/sessions/abc/pairs/7/slice");
  ASSERT_NE(match.route, nullptr);
  EXPECT_EQ(match.route->pattern, "/api/v1/sessions/{session}/pairs/{pair}/slice");
  ASSERT_EQ(match.parameters.size(), 2U);
  EXPECT_EQ(match.parameters[1].second, "7");
  EXPECT_EQ(find_route("DELETE", "/api/v1/health").allow, "GET");
  EXPECT_EQ(find_route("PUT", "/api/v1/sessions/x").allow, "GET, PATCH, DELETE");
  EXPECT_EQ(find_route("GET", "/api/v1/health/").route, nullptr);
  EXPECT_EQ(find_route("GET", "/api/v1").route, nullptr);
}

TEST(Routes, EveryOneBeneathApiNeedsTheTokenInAHeaderOrSaysSo) {
  for (const Route& route : routes())
    EXPECT_EQ(route.token_in_query,
              route.summary.starts_with("†") || !route.pattern.starts_with("/api/"))
        << route.pattern;
}

}  // namespace
}  // namespace tensordiff::serve
