// Snappy, the compression of TensorFlow's index blocks.

#pragma once

#include <string>

#include "base/byte_source.h"
#include "base/result.h"

namespace tensordiff {

// What these bytes say, if that is not more than `most`.
Result<std::string> unsnappy(ByteView compressed, uint64_t most);

}  // namespace tensordiff
