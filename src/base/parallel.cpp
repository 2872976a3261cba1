#include "base/parallel.h"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>

#include <memory>
#include <thread>

namespace tensordiff {
namespace {

std::unique_ptr<tbb::global_control> limit;

}  // namespace

void set_threads(std::size_t count) {
  limit.reset();
  if (count == 0) return;
  limit =
      std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism, count);
}

std::size_t threads() {
  return tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
}

void for_each_index(std::size_t count, const std::function<void(std::size_t)>& work) {
  tbb::parallel_for(std::size_t{0}, count, work);
}

}  // namespace tensordiff
