// What remote inputs may do and cost, for the whole process: the command line sets it once, before
// the first of them is opened.

#pragma once

#include <cstddef>
#include <cstdint>

namespace tensordiff::remote {

struct Policy {
  bool http = false;              // Plain http:// beyond this machine.
  bool private_addresses = true;  // Hosts on private, loopback and link-local addresses.
  bool trust_hashes = true;       // Files of one hash are one file, and are not read.
  uint64_t cache_bytes = 256ULL << 20;
  std::size_t connections = 16;
  std::size_t retries = 5;           // After the first try.
  std::size_t timeout_seconds = 30;  // Without any progress.
};

Policy& policy();

// Lets Roots open remote inputs. Loads nothing until one is opened.
void enable();

}  // namespace tensordiff::remote
