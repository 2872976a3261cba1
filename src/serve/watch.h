// Notices that a client closed its connection while its request is worked on.

#pragma once

#include <memory>

#include "base/parallel.h"

namespace tensordiff::serve {

// One thread that looks at all sockets under watch.
class CloseWatch {
 public:
  CloseWatch();
  ~CloseWatch();

  // Cancels the work when the other side of the socket closes, until the Guard ends.
  class Guard {
   public:
    Guard(CloseWatch& watch, int socket, Cancellation& work);
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard();

   private:
    CloseWatch& watch_;
    int socket_;
  };

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tensordiff::serve
