// All the tensors of one input, by name, not yet read.

#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace tensordiff {

// How much a problem matters, in rising order.
enum class Severity : uint8_t {
  note,        // Worth knowing, and harmless.
  suspicious,  // Not as a file of its kind should be: stray bytes, unknown names of code.
  dangerous,   // Code that acts if another program loads the file.
  unreadable,  // A part that cannot be read.
  missing,     // A file of the model that is not there.
};
std::string_view name_of(Severity severity);

// Something in the input that is not as it should be but does not stop the reading: a member that
// cannot be opened, a code reference that was not run, a checksum that does not match.
struct Problem {
  std::string where;
  std::string message;
  Severity severity = Severity::suspicious;
};

// What a file says about itself beside its tensors.
struct Metadata {
  std::string key;
  std::string value;
};

// A text file of the input that says more about its tensors ("dump.json"), by its path in it.
struct Document {
  std::string path;
  ByteSource source;
};

// A token of a run, as the dump itself tells.
struct Token {
  int32_t sequence = 0;
  int32_t position = 0;
  int64_t id = -1;  // In the vocabulary; -1: not told.
};

struct Catalog {
  std::string path;
  std::string format;
  std::vector<Tensor> tensors;  // In the order of the file; names are unique.
  std::vector<Problem> problems;
  std::vector<Metadata> metadata;
  std::vector<Document> documents;
  // Of a dump, in the order in which the first axis of its tensors has them; empty: not told.
  std::vector<Token> tokens = {};
  std::string layout = {};  // Which kind of dump it is (dumps/); empty: none that is known.
  // A file beside the input, or in it where it is a folder, by a name that this program knows, such
  // as "config.json". Nothing where the input is no file.
  std::function<Result<Bytes>(std::string_view name)> beside = nullptr;

  uint64_t elements() const;
  uint64_t bytes() const;
};

// Gives every tensor a name of its own: a name seen before gets " (2)", " (3)" and so on.
void make_names_unique(Catalog& catalog);

}  // namespace tensordiff
