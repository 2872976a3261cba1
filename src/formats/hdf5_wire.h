// What the process that runs the HDF5 library tells us, as messages: a kind, a length, a payload.
//
// The library lists datasets and where their bytes lie; it never sends the bytes of large ones. We
// map contiguous data in place and unpack chunks ourselves. Everything that comes is checked as if
// the file had said it.

#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "formats/format.h"

namespace tensordiff::hdf5 {

inline constexpr std::string_view kTask = "__hdf5";  // What the program is started with.
inline constexpr uint32_t kMessageBytesMax = 1 << 20;
inline constexpr uint32_t kReadBytesMax = 1 << 20;
inline constexpr std::size_t kRankMaxHdf5 = 32;

enum class Message : uint8_t {
  read = 'r',     // offset u64, count u32: wants so many bytes of the file.
  dataset = 'd',  // See Dataset.
  chunks =
      'c',  // For the last dataset: for each its origin u64[rank], address, bytes u64, mask u32
  problem = 'p',     // where, message
  attribute = 'a',   // name, text: a piece of an attribute of the whole file.
  failed = 'e',      // message: the file cannot be opened
  no_sandbox = 'n',  // message: why the library is not run at all
  done = 'z',
};

enum class Layout : uint8_t { missing, contiguous, chunked, compact };
enum class Filter : uint8_t { deflate = 1, shuffle = 2, fletcher32 = 3 };  // As in the file.

struct Chunk {
  Shape origin;
  uint64_t address = 0, bytes = 0;
  uint32_t skipped = 0;  // A bit for each filter that was left out.
};

struct Dataset {
  std::string name;          // Its path, without the first '/'.
  std::string fault;         // Why it cannot be read.
  std::string matlab_class;  // What MATLAB says it is.
  bool matlab_empty = false;
  DType dtype = DType::f32;
  bool swapped = false;
  Shape shape;
  Layout layout = Layout::missing;
  uint64_t address = 0;  // Of contiguous data.
  std::string data;      // Of compact data.
  std::string fill;      // One element; zeros where the file has none.
  Shape chunk_shape;
  std::vector<Filter> filters;
  std::vector<Chunk> chunks;
};

// A payload being written.
class Payload {
 public:
  template <class T>
  Payload& number(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    text_.append(bytes, sizeof(T));
    return *this;
  }
  Payload& text(std::string_view value) {
    number(static_cast<uint32_t>(value.size()));
    text_ += value;
    return *this;
  }
  Payload& sizes(const Shape& sizes) {
    number(static_cast<uint8_t>(sizes.size()));
    for (const uint64_t size : sizes) number(size);
    return *this;
  }
  const std::string& bytes() const { return text_; }

 private:
  std::string text_;
};

std::string encode(const Dataset& dataset);
Result<Dataset> decode(ByteView payload);
// The chunks of one message, for a dataset of this rank.
Result<std::vector<Chunk>> decode_chunks(ByteView payload, std::size_t rank);
// A problem's two texts, or an attribute's: where it is, and what it says.
Result<Problem> decode_problem(ByteView payload);

}  // namespace tensordiff::hdf5
