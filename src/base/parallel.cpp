#include "base/parallel.h"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <atomic>
#include <memory>
#include <mutex>

namespace tensordiff {
namespace {

std::mutex limit_mutex;
std::unique_ptr<tbb::global_control> limit;

// With one thread the library is not started at all, which takes as long as comparing two small
// files does; but work that somebody may call off is watched by it.
std::atomic<bool> one_thread = false;
std::atomic<int> cancellations = 0;

bool works_alone() { return one_thread && cancellations == 0; }

std::unique_ptr<tbb::global_control> at_most(std::size_t threads) {
  return std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                               threads);
}

// ThreadSanitizer cannot see into the threading library, which is not built with it. These tell it
// what is so: work starts after for_each_index() is called and ends before it returns.
#if defined(__SANITIZE_THREAD__)
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
void happens_after(void* point) { __tsan_acquire(point); }
void happens_before(void* point) { __tsan_release(point); }
#else
void happens_after(void*) {}
void happens_before(void*) {}
#endif

}  // namespace

void set_threads(std::size_t count) {
  const std::scoped_lock lock(limit_mutex);
  limit.reset();
  one_thread = count == 1;
  if (count > 1 || (one_thread && cancellations > 0)) limit = at_most(count);
}

std::size_t threads() {
  if (works_alone()) return 1;
  return tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
}

void for_each_index(std::size_t count, const std::function<void(std::size_t)>& work) {
  if (works_alone()) {
    for (std::size_t index = 0; index < count; ++index) work(index);
    return;
  }
  char start = 0;
  char end = 0;
  happens_before(&start);
  tbb::parallel_for(std::size_t{0}, count, [&](std::size_t index) {
    happens_after(&start);
    work(index);
    happens_before(&end);
  });
  happens_after(&end);
}

void with_threads(std::size_t count, const std::function<void()>& work) {
  tbb::task_arena arena(count == 0 ? tbb::task_arena::automatic : static_cast<int>(count));
  arena.execute(work);
}

// Loops inside a loop are bound to its context by the library, and stop with it.
struct Cancellation::Context {
  tbb::task_group_context group{tbb::task_group_context::isolated};
  // The group is cancelled by an exception too, which is no wish of anybody.
  std::atomic<bool> asked = false;
};

Cancellation::Cancellation() : context_(std::make_unique<Context>()) {
  const std::scoped_lock lock(limit_mutex);
  ++cancellations;
  if (one_thread && !limit) limit = at_most(1);
}
Cancellation::~Cancellation() { --cancellations; }

void Cancellation::run(const std::function<void()>& work) {
  tbb::parallel_for(
      0, 1, [&](int) { work(); }, context_->group);
}

void Cancellation::cancel() {
  context_->asked = true;
  context_->group.cancel_group_execution();
}

bool Cancellation::cancelled() const { return context_->asked; }

bool called_off() { return !works_alone() && tbb::is_current_task_group_canceling(); }

}  // namespace tensordiff
