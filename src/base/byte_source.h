// Where bytes come from: a mapped file, memory, or something made on demand.
//
// `Bytes` are bytes that are there now, kept alive by an owner. `ByteSource` are bytes that can be
// had: open() gives them, at once for a mapped file, after work for a compressed member. Opened
// bytes are shared while anybody holds them and let go after, so that a thousand compressed members
// never stay in memory together.
//
// A file that another process cuts short while it is mapped would kill us with SIGBUS. Mappings are
// therefore guarded: the lost pages read as zeros from then on and intact() turns false, and
// whoever used the bytes says so instead of trusting them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tensordiff {

using ByteView = std::span<const std::byte>;

inline std::string_view as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline ByteView as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

struct Bytes {
  ByteView view;
  std::shared_ptr<const void> owner;

  uint64_t size() const { return view.size(); }
  // False once a mapped file was found shorter than it was when it was opened.
  bool intact() const;
  // The caller has checked that the range fits.
  Bytes slice(uint64_t offset, uint64_t count) const {
    return {view.subspan(offset, count), owner};
  }
};

// Takes ownership of memory.
Bytes bytes_of(std::string memory);

class ByteSource {
 public:
  using Make = std::function<Result<Bytes>()>;

  ByteSource() = default;
  explicit ByteSource(Bytes bytes);
  // `make` must give exactly `size` bytes; it is called when they are first needed, from any
  // thread.
  ByteSource(uint64_t size, Make make);

  uint64_t size() const;
  bool ready() const;  // Whether open() is free.
  Result<Bytes> open() const;

  // A part of this source. The caller has checked that the range fits.
  ByteSource slice(uint64_t offset, uint64_t count) const;

  // Same place in the same bytes: two sources that need no comparing.
  bool same_as(const ByteSource& other) const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  uint64_t offset_ = 0;
  uint64_t size_ = 0;
};

// Maps a regular file for reading. Anything else (a pipe, a device) is an error.
Result<Bytes> map_file(const std::string& path);

// The same for a file that is already open, which is closed.
Result<Bytes> map_and_close(int file);

// An unlinked temporary file, for what is too large for memory: filled once, then mapped. Nothing
// is ever written under a name found in an input.
class SpillFile {
 public:
  static Result<SpillFile> create();
  SpillFile(SpillFile&& other) noexcept;
  SpillFile& operator=(SpillFile&&) = delete;
  ~SpillFile();

  Result<void> append(ByteView bytes);
  uint64_t size() const { return size_; }
  Result<Bytes> map() &&;

 private:
  explicit SpillFile(int file) : file_(file) {}
  int file_;
  uint64_t size_ = 0;
};

}  // namespace tensordiff
