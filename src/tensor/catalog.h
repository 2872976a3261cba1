// All the tensors of one input, by name, not yet read.

#pragma once

#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace tensordiff {

// Something in the input that is not as it should be but does not stop the reading: a member that
// cannot be opened, a code reference that was not run, a checksum that does not match.
struct Problem {
  std::string where;
  std::string message;
};

// What a file says about itself beside its tensors.
struct Metadata {
  std::string key;
  std::string value;
};

struct Catalog {
  std::string path;
  std::string format;
  std::vector<Tensor> tensors;  // In the order of the file; names are unique.
  std::vector<Problem> problems;
  std::vector<Metadata> metadata;

  uint64_t elements() const;
  uint64_t bytes() const;
};

// Gives every tensor a name of its own: a name seen before gets " (2)", " (3)" and so on.
void make_names_unique(Catalog& catalog);

}  // namespace tensordiff
