// Memory that is filled when it is touched.
//
// Readers see a remote file as they see a mapped one: as bytes in memory. Its pages cannot be read
// at first. Touching one raises SIGSEGV; the handler asks for its block, sleeps until it is there,
// and the touch is repeated. So no format needs to know that a file is remote, and a block that was
// thrown out of the cache simply comes again.
//
// A block is in one of these states. Only the handler goes from absent to asked and from held to
// asked_held; the pager does the rest.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace tensordiff::remote {

// What is fetched at least. Headers of most files fit into one or two.
inline constexpr uint64_t kBlockBytes = 1 << 16;

enum class BlockState : uint32_t {
  absent,      // Not here.
  asked,       // Somebody waits for it, and the pager was told.
  coming,      // The pager has asked for it.
  held,        // Here, read ahead, but not yet readable: the first touch tells that it is needed.
  asked_held,  // The same, and touched.
  ready,       // Readable.
};

// The pages of one file.
class Pages {
 public:
  static Result<Pages> make(uint64_t size);
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&&) = delete;
  ~Pages();

  const std::byte* data() const { return begin_; }
  uint64_t size() const { return size_; }
  uint64_t blocks() const { return (size_ + kBlockBytes - 1) / kBlockBytes; }
  uint32_t slot() const { return slot_; }

  BlockState state(uint64_t block) const { return BlockState(states_[block].load()); }
  bool change(uint64_t block, BlockState from, BlockState to);  // False: it was not `from`.
  void set(uint64_t first, uint64_t count, BlockState state);   // Wakes who waits for them.

  Result<void> write(uint64_t first, const void* data, std::size_t bytes);  // Not yet readable.
  void open(uint64_t first, uint64_t count);                                // Readable.
  void drop(uint64_t first, uint64_t count);  // Neither readable nor in memory.
  // Zeros everywhere from now on, for a file that could not be read to its end.
  void give_up();

 private:
  Pages() = default;

  std::byte* begin_ = nullptr;
  uint64_t size_ = 0;
  uint64_t offset_ = 0;  // In the memory that all files share.
  std::atomic<uint32_t>* states_ = nullptr;
  uint32_t slot_ = 0;
};

// A block that somebody waits for.
struct PageFault {
  uint32_t slot = 0;
  uint64_t block = 0;
};

// The next one; blocks until there is one. Called by one thread.
PageFault next_fault();

}  // namespace tensordiff::remote
