// Fetches the blocks that readers wait for, reads ahead of those that go on in order, and throws
// out the oldest when the cache is full. One for all files.

#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "remote/paged_file.h"

namespace tensordiff::remote {

class Pager {
 public:
  static Pager& instance();

  void add(PagedFile& file);
  void remove(PagedFile& file);
  // Blocks that are there already.
  void keep(PagedFile& file, uint64_t first, const std::string& bytes);

  uint64_t cached_bytes();

 private:
  // Blocks that came together, and go together.
  struct Run {
    uint64_t count = 0;
    bool held = false;  // Read ahead and not touched yet.
  };
  // A reader that goes on in order.
  struct Stream {
    uint64_t frontier = 0;  // The first block that was not asked for.
    uint64_t window = 0;    // Blocks of one request; grows while it goes on.
    uint64_t used = 0;      // When, to forget the oldest.
  };
  struct Book {
    std::map<uint64_t, Run> runs;
    std::vector<Stream> streams;
  };
  struct Job {
    std::shared_ptr<PagedFile> file;
    uint64_t first = 0, count = 0;
    bool ahead = false;
  };
  struct Place {
    PagedFile* file = nullptr;
    uint64_t first = 0;
  };

  void listen();
  void work();
  void want(const std::shared_ptr<PagedFile>& file, uint64_t block);
  void open_held(PagedFile& file, uint64_t block);
  Stream& stream_at(Book& book, uint64_t block);
  uint64_t claim(PagedFile& file, uint64_t first, uint64_t most);
  void read_ahead(const std::shared_ptr<PagedFile>& file, uint64_t block, Stream& stream);
  void enqueue(Job job);
  void arrived(const Job& job, const Result<std::string>& bytes);
  void fail(PagedFile& file, const std::string& message);
  void store(PagedFile& file, uint64_t first, const std::string& bytes, bool held);
  void make_room();

  std::mutex mutex_;
  std::condition_variable work_;
  std::map<PagedFile*, Book> books_;
  std::map<uint32_t, PagedFile*> by_slot_;
  std::deque<Job> jobs_;
  std::deque<Place> oldest_;  // All runs, in the order in which they came.
  std::size_t workers_ = 0, idle_ = 0;
  uint64_t cached_ = 0, ahead_ = 0, clock_ = 0;
  bool listening_ = false;
};

}  // namespace tensordiff::remote
