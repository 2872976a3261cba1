#include "base/byte_source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <utility>
#include <vector>

#include "base/byte_owner.h"
#include "base/signal_chain.h"
#include "base/text.h"

namespace tensordiff {
namespace {

// A mapped file as the SIGBUS handler sees it. The table is fixed, because a signal handler may
// neither allocate nor lock.
struct GuardedRange {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
  std::atomic<bool> cut{false};
};

// Files beyond this many at once are mapped without a guard of their own.
constexpr std::size_t kGuardedMax = 65536;
std::array<GuardedRange, kGuardedMax> guarded;
std::mutex guarded_mutex;
std::size_t guarded_next = 0;
const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));

struct sigaction other_handler;  // The one that was there before ours.

// Puts zeros where the file no longer reaches, and notes it. Only async-signal-safe calls.
void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int fault = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (GuardedRange& range : guarded) {
    const uintptr_t begin = range.begin.load();
    const uintptr_t end = range.end.load();
    if (begin == 0 || address < begin || address >= end) continue;
    const uintptr_t page = address / page_bytes * page_bytes;
    void* zeros = mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (zeros == MAP_FAILED) break;
    range.cut.store(true);
    errno = fault;
    return;
  }
  pass_on(other_handler, signal, info, context);
}

void install_bus_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGBUS, nullptr, &other_handler);  // Before ours can be called and ask for it.
    sigaction(SIGBUS, &action, nullptr);
  });
}

GuardedRange* guard(uintptr_t begin, uintptr_t end) {
  install_bus_handler();
  const std::scoped_lock lock(guarded_mutex);
  for (std::size_t tried = 0; tried < kGuardedMax; ++tried) {
    GuardedRange& range = guarded[guarded_next++ % kGuardedMax];
    if (range.begin.load() != 0) continue;
    range.cut.store(false);
    range.end.store(end);
    range.begin.store(begin);
    return &range;
  }
  return nullptr;
}

struct MemoryOwner : ByteOwner {
  explicit MemoryOwner(std::string text) : memory(std::move(text)) {}
  std::string memory;
};

std::atomic<std::size_t> mappings = 0;

// How many files may stay mapped. Linux allows a process 65,530 mappings unless told otherwise;
// some are left for libraries, stacks, large allocations and files that are in use for a moment.
std::size_t mappings_kept_max() {
  constexpr std::size_t kUsual = 65530, kLeft = 8192;
  static const std::size_t most = [] {
    std::size_t allowed = 0;
    std::ifstream("/proc/sys/vm/max_map_count") >> allowed;
    allowed = allowed > 0 ? allowed : kUsual;
    return allowed > kLeft ? allowed - kLeft : 0;
  }();
  return most;
}

struct MappingOwner : ByteOwner {
  MappingOwner(void* begin, uint64_t count, bool named_file)
      : address(begin),
        size(count),
        named(named_file),
        range(
            guard(reinterpret_cast<uintptr_t>(begin), reinterpret_cast<uintptr_t>(begin) + count)) {
    ++mappings;
  }
  ~MappingOwner() override {
    if (range) range->begin.store(0);
    munmap(address, size);
    --mappings;
  }
  bool intact() const override { return !range || !range->cut.load(); }

  void* address;
  uint64_t size;
  bool named;  // Not a temporary file, whose room on the disk it would keep.
  GuardedRange* range;
};

const ByteOwner* owner_of(const Bytes& bytes) {
  return static_cast<const ByteOwner*>(bytes.owner.get());
}

Result<Bytes> map_descriptor(int file, uint64_t size, bool named) {
  if (size == 0) return bytes_of("");
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (address == MAP_FAILED) return Error("cannot map it: {}", std::strerror(errno));
  auto owner = std::make_shared<MappingOwner>(address, size, named);
  return owned_bytes({static_cast<const std::byte*>(address), size}, std::move(owner));
}

// What was unpacked, and stays: so much of it in memory and so much in temporary files. A small
// archive is then unpacked once, though several stages look into it; a large one keeps its bounds.
constexpr uint64_t kMemoryKeptMax = 128U << 20, kFilesKeptMax = 512U << 20;
std::atomic<uint64_t> memory_kept = 0, files_kept = 0;

// A share of what may stay, given back with it.
class Share {
 public:
  Share() = default;
  Share(std::atomic<uint64_t>& kept, uint64_t bytes) : kept_(&kept), bytes_(bytes) {}
  Share(Share&& other) noexcept
      : kept_(std::exchange(other.kept_, nullptr)), bytes_(other.bytes_) {}
  Share& operator=(Share&& other) noexcept {
    std::swap(kept_, other.kept_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Share() {
    if (kept_) *kept_ -= bytes_;
  }

 private:
  std::atomic<uint64_t>* kept_ = nullptr;
  uint64_t bytes_ = 0;
};

bool take_share(std::atomic<uint64_t>& kept, uint64_t most, uint64_t bytes, Share& share) {
  uint64_t before = kept;
  do {
    if (bytes > most || before > most - bytes) return false;
  } while (!kept.compare_exchange_weak(before, before + bytes));
  share = Share(kept, bytes);
  return true;
}

// Whether bytes may be kept for whoever asks next. A mapped file takes no memory, and opening it
// again takes longer than anything else that is done with a small one.
bool may_stay(const Bytes& bytes, Share& share) {
  if (dynamic_cast<const MemoryOwner*>(owner_of(bytes)))
    return take_share(memory_kept, kMemoryKeptMax, bytes.size(), share);
  const auto* mapping = dynamic_cast<const MappingOwner*>(owner_of(bytes));
  if (!mapping || mappings >= mappings_kept_max()) return false;
  return mapping->named || take_share(files_kept, kFilesKeptMax, bytes.size(), share);
}

constexpr std::size_t kCopyBytes = 1 << 16;

constexpr int kFileFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

}  // namespace

bool Bytes::intact() const { return !owner || owner_of(*this)->intact(); }

// Every owner is stored as the ByteOwner it is, so that owner_of() may take it for one.
Bytes owned_bytes(ByteView view, std::shared_ptr<const ByteOwner> owner) {
  const ByteOwner* address = owner.get();
  return {view, {std::move(owner), address}};
}

std::string damage_of(const Bytes& bytes) {
  return bytes.owner ? owner_of(bytes)->damage() : ByteOwner().damage();
}

bool is_remote(const Bytes& bytes) { return bytes.owner && owner_of(bytes)->remote(); }

bool same_remote_bytes(const Bytes& a, const Bytes& b) {
  return a.view.data() == b.view.data() && a.size() == b.size() && is_remote(a) && is_remote(b);
}

Bytes bytes_of(std::string memory) {
  auto owner = std::make_shared<MemoryOwner>(std::move(memory));
  const ByteView view = as_bytes(owner->memory);
  return owned_bytes(view, std::move(owner));
}

struct ByteSource::Shared {
  uint64_t size = 0;
  Bytes bytes;  // Set when they are there from the start,
  Make make;    // and this when they are not.
  std::mutex mutex;
  std::weak_ptr<const Bytes> made;
  std::shared_ptr<const Bytes> kept;  // What stays,
  Share share;                        // and its share of what may.
};

ByteSource::ByteSource(Bytes bytes) : shared_(std::make_shared<Shared>()), size_(bytes.size()) {
  shared_->size = bytes.size();
  shared_->bytes = std::move(bytes);
}

ByteSource::ByteSource(uint64_t size, Make make)
    : shared_(std::make_shared<Shared>()), size_(size) {
  shared_->size = size;
  shared_->make = std::move(make);
}

uint64_t ByteSource::size() const { return size_; }
bool ByteSource::ready() const { return !shared_ || !shared_->make; }

Result<Bytes> ByteSource::open() const {
  if (!shared_) return Bytes{};
  if (!shared_->make) return shared_->bytes.slice(offset_, size_);

  const std::scoped_lock lock(shared_->mutex);
  std::shared_ptr<const Bytes> made = shared_->made.lock();
  if (!made) {
    made = std::make_shared<const Bytes>(TRY(shared_->make()));
    if (made->size() != shared_->size)
      return Error("{} bytes expected, {} found", shared_->size, made->size());
    shared_->made = made;
    if (may_stay(*made, shared_->share)) shared_->kept = made;
  }
  // The Bytes handed out keep `made` alive, and through it the memory, under the real owner.
  struct Lease : ByteOwner {
    explicit Lease(std::shared_ptr<const Bytes> held) : bytes(std::move(held)) {}
    bool intact() const override { return bytes->intact(); }
    std::string damage() const override { return damage_of(*bytes); }
    bool remote() const override { return is_remote(*bytes); }
    std::shared_ptr<const Bytes> bytes;
  };
  return owned_bytes(made->view.subspan(offset_, size_), std::make_shared<Lease>(made));
}

ByteSource ByteSource::slice(uint64_t offset, uint64_t count) const {
  ByteSource part = *this;
  part.offset_ += offset;
  part.size_ = count;
  return part;
}

bool ByteSource::same_as(const ByteSource& other) const {
  return shared_ == other.shared_ && offset_ == other.offset_ && size_ == other.size_;
}

Result<Bytes> map_and_close(int file) {
  struct stat info = {};
  Result<Bytes> mapped = Error("not a regular file");
  if (fstat(file, &info) == 0 && S_ISREG(info.st_mode))
    mapped = map_descriptor(file, static_cast<uint64_t>(info.st_size), true);
  close(file);
  return mapped;
}

Result<Bytes> map_file(const std::string& path) {
  const int file = open(path.c_str(), kFileFlags);
  if (file < 0) return Error("cannot open it: {}", std::strerror(errno));
  return map_and_close(file);
}

Result<SpillFile> SpillFile::create() {
  const char* folder = std::getenv("TMPDIR");
  const std::string where = folder && *folder ? folder : "/tmp";
  std::string path = where;
  int file = open(path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) {
    // Not every file system has O_TMPFILE: make a file of a random name and unlink it at once.
    path += "/tensordiff-XXXXXX";
    file = mkostemp(path.data(), O_CLOEXEC);
    if (file >= 0) unlink(path.c_str());
  }
  if (file < 0)
    return Error("cannot make a temporary file in '{}' (TMPDIR names another folder): {}",
                 printable(where), std::strerror(errno));
  return SpillFile(file);
}

SpillFile::SpillFile(SpillFile&& other) noexcept : file_(other.file_), size_(other.size_) {
  other.file_ = -1;
}

SpillFile::~SpillFile() {
  if (file_ >= 0) close(file_);
}

Result<void> SpillFile::append(ByteView bytes) {
  std::vector<std::byte> copy;
  while (!bytes.empty()) {
    ByteView piece = bytes;
    if (!copy.empty()) {
      piece = bytes.first(std::min(bytes.size(), copy.size()));
      std::ranges::copy(piece, copy.begin());
      piece = ByteView(copy).first(piece.size());
    }
    const ssize_t written = write(file_, piece.data(), piece.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EFAULT && copy.empty()) {
      // Remote bytes arrive when this process touches them, but not when the system does.
      copy.resize(kCopyBytes);
      continue;
    }
    if (written < 0) return Error("cannot write a temporary file: {}", std::strerror(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    size_ += static_cast<uint64_t>(written);
  }
  return {};
}

Result<Bytes> SpillFile::map() && { return map_descriptor(file_, size_, false); }

}  // namespace tensordiff
