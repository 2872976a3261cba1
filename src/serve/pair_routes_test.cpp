#include <gtest/gtest.h>

#include "serve/test_app.h"

namespace tensordiff::serve {
namespace {

class PairRoutes : public AppTest {
 protected:
  PairRoutes() : id(session()), path("/sessions/" + id) {}
  Response put(const std::string& where, const std::string& body) {
    return ask("PUT", "/api/v1" + path + where, body);
  }
  std::string id, path;
};

TEST_F(PairRoutes, RowsAsColumnsOrJson) {
  EXPECT_TRUE(get(path + "/pairs").body.starts_with("TDBC"));
  const Json rows =
      json(ask("GET", "/api/v1" + path + "/pairs", "", {{"accept", "application/json"}}));
  EXPECT_EQ(rows["rows"].array().size(), 1U);
  EXPECT_EQ(get(path + "/pairs?columns=id,no").status, 400);
  EXPECT_EQ(get(path + "/pairs?since=x").status, 400);
}

TEST_F(PairRoutes, ANoteLasts) {
  EXPECT_EQ(put("/pairs/0/note", R"({"text":"look"})").status, 204);
  EXPECT_EQ(put("/pairs/0/note", R"({"text":7})").status, 400);
  EXPECT_EQ(
      put("/pairs/0/note", fmt::format(R"({{"text":"{}"}})", std::string(10'001, 'x'))).status,
      413);
  start();
  EXPECT_EQ(text(json(get(path + "/pairs/0"))["note"]), "look");
}

TEST_F(PairRoutes, OrderOfRows) {
  EXPECT_EQ(put("/order", R"({"ids":[0]})").status, 200);
  EXPECT_TRUE(*json(get(path))["ordered"].boolean());
  EXPECT_EQ(put("/order", R"({"ids":[]})").status, 200);
  EXPECT_FALSE(*json(get(path))["ordered"].boolean());
  EXPECT_EQ(put("/order", R"({"ids":[-1]})").status, 400);
}

TEST_F(PairRoutes, PairsMadeByHand) {
  EXPECT_EQ(put("/pairings", R"({"pairs":[{"a":"w","b":"w"}],"only":true})").status, 200);
  wait(id);
  EXPECT_EQ(json(get(path + "/pairings"))["pairs"].array().size(), 1U);
  const Response stale =
      put("/pairings", R"({"pairs":[{"a":"w","b":"gone"}],"fingerprint":"old"})");
  EXPECT_EQ(stale.status, 409);
  EXPECT_EQ(text(json(stale)["stale"][0]["b"]), "gone");
}

TEST_F(PairRoutes, Exports) {
  const Json made = json(post(path + "/export", R"({"format":"json","show":["different"]})"));
  const Response file =
      ask("GET", text(made["url"]) + "?token=" + app->guard.token, "", {{"x-token", ""}});
  EXPECT_EQ(file.status, 200);
  EXPECT_NE(file.body.find("different"), std::string::npos);
  EXPECT_EQ(post(path + "/export", R"({"format":"doc"})").status, 400);
  EXPECT_EQ(post(path + "/export", R"({"format":"json","show":["odd"]})").status, 400);
  EXPECT_EQ(get("/exports/none").status, 404);
}

TEST_F(PairRoutes, AxesByHand) {
  const auto say = [&](const char* body) {
    return ask("PATCH", "/api/v1" + path + "/pairs/0", body).status;
  };
  EXPECT_EQ(say(R"({"dims":"i -> i"})"), 202);
  wait(id);
  EXPECT_EQ(text(json(get(path + "/pairs/0"))["dims"]), "i -> i");
  EXPECT_EQ(say(R"({"dims":7})"), 400);
  EXPECT_EQ(say(R"({"dims":"i ->"})"), 400);
}

}  // namespace
}  // namespace tensordiff::serve
