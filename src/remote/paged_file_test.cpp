#include "remote/paged_file.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

#include "remote/pager.h"
#include "remote/pages.h"
#include "remote/policy.h"

namespace tensordiff::remote {
namespace {

// Each byte tells where it is.
std::string content(uint64_t first, uint64_t count) {
  std::string bytes(count, '\0');
  for (uint64_t i = 0; i < count; ++i)
    bytes[i] = static_cast<char>((first + i) * 2654435761U >> 24);
  return bytes;
}

struct Counted {
  std::shared_ptr<std::atomic<uint64_t>> bytes = std::make_shared<std::atomic<uint64_t>>(0);

  std::shared_ptr<PagedFile> file(uint64_t size) const {
    return PagedFile::make(size,
                           [bytes = bytes](ByteRange range) -> Result<std::string> {
                             *bytes += range.count;
                             return content(range.first, range.count);
                           })
        .value();
  }
};

TEST(PagedFile, FetchesWhatIsTouched) {
  const Counted counted;
  const Bytes bytes = counted.file(100 * kBlockBytes + 7)->bytes();
  EXPECT_EQ(*counted.bytes, 0U);
  EXPECT_EQ(as_text(bytes.view.subspan(50 * kBlockBytes, 4)), content(50 * kBlockBytes, 4));
  EXPECT_EQ(*counted.bytes, kBlockBytes);
  EXPECT_EQ(as_text(bytes.view.last(7)), content(100 * kBlockBytes, 7));
  EXPECT_EQ(*counted.bytes, kBlockBytes + 7);
  EXPECT_TRUE(bytes.intact());
}

TEST(PagedFile, ReadsInOrderFromManyThreads) {
  const Counted counted;
  const uint64_t size = 300 * kBlockBytes + 1;
  const Bytes bytes = counted.file(size)->bytes();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 4; ++reader)
    readers.emplace_back([&] {
      if (as_text(bytes.view) != content(0, size)) ++wrong;
    });
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(*counted.bytes, size);  // Once, whoever asked.
}

TEST(PagedFile, ThrowsOutWhatIsOld) {
  const uint64_t usual = std::exchange(policy().cache_bytes, 64 * kBlockBytes);
  const Counted counted;
  const uint64_t size = 400 * kBlockBytes;
  const Bytes bytes = counted.file(size)->bytes();
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(as_text(bytes.view), content(0, size));
    EXPECT_LE(Pager::instance().cached_bytes(), 64 * kBlockBytes);
  }
  EXPECT_GT(*counted.bytes, size);
  policy().cache_bytes = usual;
}

TEST(PagedFile, TellsWhatWentWrong) {
  const auto file = PagedFile::make(10 * kBlockBytes, [](ByteRange range) -> Result<std::string> {
                      if (range.first >= 5 * kBlockBytes) return Error("the server is gone");
                      return content(range.first, range.count);
                    }).value();
  const Bytes bytes = file->bytes();
  EXPECT_EQ(bytes.view[0], std::byte(content(0, 1)[0]));
  EXPECT_TRUE(bytes.intact());
  EXPECT_EQ(bytes.view[7 * kBlockBytes], std::byte(0));
  EXPECT_FALSE(bytes.intact());
  EXPECT_EQ(damage_of(bytes), "the server is gone");
  EXPECT_EQ(bytes.view[9 * kBlockBytes], std::byte(0));  // Nobody asks again.
}

TEST(PagedFile, LetsGoOfItsMemory) {
  // A thread that fetched the last of a file may hold it for a moment longer.
  const auto cached = [](uint64_t wanted) {
    for (int i = 0; i < 6000 && Pager::instance().cached_bytes() != wanted; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return Pager::instance().cached_bytes();
  };
  EXPECT_EQ(cached(0), 0U);  // Of the other tests.
  {
    const Bytes bytes = Counted().file(20 * kBlockBytes)->bytes();
    EXPECT_EQ(as_text(bytes.view), content(0, 20 * kBlockBytes));
    EXPECT_EQ(Pager::instance().cached_bytes(), 20 * kBlockBytes);
  }
  EXPECT_EQ(cached(0), 0U);
}

TEST(PagedFile, StartsWithWhatIsKnown) {
  const Counted counted;
  const auto file = counted.file(3 * kBlockBytes);
  file->start_with(content(0, kBlockBytes + 5));
  EXPECT_EQ(as_text(file->bytes().view.first(kBlockBytes)), content(0, kBlockBytes));
  EXPECT_EQ(*counted.bytes, 0U);
}

TEST(PagedFile, SpillsToAFile) {
  // The system cannot touch these bytes by itself.
  const Bytes bytes = Counted().file(3 * kBlockBytes)->bytes();
  SpillFile spill = SpillFile::create().value();
  ASSERT_TRUE(spill.append(bytes.view).ok());
  EXPECT_EQ(as_text(std::move(spill).map().value().view), content(0, 3 * kBlockBytes));
}

TEST(PagedFile, SamePlaceOfOneFile) {
  const auto file = Counted().file(2 * kBlockBytes);
  const auto other = Counted().file(2 * kBlockBytes);
  EXPECT_TRUE(same_remote_bytes(file->bytes(), ByteSource(file->bytes()).open().value()));
  EXPECT_FALSE(same_remote_bytes(file->bytes(), other->bytes()));
  EXPECT_FALSE(same_remote_bytes(file->bytes(), file->bytes().slice(1, 5)));
  const Bytes memory = bytes_of("local");
  EXPECT_FALSE(same_remote_bytes(memory, memory));
}

}  // namespace
}  // namespace tensordiff::remote
