// How the process in the sandbox talks to the one that started it, and how the HDF5 library reads
// the file there: a driver that asks for byte ranges.

#pragma once

#include <hdf5.h>

#include <string>

#include "formats/hdf5_wire.h"

namespace tensordiff::hdf5 {

void send(Message kind, const std::string& payload);

// Learns from the parent how large the file is, and opens it. Negative when the library refuses.
hid_t open_remote();
uint64_t remote_bytes();
uint64_t remote_end();  // Where the file says that it ends.

// Between the two, a read of raw data of so many bytes is not done, only noted: watched() gives its
// address. That is how to learn where a chunk lies.
void watch_for(uint64_t bytes);
haddr_t watched();

// At once, without the library's own end: it has nothing to save, and the file may have broken it.
[[noreturn]] void end_process(int status);

}  // namespace tensordiff::hdf5
