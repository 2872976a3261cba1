// A remote file as bytes in memory, of which only what is touched is fetched, by several
// connections at once, ahead of a reader that goes on in order, and within one bounded cache for
// all files.

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/byte_owner.h"
#include "remote/pages.h"
#include "remote/transport.h"

namespace tensordiff::remote {

class Pager;

class PagedFile final : public ByteOwner, public std::enable_shared_from_this<PagedFile> {
 public:
  // Gives exactly the bytes of a range, from any thread, as often as they are needed.
  using Read = std::function<Result<std::string>(ByteRange range)>;

  static Result<std::shared_ptr<PagedFile>> make(uint64_t size, Read read);
  ~PagedFile() override;

  Bytes bytes() const;
  // Its first bytes, where they are known already. Before anybody else has the file.
  void start_with(const std::string& bytes);

  bool intact() const override { return !failed_.load(); }
  std::string damage() const override;
  bool remote() const override { return true; }

 private:
  friend class Pager;
  PagedFile(Pages pages, Read read) : pages_(std::move(pages)), read_(std::move(read)) {}

  Pages pages_;
  Read read_;
  std::atomic<bool> failed_ = false;
  mutable std::mutex message_mutex_;
  std::string message_;
};

}  // namespace tensordiff::remote
