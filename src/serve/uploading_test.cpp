#include <gtest/gtest.h>

#include "serve/test_app.h"

namespace tensordiff::serve {
namespace {

class Uploading : public AppTest {
 protected:
  Response begin(uint64_t size) {
    return post("/uploads", fmt::format(R"({{"name":"x.safetensors","size":{}}})", size));
  }
  Response put(const std::string& id, const std::string& chunk, const std::string& bytes) {
    return ask("PUT", "/api/v1/uploads/" + id + "/" + chunk, bytes);
  }
};

TEST_F(Uploading, ChunksBecomeASource) {
  const std::string data = safetensors_of("w", {1, 2, 3});
  const std::string id = text(json(begin(data.size()))["id"]);
  EXPECT_EQ(post("/uploads/" + id + "/complete").status, 409);
  EXPECT_EQ(put(id, "0", data.substr(1)).status, 400);
  EXPECT_EQ(put(id, "0", data + "x").status, 413);
  EXPECT_EQ(put(id, "1", data).status, 404);
  EXPECT_EQ(put(id, "0", data).status, 204);
  EXPECT_EQ(json(get("/uploads/" + id))["received"][0][1].u64(), 1U);
  const Json made = json(post("/uploads/" + id + "/complete"));
  EXPECT_EQ(made["tensors"].u64(), 1U);
  EXPECT_EQ(text(made["kind"]), "upload");
  EXPECT_EQ(ask("DELETE", "/api/v1/uploads/" + id).status, 409);
  EXPECT_EQ(put(id, "0", data).status, 404);  // It is a source now.
}

TEST_F(Uploading, WhatCannotBeReadIsRemoved) {
  const std::string id = text(json(begin(4))["id"]);
  EXPECT_EQ(put(id, "0", "junk").status, 204);
  EXPECT_EQ(post("/uploads/" + id + "/complete").status, 422);
  EXPECT_EQ(get("/uploads/" + id).status, 404);
}

TEST_F(Uploading, LimitsAreKept) {
  EXPECT_EQ(begin(0).status, 400);
  EXPECT_EQ(begin(app->uploads.limit() + 1).status, 413);
  options.upload_limit = UINT64_MAX;
  start();
  const uint64_t most = std::filesystem::space(folder).available / 5 * 3;
  EXPECT_EQ(begin(most).status, 201);
  EXPECT_EQ(begin(most).status, 507) << "what was promised to the first is given away";
}

TEST_F(Uploading, AreDropped) {
  const std::string id = text(json(begin(10))["id"]);
  EXPECT_EQ(ask("DELETE", "/api/v1/uploads/" + id).status, 204);
  EXPECT_EQ(ask("DELETE", "/api/v1/uploads/" + id).status, 404);
}

}  // namespace
}  // namespace tensordiff::serve
