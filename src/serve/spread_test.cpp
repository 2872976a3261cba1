#include <gtest/gtest.h>

#include "serve/test_app.h"

namespace tensordiff::serve {
namespace {

class SpreadRoutes : public AppTest {
 protected:
  SpreadRoutes() : path("/sessions/" + session() + "/pairs/0") {}
  std::string path;
};

TEST_F(SpreadRoutes, AlongEachAxis) {
  const Json axes = json(get(path + "/axes"))["axes"];
  ASSERT_EQ(axes.array().size(), 1U);
  EXPECT_EQ(axes[0]["maxAbs"][3].number(), 1);
  EXPECT_EQ(axes[0]["maxAbs"][0].number(), 0);
}

// A row is taken as logits: the element that differs makes one position predict other words.
TEST_F(SpreadRoutes, PredictionsByPosition) {
  const Json all = json(get(path + "/axes?predictions=1"));
  EXPECT_EQ(all["predictions"]["positions"].number(), 1);
  EXPECT_EQ(all["predictions"]["perBin"].number(), 1);
  EXPECT_GT(all["predictions"]["kl"][0].number(), 0.01);
  EXPECT_TRUE(json(get(path + "/axes"))["predictions"].is_null());
}

TEST_F(SpreadRoutes, Histograms) {
  EXPECT_EQ(text(json(get(path + "/histogram"))["of"]), "d");
  EXPECT_EQ(get(path + "/histogram?of=a").status, 200);
  EXPECT_EQ(get(path + "/histogram?of=x").status, 400);
}

TEST_F(SpreadRoutes, TheWorstElements) {
  const Json worst = json(get(path + "/worst?count=1"))["worst"];
  ASSERT_EQ(worst.array().size(), 1U);
  EXPECT_EQ(text(worst[0]["flat"]), "3");
  EXPECT_EQ(get(path + "/worst?count=x").status, 400);
}

}  // namespace
}  // namespace tensordiff::serve
