#include "remote/pages.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/signal_chain.h"

namespace tensordiff::remote {
namespace {

// As the signal handler sees a file: in a table of fixed size, for it may neither allocate nor
// lock.
struct Slot {
  std::atomic<uintptr_t> begin{0};  // 0: free.
  std::atomic<uintptr_t> end{0};
  std::atomic<std::atomic<uint32_t>*> states{nullptr};
  std::atomic<bool> given_up{false};
};

constexpr uint32_t kFilesMax = 65536;
std::array<Slot, kFilesMax> slots;
std::atomic<uint32_t> slots_used = 0;  // None above this one was ever taken.
std::mutex slots_mutex;
int fault_pipe[2] = {-1, -1};
int memory = -1;           // Holds the cached blocks of all files.
uint64_t memory_used = 0;  // How much of its addresses was given to files, under slots_mutex.
struct sigaction other_handler;

int* word(std::atomic<uint32_t>& state) { return reinterpret_cast<int*>(&state); }

void wake(std::atomic<uint32_t>& state) {
  syscall(SYS_futex, word(state), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

// Only async-signal-safe calls from here on to on_fault().
void ask(uint32_t slot, uint64_t block) {
  const PageFault fault{slot, block};
  while (write(fault_pipe[1], &fault, sizeof(fault)) < 0 && errno == EINTR) {
  }
}

void wait_for(uint32_t number, uint64_t block) {
  Slot& slot = slots[number];
  std::atomic<uint32_t>& state = slot.states.load()[block];
  while (!slot.given_up.load()) {
    uint32_t now = state.load();
    if (now == uint32_t(BlockState::ready)) return;
    const bool absent = now == uint32_t(BlockState::absent);
    if (absent || now == uint32_t(BlockState::held)) {
      const auto next = uint32_t(absent ? BlockState::asked : BlockState::asked_held);
      if (!state.compare_exchange_strong(now, next)) continue;
      ask(number, block);
      now = next;
    }
    syscall(SYS_futex, word(state), FUTEX_WAIT_PRIVATE, now, nullptr, nullptr, 0);
  }
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const int fault = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const uint32_t used = slots_used.load();
  for (uint32_t number = 0; number < used; ++number) {
    const uintptr_t begin = slots[number].begin.load();
    if (begin == 0 || address < begin || address >= slots[number].end.load()) continue;
    wait_for(number, (address - begin) / kBlockBytes);
    errno = fault;
    return;
  }
  errno = fault;
  pass_on(other_handler, signal, info, context);
}

Result<void> start() {
  if (memory >= 0) return {};
  if (pipe2(fault_pipe, O_CLOEXEC) != 0)
    return Error("cannot make a pipe: {}", std::strerror(errno));
  memory = memfd_create("tensordiff-remote", MFD_CLOEXEC);
  if (memory < 0) return Error("no memory for remote files: {}", std::strerror(errno));
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, nullptr, &other_handler);  // Before ours can be called and ask for it.
  sigaction(SIGSEGV, &action, nullptr);
  return {};
}

Result<uint32_t> take_slot() {
  for (uint32_t number = 0; number < kFilesMax; ++number) {
    if (slots[number].begin.load() != 0) continue;
    if (number >= slots_used.load()) slots_used.store(number + 1);
    return number;
  }
  return Error("more than {} remote files at once", kFilesMax);
}

}  // namespace

Result<Pages> Pages::make(uint64_t size) {
  const std::scoped_lock lock(slots_mutex);
  TRY(start());
  Pages pages;
  pages.size_ = size;
  pages.slot_ = TRY(take_slot());
  pages.offset_ = memory_used;
  const uint64_t room = pages.blocks() * kBlockBytes;
  if (ftruncate(memory, static_cast<off_t>(memory_used + room)) != 0)
    return Error("no room for a file of {} bytes: {}", size, std::strerror(errno));
  void* begin = mmap(nullptr, room, PROT_NONE, MAP_SHARED | MAP_NORESERVE, memory,
                     static_cast<off_t>(memory_used));
  void* states = mmap(nullptr, pages.blocks() * sizeof(uint32_t), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin != MAP_FAILED) pages.begin_ = static_cast<std::byte*>(begin);
  if (states != MAP_FAILED) pages.states_ = static_cast<std::atomic<uint32_t>*>(states);
  if (!pages.begin_ || !pages.states_)
    return Error("no address space for a file of {} bytes: {}", size, std::strerror(errno));
  memory_used += room;
  Slot& slot = slots[pages.slot_];
  slot.states.store(pages.states_);
  slot.given_up.store(false);
  slot.end.store(reinterpret_cast<uintptr_t>(begin) + room);
  slot.begin.store(reinterpret_cast<uintptr_t>(begin));
  return pages;
}

Pages::Pages(Pages&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)),
      size_(other.size_),
      offset_(other.offset_),
      states_(std::exchange(other.states_, nullptr)),
      slot_(other.slot_) {}

Pages::~Pages() {
  const uint64_t room = blocks() * kBlockBytes;
  if (begin_ && states_) {
    slots[slot_].begin.store(0);
    fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset_),
              static_cast<off_t>(room));
  }
  if (begin_) munmap(begin_, room);
  if (states_) munmap(static_cast<void*>(states_), blocks() * sizeof(uint32_t));
}

bool Pages::change(uint64_t block, BlockState from, BlockState to) {
  auto expected = uint32_t(from);
  return states_[block].compare_exchange_strong(expected, uint32_t(to));
}

void Pages::set(uint64_t first, uint64_t count, BlockState state) {
  for (uint64_t block = first; block < first + count; ++block) {
    states_[block].store(uint32_t(state));
    wake(states_[block]);
  }
}

Result<void> Pages::write(uint64_t first, const void* data, std::size_t bytes) {
  const char* from = static_cast<const char*>(data);
  uint64_t at = offset_ + first * kBlockBytes;
  while (bytes > 0) {
    const ssize_t written = pwrite(memory, from, bytes, static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Error("cannot keep remote bytes: {}", std::strerror(errno));
    from += written;
    at += static_cast<uint64_t>(written);
    bytes -= static_cast<std::size_t>(written);
  }
  return {};
}

void Pages::open(uint64_t first, uint64_t count) {
  mprotect(begin_ + first * kBlockBytes, count * kBlockBytes, PROT_READ);
}

void Pages::drop(uint64_t first, uint64_t count) {
  mprotect(begin_ + first * kBlockBytes, count * kBlockBytes, PROT_NONE);
  fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(offset_ + first * kBlockBytes),
            static_cast<off_t>(count * kBlockBytes));
}

void Pages::give_up() {
  mmap(begin_, blocks() * kBlockBytes, PROT_READ,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  slots[slot_].given_up.store(true);
}

PageFault next_fault() {
  PageFault fault;
  while (read(fault_pipe[0], &fault, sizeof(fault)) < 0 && errno == EINTR) {
  }
  return fault;
}

}  // namespace tensordiff::remote
