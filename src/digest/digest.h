// What a model's weights are, without the weights: for each tensor its name, type, shape, a hash
// and statistics of its values. Enough to tell which weights another model has not got yet.
//
// A digest keeps what each rank holds, as it is stored; how that fits together with the other
// model, fused or not, on more ranks or fewer, is found when the two meet (digest/against.h).
//
// The file is JSON of two lines. The first has the SHA-256 of the second but for its last brace:
//   {"schema":"tensordiff.digest/1","sha256":"…",
//   "digest":{…}}

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "digest/linear_hash.h"
#include "tensor/catalog.h"

namespace tensordiff {

struct DigestEntry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;  // On each rank.
  std::vector<LinearHash> ranks;
  Stats stats;        // Of the first rank.
  std::string fault;  // Why its values could not be read; empty when they could.
};

struct Digest {
  std::string model;   // As it was named.
  std::string format;  // Of its files.
  std::vector<DigestEntry> tensors;
};

// Reads every value once. `progress` is told the bytes done, from any thread; may be empty.
Result<Digest> make_digest(const Catalog& catalog,
                           const std::function<void(uint64_t done, uint64_t total)>& progress);

std::string write_digest(const Digest& digest);

// Whether a file says that it is one.
bool is_digest(ByteView bytes);
// It may be torn, or made by somebody else.
Result<Digest> read_digest(ByteView bytes);

}  // namespace tensordiff
