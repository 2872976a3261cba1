// Work that goes on after its request was answered: one thread each, which can be cancelled.

#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/parallel.h"

namespace tensordiff::serve {

class Job {
 public:
  Job(std::string own_id, std::string of_session, std::string_view of_kind)
      : id(std::move(own_id)), session(std::move(of_session)), kind(of_kind) {}

  const std::string id, session;
  const std::string_view kind;

  // Does the part of the work that may be left undone.
  void run(const std::function<void()>& work) { cancellation_.run(work); }
  void cancel() { cancellation_.cancel(); }
  bool cancelled() const { return cancellation_.cancelled(); }
  void wait();
  std::string_view state() const;  // "running", "done", "failed", "cancelled"

 private:
  friend class Jobs;
  Cancellation cancellation_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::string_view state_ = "running";
  std::thread thread_;
};

using JobPtr = std::shared_ptr<Job>;

class Jobs {
 public:
  Jobs() = default;
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;
  ~Jobs() { stop(); }

  // Starts work on a session, after what is under way for it was cancelled and has ended. The work
  // says whether it went well.
  using Work = std::function<bool(Job& job)>;
  JobPtr start(const std::string& session, std::string_view kind, Work work);

  JobPtr find(const std::string& id) const;
  // The one that runs for a session; nothing when there is none.
  JobPtr of(const std::string& session) const;

  // Cancels everything and waits for its end; nothing starts after that.
  void stop();

 private:
  void forget_ended();

  mutable std::mutex mutex_;
  std::map<std::string, JobPtr> jobs_;
  bool stopped_ = false;
};

}  // namespace tensordiff::serve
