// The limits on what an input may ask of us, by name, so that a user can raise one that is in the
// way: --limit pickle=1GiB.

#pragma once

#include <string>
#include <string_view>

#include "formats/format.h"

namespace tensordiff {

struct LimitRow {
  std::string_view name;
  uint64_t Limits::*value;
  bool bytes;  // Else a plain count.
  std::string_view what;
};

// What is followed by calls within calls takes room that a program has little of.
inline constexpr uint64_t kDepthLimitMax = 1000;

// In the order of docs/formats.md.
inline constexpr LimitRow kLimitRows[] = {
    {"pickle", &Limits::pickle_bytes_max, true, "one pickle, without the bytes objects in it"},
    {"json", &Limits::json_bytes_max, true, "an index or another file of JSON"},
    {"header", &Limits::header_bytes_max, true, "the header of a safetensors file"},
    {"members", &Limits::members_max, false, "files of one archive or folder"},
    {"tensors", &Limits::tensors_max, false, "tensors of one file"},
    {"expanded", &Limits::expanded_bytes_max, true, "all that is unpacked out of one archive"},
    {"dense", &Limits::dense_bytes_max, true, "a sparse tensor once it is filled out"},
    {"entries", &Limits::entries_max, false, "keys, and tensors, of a GGUF file"},
    {"string", &Limits::string_bytes_max, true, "a string in a GGUF file"},
    {"opcodes", &Limits::opcodes_max, false, "opcodes of a pickle"},
    {"values", &Limits::values_max, false, "values of a pickle, and places in its memo"},
    {"stack", &Limits::stack_max, false, "values on the stack of a pickle"},
    {"structure", &Limits::structure_bytes_max, true, "memory for the values of a pickle"},
    {"repeats", &Limits::repeats_max, false, "values of a pickle listed again by another path"},
    {"names", &Limits::names_bytes_max, true, "all names of tensors of a pickle together"},
    {"depth", &Limits::depth_max, false, "values in values, of pickles, msgpack, ONNX, MATLAB"},
    {"npy-header", &Limits::npy_header_bytes_max, true, "the header of an npy file"},
    {"name", &Limits::name_bytes_max, true, "the name of a tensor"},
    {"growth", &Limits::growth_max, false, "times its size that a file or member unpacks to"},
    {"nesting", &Limits::nesting_max, false, "archives in archives"},
    {"hdf5-seconds", &Limits::hdf5_seconds_max, false, "seconds that the HDF5 library may take"},
    {"hdf5-memory", &Limits::hdf5_memory_max, true, "memory that the HDF5 library may use"},
    {"input", &Limits::input_bytes_max, true, "one input; the same as --limit-size"},
};

// The error of whoever meets a limit: what is too much, and how to raise the limit.
Error limit_hit(std::string_view name, std::string_view what);

// Whether so many bytes are too many for what they were compressed to. Not looked at below 64 MiB:
// a small file of zeros may shrink to next to nothing.
bool grows_too_much(uint64_t bytes, uint64_t packed, const Limits& limits);

// The limits for what is inside a compressed file: it may grow by what is left of the whole growth,
// so that archives in archives do not multiply it.
Limits limits_inside(const Limits& limits, uint64_t bytes, uint64_t packed);

// Sets a limit from "name=value"; a size may have a unit.
Result<void> set_limit(Limits& limits, std::string_view name, uint64_t value);

}  // namespace tensordiff
