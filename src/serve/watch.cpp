#include "serve/watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace tensordiff::serve {

struct CloseWatch::State {
  std::mutex mutex;
  struct Watched {
    uint64_t number = 0;  // Socket numbers are used again; these are not.
    Cancellation* work = nullptr;
  };
  std::map<int, Watched> watched;
  uint64_t number = 0;
  int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  bool stopping = false;
  std::thread thread;

  void signal() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake, &one, sizeof one);
  }

  void run() {
    for (;;) {
      try {
        if (!look()) return;
      } catch (const std::bad_alloc&) {
        // There may be memory in a moment.
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
  }

  // Waits for news of any socket. Whether there may be more.
  bool look() {
    std::vector<pollfd> polled = {{wake, POLLIN, 0}};
    std::vector<uint64_t> numbers = {0};
    {
      const std::lock_guard lock(mutex);
      for (const auto& [socket, each] : watched) {
        polled.push_back({socket, POLLRDHUP, 0});
        numbers.push_back(each.number);
      }
    }
    poll(polled.data(), polled.size(), -1);
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t drained = read(wake, &count, sizeof count);
    const std::lock_guard lock(mutex);
    if (stopping) return false;
    for (std::size_t i = 1; i < polled.size(); ++i)
      if (polled[i].revents != 0) closed(polled[i].fd, numbers[i]);
    return true;
  }

  void closed(int socket, uint64_t which) {
    const auto found = watched.find(socket);
    if (found == watched.end() || found->second.number != which) return;
    found->second.work->cancel();
    watched.erase(found);  // Said once; else poll() would say it for ever.
  }
};

CloseWatch::CloseWatch() : state_(std::make_unique<State>()) {
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

CloseWatch::~CloseWatch() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->signal();
  state_->thread.join();
  close(state_->wake);
}

CloseWatch::Guard::Guard(CloseWatch& watch, int socket, Cancellation& work)
    : watch_(watch), socket_(socket) {
  {
    const std::lock_guard lock(watch_.state_->mutex);
    watch_.state_->watched[socket] = {++watch_.state_->number, &work};
  }
  watch_.state_->signal();
}

CloseWatch::Guard::~Guard() {
  {
    const std::lock_guard lock(watch_.state_->mutex);
    watch_.state_->watched.erase(socket_);
  }
  watch_.state_->signal();  // While poll() holds on to a socket, closing it does not end it.
}

}  // namespace tensordiff::serve
