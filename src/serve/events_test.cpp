#include <gtest/gtest.h>

#include "serve/test_app.h"

namespace tensordiff::serve {
namespace {

class Events : public AppTest {
 protected:
  std::string all(const std::string& id) {
    const Response answer =
        ask("GET", "/api/v1/sessions/" + id + "/events?token=" + app->guard.token, "",
            {{"x-token", ""}});
    EXPECT_EQ(answer.type, "text/event-stream");
    std::string sent;
    answer.stream([&](std::string_view piece) {
      sent += piece;
      return true;
    });
    return sent;
  }
};

TEST_F(Events, EndWithTheComparison) {
  const std::string id = session();
  post("/sessions/" + id + "/reload");
  const std::string sent = all(id);
  EXPECT_NE(sent.find("event: rev"), std::string::npos);
  EXPECT_NE(sent.rfind("\"state\":\"done\""), std::string::npos);
}

TEST_F(Events, TellOfAFileThatChanged) {
  const std::string id = session();
  std::filesystem::remove(file("b.safetensors"));
  start();  // It looks at a file at most once a second; a new server looks at once.
  EXPECT_NE(all(id).find("\"state\":\"gone\""), std::string::npos);
}

TEST_F(Events, EndWhenNobodyListens) {
  const std::string id = session();
  const Response answer = get("/sessions/" + id + "/events");
  int pieces = 0;
  answer.stream([&](std::string_view) { return ++pieces < 1; });
  EXPECT_EQ(pieces, 1);
  EXPECT_EQ(get("/sessions/none/events").status, 404);
}

}  // namespace
}  // namespace tensordiff::serve
