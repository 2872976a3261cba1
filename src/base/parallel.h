// Runs independent work on all cores. The only file that knows the threading library is its .cpp.

#pragma once

#include <cstddef>
#include <functional>

namespace tensordiff {

// How many threads for_each_index() uses; 0: one for each core. Set once, before work starts.
void set_threads(std::size_t count);
std::size_t threads();

// Calls work(i) for each i below count, in any order and on any thread; returns when all are done.
// Calls may nest.
void for_each_index(std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace tensordiff
