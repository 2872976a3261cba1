#include <gtest/gtest.h>

#include "serve/test_app.h"

namespace tensordiff::serve {
namespace {

class ValueRoutes : public AppTest {
 protected:
  ValueRoutes() : path("/sessions/" + session() + "/pairs/0") {}
  static std::vector<float> floats(const Response& answer) {
    std::vector<float> values(answer.body.size() / sizeof(float));
    std::memcpy(values.data(), answer.body.data(), values.size() * sizeof(float));
    return values;
  }
  std::string path;
};

TEST_F(ValueRoutes, Slices) {
  EXPECT_EQ(floats(get(path + "/slice?plane=b&at=x")), (std::vector<float>{1, 2, 3, 5}));
  EXPECT_EQ(floats(get(path + "/slice?plane=d&at=x&x=2:4")), (std::vector<float>{0, 1}));
  for (const char* wrong : {"?at=y", "?plane=z&at=x", "?at=x&x=3:2", "?at=x&as=f16", "?at=4"})
    EXPECT_EQ(get(path + "/slice" + wrong).status, wrong == std::string("?at=y") ? 200 : 400)
        << wrong;
  EXPECT_EQ(get(path + "/slice?at=x&v=old").status, 409);
}

TEST_F(ValueRoutes, OneElement) {
  const Json element = json(get(path + "/element?at=3"));
  EXPECT_EQ(text(element["flat"]), "3");
  EXPECT_EQ(element["diff"].number(), 1);
  EXPECT_EQ(text(element["a"]["bits"]), "40800000");
  EXPECT_EQ(get(path + "/element?flat=4").status, 400);
}

TEST_F(ValueRoutes, Profiles) {
  const std::vector<float> both = floats(get(path + "/profile?plane=d&at=*&points=2"));
  EXPECT_EQ(both, (std::vector<float>{0, 0, 0, 1}));  // The least of each half, then the most.
  EXPECT_EQ(get(path + "/profile?at=0").status, 400);
}

}  // namespace
}  // namespace tensordiff::serve
