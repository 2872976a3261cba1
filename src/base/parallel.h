// Runs independent work on all cores. The only file that knows the threading library is its .cpp.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace tensordiff {

// How many threads for_each_index() uses in the whole process; 0: one for each core. The program
// sets it once; a library leaves it to its host and uses with_threads().
void set_threads(std::size_t count);
std::size_t threads();

// Calls work(i) for each i below count, in any order and on any thread; returns when all are done.
// Calls may nest.
void for_each_index(std::size_t count, const std::function<void(std::size_t)>& work);

// Does the work with at most this many threads of its own, the caller's among them; 0: one for each
// core. Several threads may do so at once.
void with_threads(std::size_t count, const std::function<void()>& work);

// Work that somebody may call off while it runs: for_each_index() inside of run(), however deep,
// then leaves out what it has not begun. Results that are made after that are not to be used.
class Cancellation {
 public:
  Cancellation();
  ~Cancellation();
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  void run(const std::function<void()>& work);
  void cancel();  // From any thread, also before run().
  bool cancelled() const;

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// Whether the work that this thread does was called off.
bool called_off();

}  // namespace tensordiff
