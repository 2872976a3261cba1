#include <gtest/gtest.h>

#include "serve/test_app.h"

namespace tensordiff::serve {
namespace {

class Pictures : public AppTest {};

TEST_F(Pictures, OfAPlane) {
  const std::string path = "/sessions/" + session() + "/pairs/0";
  const Json pyramid = json(get(path + "/pyramid?at=x"));
  EXPECT_EQ(pyramid["w"].u64(), 4U);
  EXPECT_EQ(pyramid["h"].u64(), 1U);
  EXPECT_EQ(pyramid["levels"].u64(), 1U);
  const Response tile = get(path + "/tile/d/0/0/0?at=x");
  ASSERT_EQ(tile.body.size(), 4 * sizeof(float));
  float last = 0;
  std::memcpy(&last, tile.body.data() + 3 * sizeof last, sizeof last);
  EXPECT_EQ(last, 1);
  for (const char* wrong : {"/tile/z/0/0/0?at=x", "/tile/d/9/0/0?at=x", "/tile/d/0/1/0?at=x",
                            "/tile/d/0/0/0?at=y,x", "/pyramid?at=9"})
    EXPECT_EQ(get(path + wrong).status, 400) << wrong;
}

}  // namespace
}  // namespace tensordiff::serve
