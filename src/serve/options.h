// What the command line asks of the server.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/format.h"

namespace tensordiff::serve {

struct ServeOptions {
  std::vector<std::string> inputs;  // a, or a and b.
  bool demo = false;                // The built-in dumps are the inputs.
  std::string listen = "127.0.0.1";
  uint16_t port = 5000;
  uint16_t ports = 20;             // How many are tried from that one on.
  std::vector<std::string> roots;  // Empty: the folders of the inputs, or the current one.
  std::string state;               // Folder of what lasts; empty: the user's.
  bool watch = false;              // The page compares again when a file changes.
  bool legacy_open = false;        // The earlier debugger's routes ask for no token.
  uint64_t upload_limit = 500'000'000;
  OpenOptions open;
};

}  // namespace tensordiff::serve
