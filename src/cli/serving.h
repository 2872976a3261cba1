// Runs the server in the foreground, for serve and demo.

#pragma once

#include "cli/settings.h"

namespace tensordiff {

// Prints the address, opens a browser there where one can be opened, and serves until it is told to
// stop: Ctrl-C, or the signal to end. The exit status.
int serve_until_stopped(const serve::ServeOptions& options, const Settings& settings);

}  // namespace tensordiff
