// Which files may be opened: with openat2, and on kernels and in containers without it.

#include "base/roots.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <thread>

namespace tensordiff {
namespace {

namespace fs = std::filesystem;

// From here on this process has no openat2, as in an old container.
void without_openat2(int error) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {4, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    _exit(99);
}

class RootsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder = fs::canonical(testing::TempDir()) /
             fmt::format("roots_{}_{}", getpid(),
                         testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder / "in" / "data");
    fs::create_directories(folder / "inner");
    std::ofstream(folder / "in" / "file") << "x";
    std::ofstream(folder / "in" / "data" / "part.bin") << "here";
    std::ofstream(folder / "secret") << "no";
    fs::create_symlink("../secret", folder / "in" / "link");
    fs::create_symlink(folder / "in" / "file", folder / "in" / "absolute");
    fs::create_symlink("data", folder / "in" / "linked");
    fs::create_symlink(folder / "inner", folder / "in" / "away");
  }
  void TearDown() override { fs::remove_all(folder); }

  // All that must hold, as text where it does not; the same with and without openat2.
  std::string faults() const {
    std::string out;
    const auto expect = [&](const std::string& found, const std::string& wanted) {
      if (found != wanted) out += "'" + found + "' is not '" + wanted + "'\n";
    };
    const auto told = [](const Result<Bytes>& bytes) {
      return bytes.ok() ? std::string(as_text(bytes.value().view)) : bytes.error().message();
    };
    const Roots roots = Roots::make({(folder / "in").string()}).value();
    const std::string in = (folder / "in").string(), outside =
                                                         "it lies outside the folders that "
                                                         "may be read";
    expect(told(roots.map(in + "/file")), "x");
    expect(told(roots.map(in + "/absolute")), "x");
    expect(told(roots.map(in + "/linked/part.bin")), "here");
    expect(told(roots.map(in + "/data/../file")), "x");
    expect(told(roots.map(in + "/none")), "no such file or folder");
    expect(told(roots.map(in + "/data")), "not a regular file");
    for (const std::string& path : {(folder / "secret").string(), in + "/link", in + "/../secret",
                                    folder.string() + "/inner", std::string("/etc/passwd")})
      expect(told(roots.map(path)), outside);
    expect(told(roots.map_beneath(in, "data/part.bin")), "here");
    expect(told(roots.map_beneath(in, "link")), "a link, not followed");
    expect(told(roots.map_beneath(in, "absolute")), "a link, not followed");
    expect(told(roots.map_beneath(in, "linked/part.bin")), "a link, not followed");
    expect(told(roots.map_beneath(folder.string(), "secret")), outside);
    expect(told(roots.map_beneath(in, "data")), "not a regular file");
    expect(told(roots.map_beneath(in, "none")), "no such file or folder");
    for (const std::string_view name : {"", "/etc/passwd", "../secret", "data/../../secret",
                                        "./data", "data//part.bin", "data/", "a\\b"})
      expect(told(roots.map_beneath(in, name)), "it is not the name of a file below the folder");
    expect(told(roots.map_beneath(in, std::string_view("a\0b", 3))),
           "it is not the name of a file below the folder");
    std::vector<std::string> names;
    const Result<void> walked = roots.walk(in, [&](Roots::Entry entry) {
      names.push_back(entry.name + (entry.outside ? "!" : ""));
      return true;
    });
    std::sort(names.begin(), names.end());
    expect(walked.ok() ? fmt::format("{}", fmt::join(names, " ")) : walked.error().message(),
           "absolute data/part.bin file link!");
    expect(roots.walk(folder.string(), [](Roots::Entry) { return true; }).error().message(),
           outside);
    return out;
  }

  fs::path folder;
};

TEST_F(RootsTest, OpenOnlyWhatLiesBeneathThem) { EXPECT_EQ(faults(), ""); }

using RootsDeathTest = RootsTest;

TEST_F(RootsDeathTest, HoldWithoutOpenat2) {
  for (const int error : {ENOSYS, EPERM})
    EXPECT_EXIT(
        {
          without_openat2(error);
          const std::string found = faults();
          std::fputs(found.c_str(), stderr);
          _exit(found.empty() ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

TEST_F(RootsTest, EndAtTheirEdge) {
  const Roots roots = Roots::make({(folder / "in").string()}).value();
  EXPECT_EQ(roots.find((folder / "in/file").string()).path, folder / "in/file");
  EXPECT_EQ(roots.find((folder / "in/data/../file").string()).path, folder / "in/file");
  for (const fs::path& outside : {folder / "secret", folder / "in/../secret", folder / "in/link",
                                  folder / "inner", folder, fs::path("/")}) {
    const Roots::Found found = roots.find(outside.string());
    EXPECT_TRUE(found.outside) << outside;
    EXPECT_TRUE(found.path.empty()) << outside;
  }
  EXPECT_FALSE(roots.find((folder / "in/none").string()).outside);
  EXPECT_TRUE(roots.find(std::string("in\0x", 4)).path.empty());
  EXPECT_FALSE(Roots::make({(folder / "none").string()}).ok());
  EXPECT_FALSE(Roots::make({}).value().map((folder / "in/file").string()).ok()) << "no roots";
  EXPECT_TRUE(Roots().map((folder / "in/link").string()).ok()) << "no bounds";
}

// Somebody swaps a folder for a link, again and again, while we open a file in it: what is opened
// is never the file outside.
TEST_F(RootsTest, HoldWhileFoldersAreSwappedForLinks) {
  std::ofstream(folder / "inner" / "part.bin") << "secret";
  const Roots roots = Roots::make({(folder / "in").string()}).value();
  std::atomic<bool> done = false;
  std::thread other([&] {
    while (!done) {
      fs::rename(folder / "in/data", folder / "in/data2");
      fs::create_symlink(folder / "inner", folder / "in/data");
      fs::remove(folder / "in/data");
      fs::rename(folder / "in/data2", folder / "in/data");
    }
  });
  for (int i = 0; i < 2000; ++i) {
    const Result<Bytes> bytes = roots.map((folder / "in/data/part.bin").string());
    const Result<Bytes> below = roots.map_beneath((folder / "in").string(), "data/part.bin");
    for (const Result<Bytes>* each : {&bytes, &below})
      EXPECT_EQ(each->ok() ? as_text(each->value().view) : "here", "here");
  }
  done = true;
  other.join();
  EXPECT_EQ(as_text(roots.map((folder / "in/data/part.bin").string()).value().view), "here");
}

}  // namespace
}  // namespace tensordiff
