#include <gtest/gtest.h>

#include "base/build_info.h"
#include "serve/test_app.h"

namespace tensordiff::serve {
namespace {

class FilesOfTheServer : public AppTest {};

TEST_F(FilesOfTheServer, HealthSaysWhatItIs) {
  const Json health = json(get("/health"));
  EXPECT_EQ(text(health["version"]), kVersion);
  EXPECT_EQ(health["limits"]["upload"].u64(), app->uploads.limit());
  EXPECT_EQ(text(health["roots"][0]), folder / "files");
  EXPECT_TRUE(health["open"].is_null());
}

TEST_F(FilesOfTheServer, ListsWhatIsBeneathTheRoots) {
  const Json listing = json(get("/fs?dir=" + (folder / "files").string() + "&prefix=a"));
  ASSERT_EQ(listing["entries"].array().size(), 1U);
  EXPECT_EQ(text(listing["entries"][0]["name"]), "a.safetensors");
  EXPECT_EQ(text(listing["entries"][0]["format"]), "safetensors");
  EXPECT_EQ(get("/fs?dir=" + folder.string()).status, 403);
  EXPECT_EQ(get("/fs?dir=" + file("none")).status, 404);
}

TEST_F(FilesOfTheServer, OpensAPathOnce) {
  const std::string id = source("a.safetensors");
  EXPECT_EQ(source("a.safetensors"), id);
  EXPECT_EQ(json(get("/sources"))["sources"].array().size(), 1U);
  EXPECT_EQ(text(json(get("/sources/" + id))["state"]), "ready");
  EXPECT_TRUE(get("/sources/" + id + "/tensors").body.starts_with("TDBC"));
  EXPECT_EQ(get("/sources/none").status, 404);
}

TEST_F(FilesOfTheServer, SaysWhyNot) {
  write("junk", "no tensors here");
  EXPECT_EQ(post("/sources", "{}").status, 400);
  EXPECT_EQ(post("/sources", R"({"path":"/etc/passwd"})").status, 403);
  EXPECT_EQ(post("/sources", fmt::format(R"({{"path":"{}"}})", file("none"))).status, 404);
  EXPECT_EQ(post("/sources", fmt::format(R"({{"path":"{}"}})", file("junk"))).status, 422);
}

}  // namespace
}  // namespace tensordiff::serve
