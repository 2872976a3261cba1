// How fast a model could run at best: each weight is read once and multiplied once for each token,
// and a device does neither faster than its data sheet says.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "analyze/study.h"

namespace tensordiff {

struct Device {
  std::string name;
  double flops = 0;      // Of dense 16-bit matrix work, a second.
  double bandwidth = 0;  // Bytes of its memory, a second.
};

// One of the table, "FLOPS:BYTES", or the default for an empty name; nothing for any other.
std::optional<Device> find_device(std::string_view name);
std::string device_names();

struct Roofline {
  double flops = 0, bytes = 0;  // For one token (or sample), one sequence at a time.
  double seconds = 0;
  bool by_memory = false;  // What bounds it: memory, or arithmetic.
};

// Of the weights of one side. Embeddings are looked up, not multiplied. Nothing where work depends
// on more than the weights: convolutions.
std::optional<Roofline> roofline_of(const Catalog& catalog, const Facts& facts,
                                    const Device& device);

}  // namespace tensordiff
