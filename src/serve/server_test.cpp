#include "serve/server.h"

#include <gtest/gtest.h>

#include "serve/test_app.h"

namespace tensordiff::serve {
namespace {

class ServerTest : public AppTest {
 protected:
  ServerTest() {
    app.reset();
    options.port = 0;
    options.ports = 1;
  }
};

TEST_F(ServerTest, TheAddressHasTheTokenAndTheSession) {
  options.inputs = {file("a.safetensors"), file("b.safetensors")};
  Result<Server> server = Server::start(options);
  ASSERT_TRUE(server.ok()) << server.error().message();
  const App& running = server.value().app();
  EXPECT_EQ(server.value().url(),
            fmt::format("http://127.0.0.1:{}/#t={}&s={}", server.value().port(),
                        running.guard.token, running.opened));
  server.value().stop();
}

TEST_F(ServerTest, SaysWhyItCannotStart) {
  options.inputs = {file("none")};
  EXPECT_FALSE(Server::start(options).ok());
  options.inputs.clear();
  options.listen = "localhost";
  EXPECT_FALSE(Server::start(options).ok());
  options.listen = "127.0.0.1";
  options.state = file("a.safetensors");
  EXPECT_FALSE(Server::start(options).ok());
}

}  // namespace
}  // namespace tensordiff::serve
