#include "serve/store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace fs = std::filesystem;

namespace tensordiff::serve {
namespace {

// A folder that ends with the test.
class StoreTest : public testing::Test {
 protected:
  StoreTest() {
    std::string name = (fs::temp_directory_path() / "serve-test-XXXXXX").string();
    folder = fs::canonical(mkdtemp(name.data()));
  }
  ~StoreTest() override { fs::remove_all(folder); }
  fs::path folder;
};

TEST_F(StoreTest, KeepsWhatItIsGiven) {
  const std::string path = (folder / "x.db").string();
  const std::string bytes("\0\1\2", 3);
  {
    Store store = Store::open(path).value();
    ASSERT_TRUE(store.run("INSERT INTO notes VALUES(?,?,?,?)", {"s", "a'b", "", "text"}).ok());
    ASSERT_TRUE(store
                    .run("INSERT INTO results VALUES(?,?,?,?,?,?)",
                         {"s", "f", "n", "same", 3, Store::Blob{bytes}})
                    .ok());
    EXPECT_FALSE(store.run("INSERT INTO nowhere VALUES(1)").ok());
  }
  Store again = Store::open(path).value();
  std::string name, blob;
  ASSERT_TRUE(
      again.read("SELECT a FROM notes", {}, [&](const Store::Row& row) { name = row.text(0); })
          .ok());
  ASSERT_TRUE(again
                  .read("SELECT report FROM results WHERE session=?", {"s"},
                        [&](const Store::Row& row) { blob = row.text(0); })
                  .ok());
  EXPECT_EQ(name, "a'b");
  EXPECT_EQ(blob, bytes);
}

TEST_F(StoreTest, IsForNobodyElseToRead) {
  const fs::path path = folder / "x.db";
  std::ofstream(path) << "";  // As an earlier version left it.
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write | fs::perms::others_read);
  Store store = Store::open(path.string()).value();
  ASSERT_TRUE(store.run("INSERT INTO notes VALUES('s','a','b','text')").ok());
  for (const char* name : {"x.db", "x.db-wal", "x.db-shm"}) {
    struct stat facts {};
    ASSERT_EQ(stat((folder / name).c_str(), &facts), 0) << name;
    EXPECT_EQ(facts.st_mode & 0777, 0600U) << name;
  }
}

TEST_F(StoreTest, DamageIsSaidWithWhatToDo) {
  const std::string path = (folder / "x.db").string();
  std::ofstream(path) << std::string(10'000, 'x');
  const Result<Store> damaged = Store::open(path);
  ASSERT_FALSE(damaged.ok());
  EXPECT_NE(damaged.error().message().find(path), std::string::npos);
  EXPECT_NE(damaged.error().message().find("damaged"), std::string::npos);
  EXPECT_NE(damaged.error().message().find("move it away"), std::string::npos);
  EXPECT_FALSE(Store::open(folder.string()).ok());
  EXPECT_FALSE(Store::open((folder / "none" / "x.db").string()).ok());
}

TEST_F(StoreTest, FaultsTellAFullDiskFromOtherErrors) {
  Store store = Store::open((folder / "x.db").string()).value();
  {
    const Store::Faults faults;
    ASSERT_TRUE(store.run("INSERT INTO notes VALUES('s','a','b','text')").ok());
    EXPECT_FALSE(faults.seen());
  }
  ASSERT_TRUE(store.run("PRAGMA max_page_count=1").ok());  // Not below what it has already.
  const std::string large(1 << 20, 'x');
  const Store::Faults outer;
  {
    const Store::Faults faults;
    const Result<void> full = store.run("INSERT INTO notes VALUES('s','a','c',?)", {large});
    ASSERT_FALSE(full.ok());
    EXPECT_EQ(full.error().message(), "the disk is full");
    EXPECT_TRUE(faults.seen());
  }
  EXPECT_FALSE(outer.seen());
}

}  // namespace
}  // namespace tensordiff::serve
