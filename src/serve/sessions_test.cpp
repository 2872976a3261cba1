#include "serve/sessions.h"

#include <gtest/gtest.h>

#include "serve/test_app.h"

namespace tensordiff::serve {
namespace {

class SessionsTest : public AppTest {};

TEST_F(SessionsTest, AreThereAgainWithoutBeingComparedAgain) {
  const std::string id = session();
  start();
  EXPECT_EQ(listed_state(id), "done");
  EXPECT_EQ(state_of(id), "done");
  EXPECT_EQ(app->jobs.of(id), nullptr);
  EXPECT_EQ(get("/sessions/" + id + "/pairs/0/slice?at=x").status, 200);
}

TEST_F(SessionsTest, WhatIsUnfinishedIsNotListedAsDoneAndBegunAgain) {
  const std::string id = session();
  // As a server leaves it that is killed while it compares.
  ASSERT_TRUE(app->store.run("DELETE FROM results").ok());
  ASSERT_TRUE(app->store.run("INSERT INTO runs VALUES(?,1,'running','')", {id}).ok());
  start();
  EXPECT_EQ(listed_state(id), "unfinished");
  EXPECT_EQ(get("/sessions/" + id).status, 200);
  wait(id);
  EXPECT_EQ(state_of(id), "done");
}

TEST_F(SessionsTest, WhatTookTheServerDownTwiceIsLeftAlone) {
  const std::string id = session();
  ASSERT_TRUE(app->store.run("DELETE FROM results").ok());
  ASSERT_TRUE(app->store.run("INSERT INTO runs VALUES(?,2,'running','')", {id}).ok());
  start();
  EXPECT_EQ(listed_state(id), "failed");
  EXPECT_NE(text(json(get("/sessions/" + id))["error"]).find("2 times"), std::string::npos);
  EXPECT_EQ(app->jobs.of(id), nullptr);
  post("/sessions/" + id + "/reload");
  wait(id);
  start();
  EXPECT_EQ(listed_state(id), "done");
}

TEST_F(SessionsTest, DamagedResultsAreSaidAndNotReplaced) {
  const std::string id = session();
  ASSERT_TRUE(app->store.run("DROP TABLE notes").ok());
  ASSERT_TRUE(app->store.run("CREATE TABLE notes(session TEXT)").ok());
  start();
  EXPECT_EQ(state_of(id), "failed");
  EXPECT_NE(text(json(get("/sessions/" + id))["error"]).find("database"), std::string::npos);
  int64_t kept = 0;
  ASSERT_TRUE(app->store
                  .read("SELECT count(*) FROM results", {},
                        [&](const Store::Row& row) { kept = row.number(0); })
                  .ok());
  EXPECT_EQ(kept, 1);
}

}  // namespace
}  // namespace tensordiff::serve
