#include "serve/lanes.h"

#include <chrono>

#include "base/parallel.h"

namespace tensordiff::serve {
namespace {

// How often one that waits looks whether anybody still wants its answer.
constexpr std::chrono::milliseconds kLookAgain{50};

}  // namespace

Lanes::Place::~Place() {
  if (!lanes_) return;
  const std::lock_guard lock(lanes_->mutex_);
  --lanes_->counts_[static_cast<std::size_t>(lane_)].working;
  lanes_->freed_.notify_all();
}

std::optional<Lanes::Place> Lanes::enter(Lane lane) {
  const Limit& limit = limits_[static_cast<std::size_t>(lane)];
  std::unique_lock lock(mutex_);
  Count& count = counts_[static_cast<std::size_t>(lane)];
  if (count.working >= limit.at_once) {
    if (count.waiting >= limit.waiting) return std::nullopt;
    ++count.waiting;
    while (count.working >= limit.at_once && !called_off()) freed_.wait_for(lock, kLookAgain);
    --count.waiting;
    if (count.working >= limit.at_once) return std::nullopt;
  }
  ++count.working;
  return Place(*this, lane);
}

}  // namespace tensordiff::serve
