#include <gtest/gtest.h>

#include "serve/test_app.h"

namespace tensordiff::serve {
namespace {

class PairDetail : public AppTest {};

TEST_F(PairDetail, SaysAllThereIsToSayOfAPair) {
  const std::string path = "/sessions/" + session() + "/pairs/0";
  const Json pair = json(get(path));
  EXPECT_EQ(text(pair["status"]), "different");
  EXPECT_EQ(text(pair["a"]["name"]), "w");
  EXPECT_EQ(pair["metrics"]["maxAbs"].number(), 1);
  EXPECT_EQ(pair["a"]["stats"]["max"].number(), 4);
  EXPECT_EQ(get(path + "?run=99").status, 409);
}

TEST_F(PairDetail, OfATensorAloneToo) {
  write("c.safetensors", safetensors_of("other", {7, 8}));
  const std::string body =
      fmt::format(R"({{"a":["{}"],"b":["{}"],"match":{{"strategies":["exact"]}}}})",
                  source("a.safetensors"), source("c.safetensors"));
  const std::string id = text(json(post("/sessions", body))["id"]);
  wait(id);
  const Json first = json(get("/sessions/" + id + "/pairs/0"));
  EXPECT_EQ(text(first["status"]), "only_a");
  EXPECT_TRUE(first["b"].is_null());
  const Json second = json(get("/sessions/" + id + "/pairs/1"));
  EXPECT_EQ(text(second["status"]), "only_b");
  EXPECT_EQ(second["b"]["stats"]["max"].number(), 8);
  EXPECT_EQ(get("/sessions/" + id + "/pairs/2").status, 404);
}

}  // namespace
}  // namespace tensordiff::serve
