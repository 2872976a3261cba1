#include <gtest/gtest.h>

#include "serve/test_app.h"

namespace tensordiff::serve {
namespace {

class SessionRoutes : public AppTest {};

TEST_F(SessionRoutes, ListsChangesAndForgets) {
  const std::string id = session();
  const Json list = json(get("/sessions"));
  ASSERT_EQ(list["sessions"].array().size(), 1U);
  EXPECT_EQ(text(list["sessions"][0]["a"]), "a.safetensors");
  EXPECT_EQ(text(list["sessions"][0]["verdict"]), "different");
  const auto patch = [&](const char* body) {
    return ask("PATCH", "/api/v1/sessions/" + id, body).status;
  };
  EXPECT_EQ(patch(R"({"name":"mine"})"), 200);
  EXPECT_TRUE(json(ask("PATCH", "/api/v1/sessions/" + id, R"({"name":"m"})"))["job"].is_null());
  EXPECT_EQ(app->jobs.of(id), nullptr);  // A name compares nothing again.
  EXPECT_EQ(patch(R"({"policy":{"atol":9}})"), 200);
  wait(id);
  EXPECT_EQ(text(json(get("/sessions/" + id))["summary"]["verdict"]), "close");
  EXPECT_EQ(patch(R"({"policy":{"atol":-1}})"), 400);
  EXPECT_EQ(patch(R"({"a":["none"]})"), 400);
  EXPECT_EQ(ask("DELETE", "/api/v1/sessions/" + id).status, 204);
  EXPECT_EQ(get("/sessions/" + id).status, 404);
  EXPECT_TRUE(json(get("/sources"))["sources"].array().empty());
}

TEST_F(SessionRoutes, JobsSayHowFarTheyAre) {
  const std::string id = session();
  const std::string job = text(json(post("/sessions/" + id + "/reload"))["job"]);
  wait(id);
  const Json done = json(get("/jobs/" + job));
  EXPECT_EQ(text(done["state"]), "done");
  EXPECT_EQ(done["of"].u64(), 1U);
  EXPECT_EQ(get("/jobs/none").status, 404);
  EXPECT_EQ(ask("DELETE", "/api/v1/jobs/none").status, 404);
}

TEST_F(SessionRoutes, TooManyComparisonsAre503) {
  const std::string a = source("a.safetensors");
  std::atomic<bool> release = false;
  const auto slow = [&](Job&) {
    while (!release) std::this_thread::yield();
    return true;
  };
  for (std::size_t i = 0; app->jobs.start(std::to_string(i), "x", slow); ++i) {
  }
  const Response busy = post("/sessions", fmt::format(R"({{"a":["{}"]}})", a));
  EXPECT_EQ(busy.status, 503);
  EXPECT_TRUE(json(get("/sessions"))["sessions"].array().empty());
  release = true;
}

}  // namespace
}  // namespace tensordiff::serve
