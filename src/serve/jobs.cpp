#include "serve/jobs.h"

#include <vector>

#include "serve/guard.h"

namespace tensordiff::serve {
namespace {

constexpr std::size_t kEndedKept = 64;  // So that whoever started one can still ask about it.

}  // namespace

void Job::wait() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return state_ != "running"; });
}

std::string_view Job::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

JobPtr Jobs::start(const std::string& session, std::string_view kind, Work work) {
  const auto job = std::make_shared<Job>(random_id(), session, kind);
  const std::lock_guard lock(mutex_);
  std::vector<JobPtr> before;
  for (const auto& [id, other] : jobs_)
    if (other->session == session && other->state() == "running") before.push_back(other);
  forget_ended();
  jobs_[job->id] = job;
  if (stopped_) job->cancel();
  for (const JobPtr& other : before) other->cancel();
  job->thread_ = std::thread([job = job.get(), before, work = std::move(work)] {
    for (const JobPtr& other : before) other->wait();
    const bool well = work(*job);
    const std::lock_guard done(job->mutex_);
    job->state_ = job->cancelled() ? "cancelled" : well ? "done" : "failed";
    job->ended_.notify_all();
  });
  return job;
}

JobPtr Jobs::find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : found->second;
}

JobPtr Jobs::of(const std::string& session) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, job] : jobs_)
    if (job->session == session && job->state() == "running" && !job->cancelled()) return job;
  return nullptr;
}

void Jobs::forget_ended() {
  std::size_t ended = 0;
  for (auto each = jobs_.begin(); each != jobs_.end();) {
    const bool forget = each->second->state() != "running" && ++ended > kEndedKept;
    if (forget) each->second->thread_.join();
    each = forget ? jobs_.erase(each) : std::next(each);
  }
}

void Jobs::stop() {
  std::map<std::string, JobPtr> all;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    all.swap(jobs_);
  }
  for (const auto& [id, job] : all) job->cancel();
  for (const auto& [id, job] : all)
    if (job->thread_.joinable()) job->thread_.join();
}

}  // namespace tensordiff::serve
