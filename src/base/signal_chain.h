// A signal handler leaves what is none of its own to the one that was there before.

#pragma once

#include <csignal>

namespace tensordiff {

// To the system where nobody was there: the signal then ends the program, as it should. Only
// async-signal-safe calls.
inline void pass_on(const struct sigaction& other, int signal, siginfo_t* info, void* context) {
  if ((other.sa_flags & SA_SIGINFO) != 0) {
    other.sa_sigaction(signal, info, context);
  } else if (other.sa_handler != SIG_DFL && other.sa_handler != SIG_IGN) {
    other.sa_handler(signal);
  } else {
    std::signal(signal, SIG_DFL);
    raise(signal);
  }
}

}  // namespace tensordiff
