#include "remote/pager.h"

#include <algorithm>
#include <thread>

#include "remote/policy.h"

namespace tensordiff::remote {
namespace {

constexpr uint64_t kWindowMax = 64;      // Blocks of one request: 4 MiB.
constexpr uint64_t kAheadFrom = 8;       // A window of so many is worth reading ahead of it.
constexpr uint64_t kAheadWindows = 6;    // How far ahead: enough for a few connections a reader.
constexpr std::size_t kStreamsMax = 16;  // Readers of one file that are followed at once.
// Each run may be a mapping of its own to the system, which allows 65,530 of them.
constexpr std::size_t kRunsMax = 8192;

uint64_t block_count(uint64_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes; }

}  // namespace

Pager& Pager::instance() {
  static Pager* const pager = new Pager;  // Its threads run until the program ends.
  return *pager;
}

void Pager::add(PagedFile& file) {
  const std::scoped_lock lock(mutex_);
  books_[&file];
  by_slot_[file.pages_.slot()] = &file;
  if (std::exchange(listening_, true)) return;
  std::thread([this] { listen(); }).detach();
}

void Pager::remove(PagedFile& file) {
  const std::scoped_lock lock(mutex_);
  for (const auto& [first, run] : books_[&file].runs) {
    cached_ -= run.count * kBlockBytes;
    if (run.held) ahead_ -= run.count * kBlockBytes;
  }
  books_.erase(&file);
  by_slot_.erase(file.pages_.slot());
  std::erase_if(oldest_, [&](const Place& place) { return place.file == &file; });
}

void Pager::keep(PagedFile& file, uint64_t first, const std::string& bytes) {
  const std::scoped_lock lock(mutex_);
  store(file, first, bytes, false);
}

uint64_t Pager::cached_bytes() {
  const std::scoped_lock lock(mutex_);
  return cached_;
}

void Pager::listen() {
  while (true) {
    const PageFault fault = next_fault();
    std::shared_ptr<PagedFile> file;
    {
      const std::scoped_lock lock(mutex_);
      const auto found = by_slot_.find(fault.slot);
      if (found != by_slot_.end()) file = found->second->weak_from_this().lock();
    }
    if (!file || fault.block >= file->pages_.blocks()) continue;
    const std::scoped_lock lock(mutex_);
    want(file, fault.block);
  }
}

void Pager::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    work_.wait(lock, [&] { return !jobs_.empty(); });
    --idle_;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    const uint64_t first = job.first * kBlockBytes;
    const uint64_t end = std::min((job.first + job.count) * kBlockBytes, job.file->pages_.size());
    const bool read = !job.file->failed_.load();
    const Result<std::string> bytes =
        read ? job.file->read_({first, end - first}) : Result<std::string>(std::string());
    lock.lock();
    arrived(job, bytes);
    lock.unlock();
    job = {};  // Perhaps the last who holds the file, which then takes the lock to say good-bye.
    lock.lock();
  }
}

void Pager::want(const std::shared_ptr<PagedFile>& file, uint64_t block) {
  Pages& pages = file->pages_;
  if (file->failed_.load()) return pages.set(block, 1, BlockState::ready);
  if (pages.state(block) == BlockState::asked_held) {
    Stream& stream = stream_at(books_[file.get()], block);
    open_held(*file, block);
    return read_ahead(file, block, stream);
  }
  // An old question, of a file that had this place in the table before.
  if (!pages.change(block, BlockState::asked, BlockState::coming)) return;
  Stream& stream = stream_at(books_[file.get()], block);
  const uint64_t count = 1 + claim(*file, block + 1, stream.window - 1);
  enqueue({file, block, count, false});
  stream.frontier = std::max(stream.frontier, block + count);
  read_ahead(file, block, stream);
}

void Pager::open_held(PagedFile& file, uint64_t block) {
  auto& runs = books_[&file].runs;
  const auto run = std::prev(runs.upper_bound(block));
  file.pages_.open(run->first, run->second.count);
  file.pages_.set(run->first, run->second.count, BlockState::ready);
  if (std::exchange(run->second.held, false)) ahead_ -= run->second.count * kBlockBytes;
}

// The reader that comes to a block: one that has just been before it, else a new one.
Pager::Stream& Pager::stream_at(Book& book, uint64_t block) {
  for (Stream& stream : book.streams) {
    // It comes to what was read ahead of it, or to the very next block. A look here and there, as
    // the search for a signature is, gets single blocks.
    const uint64_t reach = stream.window * (kAheadWindows + 1);
    if (block > stream.frontier || block + reach < stream.frontier) continue;
    stream.window = std::min(stream.window * 2, kWindowMax);
    stream.used = ++clock_;
    return stream;
  }
  if (book.streams.size() < kStreamsMax)
    return book.streams.emplace_back(Stream{block, 1, ++clock_});
  Stream& oldest = *std::ranges::min_element(book.streams, {}, &Stream::used);
  return oldest = {block, 1, ++clock_};
}

// How many blocks from `first` on nobody has or asked for yet; they are coming from now on.
uint64_t Pager::claim(PagedFile& file, uint64_t first, uint64_t most) {
  uint64_t count = 0;
  while (count < most && first + count < file.pages_.blocks() &&
         file.pages_.change(first + count, BlockState::absent, BlockState::coming))
    ++count;
  return count;
}

void Pager::read_ahead(const std::shared_ptr<PagedFile>& file, uint64_t block, Stream& stream) {
  if (stream.window < kAheadFrom) return;
  const uint64_t end = std::min(block + kAheadWindows * stream.window, file->pages_.blocks());
  while (stream.frontier < end) {
    // Half of the cache is for what was read, or it would be thrown out before it is used.
    if (ahead_ + stream.window * kBlockBytes > policy().cache_bytes / 2) return;
    const uint64_t count = claim(*file, stream.frontier, stream.window);
    if (count > 0) enqueue({file, stream.frontier, count, true});
    stream.frontier += std::max<uint64_t>(count, 1);
  }
}

void Pager::enqueue(Job job) {
  if (job.ahead) {
    ahead_ += job.count * kBlockBytes;
    jobs_.push_back(std::move(job));
  } else {
    const auto ahead = std::ranges::find_if(jobs_, &Job::ahead);
    jobs_.insert(ahead, std::move(job));
  }
  if (jobs_.size() > idle_ && workers_ < policy().connections) {
    ++workers_;
    std::thread([this] { work(); }).detach();
  }
  work_.notify_one();
}

void Pager::arrived(const Job& job, const Result<std::string>& bytes) {
  PagedFile& file = *job.file;
  if (job.ahead) ahead_ -= job.count * kBlockBytes;
  if (!file.failed_.load() && !bytes.ok()) fail(file, bytes.error().message());
  if (file.failed_.load()) return file.pages_.set(job.first, job.count, BlockState::ready);
  store(file, job.first, bytes.value(), job.ahead);
}

void Pager::fail(PagedFile& file, const std::string& message) {
  {
    const std::scoped_lock lock(file.message_mutex_);
    file.message_ = message;
  }
  file.failed_.store(true);
  file.pages_.give_up();
}

void Pager::store(PagedFile& file, uint64_t first, const std::string& bytes, bool held) {
  const uint64_t count = block_count(bytes.size());
  if (count == 0) return;
  if (const Result<void> written = file.pages_.write(first, bytes.data(), bytes.size());
      !written.ok()) {
    fail(file, written.error().message());
    return file.pages_.set(first, count, BlockState::ready);
  }
  books_[&file].runs[first] = {count, held};
  oldest_.push_back({&file, first});
  cached_ += count * kBlockBytes;
  if (held) {
    ahead_ += count * kBlockBytes;
    file.pages_.set(first, count, BlockState::held);
  } else {
    file.pages_.open(first, count);
    file.pages_.set(first, count, BlockState::ready);
  }
  make_room();
}

void Pager::make_room() {
  // Those that somebody has just asked for go to the back; a round over all of them is enough.
  for (std::size_t tried = oldest_.size(); tried > 1; --tried) {
    if (cached_ <= policy().cache_bytes && oldest_.size() <= kRunsMax) return;
    const Place place = oldest_.front();
    oldest_.pop_front();
    auto& runs = books_[place.file].runs;
    const auto run = runs.find(place.first);
    Pages& pages = place.file->pages_;
    // Block by block, for a reader may ask for one of them meanwhile.
    bool wanted = false;
    const BlockState from = run->second.held ? BlockState::held : BlockState::ready;
    for (uint64_t i = 0; i < run->second.count && !wanted && from == BlockState::held; ++i)
      wanted = pages.state(place.first + i) != from;
    if (wanted || place.file->failed_.load()) {
      oldest_.push_back(place);
      continue;
    }
    pages.drop(place.first, run->second.count);
    cached_ -= run->second.count * kBlockBytes;
    if (run->second.held) ahead_ -= run->second.count * kBlockBytes;
    pages.set(place.first, run->second.count, BlockState::absent);
    runs.erase(run);
  }
}

}  // namespace tensordiff::remote
