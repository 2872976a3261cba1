// A pool of threads that wait for loops. Whoever starts a loop works on it too, and until the last
// of its items is done it helps with the loops inside of them: so loops may nest, and one never
// waits for a thread that is busy elsewhere. No thread is started before the first loop.

#include "base/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tensordiff {

struct Cancellation::Context {
  std::atomic<bool> asked = false;
};

namespace {

// The processors that this process may use.
std::size_t cores() {
  static const std::size_t count = [] {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    // With more processors than the set has room for, this fails.
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 0)
      return static_cast<std::size_t>(CPU_COUNT(&allowed));
    return std::max<std::size_t>(1, std::thread::hardware_concurrency());
  }();
  return count;
}

// Who may work on the loops of a process, or of one with_threads().
struct Crew {
  std::size_t size() const { return most == 0 ? cores() : most.load(); }

  std::atomic<std::size_t> most = 0;  // Threads; 0: one for each core.
  std::size_t helpers = 0;            // Threads of the pool that are at work. The pool guards it.
};

Crew everyone;

struct Loop;

// What the work of this thread belongs to.
struct Standing {
  Crew* crew = &everyone;
  const std::atomic<bool>* called_off = nullptr;
  Loop* loop = nullptr;  // The innermost.
};
thread_local Standing standing;

class At {
 public:
  explicit At(const Standing& there) : before_(standing) { standing = there; }
  ~At() { standing = before_; }
  At(const At&) = delete;
  At& operator=(const At&) = delete;

 private:
  Standing before_;
};

// One for_each_index(), on the stack of whoever called it.
struct Loop {
  // Threads take runs of items, long ones first, so that many small items cost little and the last
  // ones are shared out evenly. A thread is to come back about this many times.
  static constexpr std::size_t kTurns = 8;

  bool is_over() const {
    return stopped || next >= count || (around.called_off && *around.called_off);
  }

  bool is_inside(const Loop& other) const {
    const Loop* at = this;
    while (at && at != &other) at = at->around.loop;
    return at;
  }

  void work_on() {
    const At here({around.crew, around.called_off, this});
    const std::size_t shares = kTurns * around.crew->size();
    std::size_t first = next;
    while (!is_over()) {
      const std::size_t end = first + std::max<std::size_t>(1, (count - first) / shares);
      if (!next.compare_exchange_weak(first, end)) continue;
      for (; first < end && !stopped && !called_off(); ++first) work(first);
      first = next;
    }
  }

  const std::function<void(std::size_t)>& work;
  const std::size_t count;
  const Standing around;  // Where it was started.
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> stopped = false;

  // What the pool guards.
  std::size_t helpers = 0;
  std::condition_variable changed{};  // The last helper has left, or there is a loop inside.
  std::exception_ptr failure = nullptr;
};

class Pool {
 public:
  // For ever: a thread of it may still wait when the process ends.
  static Pool& the() {
    static Pool& pool = *new Pool;
    return pool;
  }

  void run(Loop& loop) {
    {
      const std::scoped_lock lock(mutex_);
      loops_.push_back(&loop);
      call_helpers(loop);
    }
    work_on(loop);
    std::unique_lock lock(mutex_);
    while (loop.helpers > 0) {
      if (Loop* inside = next_loop(&loop))
        help(*inside, lock);
      else
        loop.changed.wait(lock);
    }
    std::erase(loops_, &loop);
    if (loop.failure) std::rethrow_exception(loop.failure);
  }

 private:
  // What an item throws ends the loop, and is thrown where it was started.
  void work_on(Loop& loop) {
    try {
      loop.work_on();
    } catch (...) {
      loop.stopped = true;
      const std::scoped_lock lock(mutex_);
      if (!loop.failure) loop.failure = std::current_exception();
    }
  }

  // The newest loop that wants a helper; with `around`, of those inside it.
  Loop* next_loop(const Loop* around) const {
    for (auto at = loops_.rbegin(); at != loops_.rend(); ++at) {
      Loop& loop = **at;
      const bool free = loop.around.crew->helpers + 1 < loop.around.crew->size();
      // Who waits for a loop is one of its crew already.
      const bool may = around ? &loop != around && loop.is_inside(*around) : free;
      if (may && !loop.is_over()) return &loop;
    }
    return nullptr;
  }

  void help(Loop& loop, std::unique_lock<std::mutex>& lock) {
    ++loop.helpers;
    lock.unlock();
    work_on(loop);
    lock.lock();
    // The loop ends with its last helper, so nothing of it is touched later.
    if (--loop.helpers == 0) loop.changed.notify_one();
  }

  void call_helpers(const Loop& loop) {
    const Crew& crew = *loop.around.crew;
    const std::size_t free = crew.size() - std::min(crew.size(), crew.helpers + 1);
    std::size_t wanted = std::min(free, loop.count - 1);
    for (; wanted > 0 && called_ < idle_; --wanted) {
      ++called_;
      there_is_work_.notify_one();
    }
    const std::size_t most = std::max(cores(), everyone.size()) - 1;
    for (; wanted > 0 && threads_ < most && start_thread(); --wanted) ++threads_;
    for (Loop* each = loop.around.loop; each; each = each->around.loop) each->changed.notify_one();
  }

  bool start_thread() {
    try {
      std::thread([this] { serve(); }).detach();
    } catch (const std::exception&) {
      return false;  // Those that there are do it.
    }
    return true;
  }

  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      Loop* loop = next_loop(nullptr);
      if (!loop) {
        ++idle_;
        there_is_work_.wait(lock, [&] { return called_ > 0; });
        --called_;
        --idle_;
        continue;
      }
      Crew& crew = *loop->around.crew;
      ++crew.helpers;
      help(*loop, lock);
      --crew.helpers;
    }
  }

  std::mutex mutex_;
  std::condition_variable there_is_work_;
  std::vector<Loop*> loops_;
  std::size_t threads_ = 0, idle_ = 0;
  std::size_t called_ = 0;  // Of the idle ones, those that are to wake up.
};

}  // namespace

void set_threads(std::size_t count) { everyone.most = count; }

std::size_t threads() { return everyone.size(); }

void for_each_index(std::size_t count, const std::function<void(std::size_t)>& work) {
  if (count < 2 || standing.crew->size() == 1) {
    for (std::size_t index = 0; index < count && !called_off(); ++index) work(index);
    return;
  }
  Loop loop{work, count, standing};
  Pool::the().run(loop);
}

void with_threads(std::size_t count, const std::function<void()>& work) {
  Crew crew;
  crew.most = count;
  const At here({&crew, standing.called_off, standing.loop});
  work();
}

Cancellation::Cancellation() : context_(std::make_unique<Context>()) {}
Cancellation::~Cancellation() = default;

void Cancellation::run(const std::function<void()>& work) {
  if (cancelled()) return;
  const At here({standing.crew, &context_->asked, standing.loop});
  work();
}

void Cancellation::cancel() { context_->asked = true; }

bool Cancellation::cancelled() const { return context_->asked; }

bool called_off() { return standing.called_off && *standing.called_off; }

}  // namespace tensordiff
