#include "serve/app.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "serve/routes.h"
#include "serve/test_app.h"

namespace tensordiff::serve {
namespace {

class AppItself : public AppTest {};

TEST_F(AppItself, EveryRouteNeedsTheToken) {
  for (const Route& route : routes()) {
    const Response answer =
        ask(std::string(route.method), std::string(route.pattern), "", {{"x-token", "wrong"}});
    EXPECT_EQ(answer.status, 401) << route.pattern;
  }
  EXPECT_EQ(ask("GET", "/api/v1/none", "", {{"x-token", ""}}).status, 401);
  EXPECT_NE(ask("GET", "/", "", {{"x-token", ""}}).status, 401);  // The page has no secrets.
}

TEST_F(AppItself, LegacyOpenOpensTheEarlierRoutesOnly) {
  options.legacy_open = true;
  start();
  for (const Route& route : routes()) {
    const Response answer =
        ask(std::string(route.method), std::string(route.pattern), "", {{"x-token", "wrong"}});
    EXPECT_EQ(answer.status == 401, route.pattern.starts_with("/api/")) << route.pattern;
  }
}

TEST_F(AppItself, TheTokenIsThatOfTheStateFolder) {
  const std::string token = app->guard.token;
  EXPECT_EQ(token.size(), 32U);
  start();
  EXPECT_EQ(app->guard.token, token);
}

TEST_F(AppItself, AWrongMethodSaysWhichAreRight) {
  const auto allow = [&](const char* method, const char* path) {
    const Response answer = ask(method, path);
    EXPECT_EQ(answer.status, 405) << path;
    const auto found = std::ranges::find(answer.headers, "Allow", &Header::name);
    return found == answer.headers.end() ? "" : found->value;
  };
  EXPECT_EQ(allow("PUT", "/api/v1/health"), "GET");
  EXPECT_EQ(allow("POST", "/api/v1/sessions/x"), "GET, PATCH, DELETE");
  EXPECT_EQ(allow("DELETE", "/index.html"), "GET, HEAD");
  EXPECT_EQ(get("/none").status, 404);
}

TEST_F(AppItself, ABodyThatIsNoJsonIsRefused) {
  EXPECT_EQ(post("/sessions", "{").status, 400);
  EXPECT_EQ(post("/sessions", std::string(2 << 20, ' ')).status, 413);
}

TEST_F(AppItself, AFullDiskIs507AndNothingElseChanges) {
  const std::string id = session();
  ASSERT_TRUE(app->store.run("PRAGMA max_page_count=1").ok());
  const std::string pairs =
      fmt::format(R"({{"pairs":[{{"a":"{}","b":"w"}}]}})", std::string(900'000, 'x'));
  EXPECT_EQ(ask("PATCH", "/api/v1/sessions/" + id, pairs).status, 507);
  EXPECT_EQ(ask("PUT", "/api/v1/sessions/" + id + "/pairs/0/note", "{}").status, 400);
  EXPECT_EQ(state_of(id), "done");
}

TEST_F(AppItself, TheDemoIsASession) {
  const SessionPtr demo = app->open_demo().value();
  wait(demo->id());
  EXPECT_EQ(state_of(demo->id()), "done");
}

}  // namespace
}  // namespace tensordiff::serve
