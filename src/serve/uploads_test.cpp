#include "serve/uploads.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace fs = std::filesystem;

namespace tensordiff::serve {
namespace {

// A folder that ends with the test.
class UploadsTest : public testing::Test {
 protected:
  UploadsTest() {
    std::string name = (fs::temp_directory_path() / "serve-test-XXXXXX").string();
    folder = fs::canonical(mkdtemp(name.data()));
  }
  ~UploadsTest() override { fs::remove_all(folder); }
  fs::path folder;
};

TEST_F(UploadsTest, AreFoundAgain) {
  Store store = Store::open(":memory:").value();
  std::string id;
  {
    Uploads uploads(store, folder, 1 << 30);
    ASSERT_TRUE(uploads.load().ok());
    const Upload upload =
        uploads.begin("../../evil name.zip", 3 * Uploads::kChunkBytes - 1).value();
    id = upload.id;
    EXPECT_EQ(upload.received.size(), 3U);
    EXPECT_EQ(upload.chunk_bytes(2), Uploads::kChunkBytes - 1);
    EXPECT_EQ(upload.path, folder / id / "evil_name.zip");
    BodyFile file = BodyFile::open(upload.path, 5).value();
    ASSERT_TRUE(file.append("abc").ok());
    ASSERT_TRUE(uploads.received(id, 1).ok());
  }
  Uploads uploads(store, folder, 1 << 30);
  ASSERT_TRUE(uploads.load().ok());
  const std::optional<Upload> upload = uploads.find(id);
  ASSERT_TRUE(upload.has_value());
  EXPECT_EQ(upload->received, std::vector<bool>({false, true, false}));
  EXPECT_FALSE(upload->complete());
  EXPECT_EQ(fs::file_size(upload->path), 8U);
  const auto unused = [](const std::string&) { return false; };
  EXPECT_TRUE(uploads.sweep(upload->created, unused).empty());
  EXPECT_TRUE(uploads.find(id).has_value());
  EXPECT_TRUE(uploads.sweep(upload->created + 1, unused).empty());
  EXPECT_FALSE(uploads.find(id).has_value());
  EXPECT_FALSE(fs::exists(folder / id));
}

TEST_F(UploadsTest, WhatIsPromisedIsKeptFree) {
  Store store = Store::open(":memory:").value();
  Uploads uploads(store, folder, UINT64_MAX);
  ASSERT_TRUE(uploads.load().ok());
  // Nothing of it comes, and all the same there is no room for another one.
  const uint64_t most = fs::space(folder).available / 5 * 3;
  const Result<Upload> first = uploads.begin("a", most);
  ASSERT_TRUE(first.ok()) << first.error().message();
  const Result<Upload> second = uploads.begin("b", most);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message().find("no room for b"), std::string::npos);
  EXPECT_EQ(uploads.promise(most), nullptr);
  uploads.remove(first.value().id);
  {
    const std::shared_ptr<void> promise = uploads.promise(most);
    ASSERT_NE(promise, nullptr);
    EXPECT_FALSE(uploads.has_room(most));
  }
  EXPECT_TRUE(uploads.has_room(most));
  // The next server knows of it too.
  ASSERT_TRUE(uploads.begin("c", most).ok());
  Uploads again(store, folder, UINT64_MAX);
  ASSERT_TRUE(again.load().ok());
  EXPECT_FALSE(again.has_room(most));
}

TEST_F(UploadsTest, WhatAKilledServerLeftIsSwept) {
  Store store = Store::open(":memory:").value();
  std::string begun, used, unused, lost;
  {
    Uploads uploads(store, folder, 1 << 30);
    ASSERT_TRUE(uploads.load().ok());
    begun = uploads.begin("begun", 10).value().id;
    used = uploads.begin("used", 10).value().id;
    unused = uploads.begin("unused", 10).value().id;
    lost = uploads.begin("lost", 10).value().id;
    ASSERT_TRUE(uploads.set_source(used, "source-1").ok());
    ASSERT_TRUE(uploads.set_source(unused, "source-2").ok());
  }
  fs::create_directories(folder / "abc");  // Made just before the server was killed.
  std::ofstream(folder / "abc" / "x.pt") << "x";
  std::ofstream(folder / "body-xyz") << "x";
  fs::remove_all(folder / lost);
  Uploads uploads(store, folder, 1 << 30);
  ASSERT_TRUE(uploads.load().ok());
  const auto is_used = [](const std::string& source) { return source == "source-1"; };
  EXPECT_TRUE(uploads.sweep(0, is_used).empty());
  EXPECT_FALSE(fs::exists(folder / "abc"));
  EXPECT_FALSE(fs::exists(folder / "body-xyz"));
  EXPECT_FALSE(uploads.find(lost).has_value());
  for (const std::string& id : {begun, used, unused}) EXPECT_TRUE(fs::exists(folder / id)) << id;
  // A day later.
  EXPECT_EQ(uploads.sweep(INT64_MAX, is_used), std::vector<std::string>{"source-2"});
  for (const std::string& id : {begun, unused}) EXPECT_FALSE(fs::exists(folder / id)) << id;
  EXPECT_TRUE(fs::exists(folder / used));
}

TEST(Uploads, NamesAreMadeHarmless) {
  EXPECT_EQ(harmless_name("/etc/passwd"), "passwd");
  EXPECT_EQ(harmless_name("..\\..\\x.pt"), "x.pt");
  EXPECT_EQ(harmless_name(".."), "_.");
  EXPECT_EQ(harmless_name(".ssh"), "_ssh");
  EXPECT_EQ(harmless_name(""), "file");
  EXPECT_EQ(harmless_name("a\nb\"c.zip"), "a_b_c.zip");
  EXPECT_LE(harmless_name(std::string(1000, 'x') + ".pt").size(), 100U);
}

}  // namespace
}  // namespace tensordiff::serve
