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

TEST_F(PairDetail, AFindingIsAppliedToA) {
  std::vector<float> a, b;
  for (int i = 0; i < 64; ++i) {
    a.push_back(static_cast<float>(i * i % 37) + 1);
    b.push_back(a.back() * 0.125F);
  }
  write("a.safetensors", safetensors_of("w", a));
  write("b.safetensors", safetensors_of("w", b));
  const std::string path = "/sessions/" + session() + "/pairs/0";
  const Json plain = json(get(path));
  ASSERT_EQ(plain["findings"].array().size(), 1u);
  ASSERT_EQ(plain["applicable"].array().size(), 1u);
  EXPECT_TRUE(plain["applied"].is_null());
  const Json with = json(get(path + "?apply=0"));
  EXPECT_EQ(with["applied"].u64(), 0u);
  EXPECT_LT(with["metrics"]["maxAbs"].number().value(), 1e-6);
  EXPECT_NE(text(with["v"]), text(plain["v"]));
  const Response slice = get(path + "/slice?apply=0&plane=d&at=x&v=" + text(with["v"]));
  EXPECT_EQ(slice.status, 200);
  EXPECT_EQ(get(path + "/slice?apply=0&plane=d&at=x&v=" + text(plain["v"])).status, 409);
  EXPECT_EQ(get(path + "?apply=7").status, 422);
  EXPECT_EQ(get(path + "/slice?apply=what&at=x").status, 400);
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
