#include "serve/jobs.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "serve/guard.h"

namespace tensordiff::serve {
namespace {

constexpr std::size_t kEndedKept = 64;  // So that whoever started one can still ask about it.
constexpr std::chrono::milliseconds kLookAgain{50};

}  // namespace

std::string_view name_of(Job::State state) {
  constexpr std::string_view kNames[] = {"running", "done", "failed", "cancelled"};
  return kNames[static_cast<std::size_t>(state)];
}

void Job::wait() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return state_ != State::running; });
}

void Job::wait_while_wanted() {
  std::unique_lock lock(mutex_);
  while (state_ == State::running && !called_off()) ended_.wait_for(lock, kLookAgain);
}

Job::State Job::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

JobPtr Jobs::start(const std::string& session, std::string_view kind, Work work) {
  const auto job = std::make_shared<Job>(random_id(), session, kind);
  job->work_ = std::move(work);
  std::list<JobPtr> place = {job}, before;
  {
    const std::lock_guard lock(mutex_);
    forget_ended();
    for (const auto& [id, other] : jobs_)
      if (other->session == session && other->running()) before.push_back(other);
    if (stopped_) {
      job->cancellation_.cancel();
      job->state_ = Job::State::cancelled;
      return job;
    }
    if (waiting_.size() >= kWaitingMax || !add_worker()) return nullptr;
    // Before the new one can run and end.
    for (const JobPtr& other : before) other->superseded_ = true;
    job->number_ = ++started_;
    jobs_.emplace(job->id, job);
    waiting_.splice(waiting_.end(), place);
    changed_.notify_all();
  }
  for (const JobPtr& other : before) cancel(other);
  return job;
}

// Where all that there are have work. False: there is none, and none can be made.
bool Jobs::add_worker() {
  const bool idle = running_.size() + waiting_.size() < workers_.size();
  if (idle || workers_.size() >= kAtOnce) return true;
  workers_.reserve(kAtOnce);
  try {
    workers_.emplace_back([this] { serve(); });
  } catch (const std::exception&) {
    return !workers_.empty();
  }
  return true;
}

JobPtr Jobs::next() {
  const auto free = [this](const JobPtr& job) {
    return std::ranges::none_of(
        running_, [&](const JobPtr& other) { return other->session == job->session; });
  };
  const auto found = std::ranges::find_if(waiting_, free);
  if (found == waiting_.end()) return nullptr;
  running_.splice(running_.end(), waiting_, found);
  return running_.back();
}

void Jobs::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const JobPtr job = next();
    if (!job) {
      if (stopped_ && waiting_.empty()) return;
      changed_.wait(lock);
      continue;
    }
    lock.unlock();
    carry_out(*job);
    lock.lock();
    running_.remove(job);
    changed_.notify_all();
  }
}

// Whatever happens in it, the server goes on.
void Jobs::carry_out(Job& job) {
  bool well = false;
  try {
    well = job.work_(job);
  } catch (const std::exception&) {
    // It failed, which its state says.
  }
  job.work_ = nullptr;
  const std::lock_guard done(job.mutex_);
  job.state_ = job.cancelled() ? Job::State::cancelled
               : well          ? Job::State::done
                               : Job::State::failed;
  job.ended_.notify_all();
}

void Jobs::cancel(const JobPtr& job) {
  job->cancellation_.cancel();
  std::list<JobPtr> taken;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(waiting_, job);
    if (found != waiting_.end()) taken.splice(taken.end(), waiting_, found);
  }
  for (const JobPtr& each : taken) carry_out(*each);
}

bool Jobs::full() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size() >= kWaitingMax;
}

bool Jobs::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

JobPtr Jobs::find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : found->second;
}

JobPtr Jobs::of(const std::string& session) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, job] : jobs_)
    if (job->session == session && job->running() && !job->cancelled()) return job;
  return nullptr;
}

JobPtr Jobs::latest(const std::string& session) const {
  const std::lock_guard lock(mutex_);
  JobPtr latest;
  for (const auto& [id, job] : jobs_)
    if (job->session == session && (!latest || job->number_ > latest->number_)) latest = job;
  return latest;
}

// The oldest first.
void Jobs::forget_ended() {
  std::vector<JobPtr> ended;
  for (const auto& [id, job] : jobs_)
    if (!job->running()) ended.push_back(job);
  if (ended.size() <= kEndedKept) return;
  std::ranges::sort(ended, {}, &Job::number_);
  ended.resize(ended.size() - kEndedKept);
  for (const JobPtr& job : ended) jobs_.erase(job->id);
}

void Jobs::stop() {
  std::vector<std::thread> workers;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    for (const auto* jobs : {&waiting_, &running_})
      for (const JobPtr& job : *jobs) job->cancellation_.cancel();
    workers.swap(workers_);
    changed_.notify_all();
  }
  for (std::thread& worker : workers) worker.join();
}

}  // namespace tensordiff::serve
