#include <gtest/gtest.h>

#include "serve/test_app.h"

namespace tensordiff::serve {
namespace {

class Comparing : public AppTest {};

TEST_F(Comparing, GivesAVerdict) {
  const Json state = json(get("/sessions/" + session()));
  EXPECT_EQ(text(state["state"]), "done");
  EXPECT_EQ(text(state["summary"]["verdict"]), "different");
  EXPECT_EQ(state["summary"]["pairs"].u64(), 1U);
  EXPECT_EQ(state["progress"]["done"].u64(), 1U);
}

TEST_F(Comparing, AFileThatIsGoneFailsWithTheReason) {
  const std::string id = session();
  std::filesystem::remove(file("b.safetensors"));
  EXPECT_EQ(post("/sessions/" + id + "/reload").status, 202);
  wait(id);
  const Json state = json(get("/sessions/" + id));
  EXPECT_EQ(text(state["state"]), "failed");
  EXPECT_NE(text(state["error"]).find("b.safetensors"), std::string::npos);
  start();
  EXPECT_EQ(listed_state(id), "failed");
  EXPECT_EQ(app->jobs.of(id), nullptr);
}

TEST_F(Comparing, ACancelledOneStaysSo) {
  const std::string id = session();
  // Behind jobs that do not end, so that it cannot begin.
  std::atomic<bool> release = false;
  const auto slow = [&](Job&) {
    while (!release) std::this_thread::yield();
    return true;
  };
  for (std::size_t i = 0; i < Jobs::kAtOnce; ++i) app->jobs.start(std::to_string(i), "x", slow);
  const std::string job = text(json(post("/sessions/" + id + "/reload"))["job"]);
  EXPECT_EQ(ask("DELETE", "/api/v1/jobs/" + job).status, 202);
  EXPECT_EQ(state_of(id), "cancelled");
  release = true;
  start();
  EXPECT_EQ(listed_state(id), "cancelled");
}

TEST_F(Comparing, ALaterOneTakesOver) {
  const std::string id = session();
  for (int i = 0; i < 20; ++i) post("/sessions/" + id + "/reload");
  wait(id);
  EXPECT_EQ(state_of(id), "done");
}

}  // namespace
}  // namespace tensordiff::serve
