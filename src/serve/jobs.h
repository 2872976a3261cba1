// Work that goes on after its request was answered. A few jobs run at once and the others wait;
// each can be cancelled.

#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/parallel.h"

namespace tensordiff::serve {

class Job {
 public:
  enum class State { running, done, failed, cancelled };

  Job(std::string own_id, std::string of_session, std::string_view of_kind)
      : id(std::move(own_id)), session(std::move(of_session)), kind(of_kind) {}

  const std::string id, session;
  const std::string_view kind;

  // Does the part of the work that may be left undone.
  void run(const std::function<void()>& work) { cancellation_.run(work); }
  bool cancelled() const { return cancellation_.cancelled(); }
  // Cancelled because a later job of the same session took its place, which may have ended already.
  bool superseded() const { return superseded_; }
  void wait();
  // Until it has ended, or the work that this thread does was called off.
  void wait_while_wanted();
  State state() const;
  bool running() const { return state() == State::running; }

 private:
  friend class Jobs;
  uint64_t number_ = 0;  // In the order in which jobs were started.
  Cancellation cancellation_;
  std::atomic<bool> superseded_ = false;
  std::function<bool(Job& job)> work_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  State state_ = State::running;
};
std::string_view name_of(Job::State state);

using JobPtr = std::shared_ptr<Job>;

class Jobs {
 public:
  // A comparison uses all cores; several at once let a small one pass beside long ones.
  static constexpr std::size_t kAtOnce = 4;
  static constexpr std::size_t kWaitingMax = 256;

  Jobs() = default;
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;
  ~Jobs() { stop(); }

  // Starts work on a session, after what is under way for it was cancelled and has ended. The work
  // says whether it went well; what it throws is a failure of this job alone. Nothing where too
  // many wait already, or no thread is to be had.
  using Work = std::function<bool(Job& job)>;
  JobPtr start(const std::string& session, std::string_view kind, Work work);
  bool full() const;
  bool stopped() const;

  JobPtr find(const std::string& id) const;
  // The one that runs or waits for a session; nothing when there is none.
  JobPtr of(const std::string& session) const;
  // The last one that was started for a session, even if it has ended.
  JobPtr latest(const std::string& session) const;

  // One that waits ends at once, one that runs as soon as it notices.
  void cancel(const JobPtr& job);

  // Cancels everything and waits for its end; nothing starts after that.
  void stop();

 private:
  void serve();
  // Under the lock: the first that waits for no other job of its session, taken from the list.
  JobPtr next();
  bool add_worker();
  static void carry_out(Job& job);
  void forget_ended();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, JobPtr> jobs_;
  std::list<JobPtr> waiting_, running_;
  std::vector<std::thread> workers_;
  uint64_t started_ = 0;
  bool stopped_ = false;
};

}  // namespace tensordiff::serve
