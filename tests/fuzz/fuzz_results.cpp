// Feeds arbitrary bytes to the readers of partial results and digests. The first byte says which,
// and whether the rest gets the head and the hash that make it count. Nothing may crash or hang,
// what was read is written back as it was, and pieces of any content can be put together.

#include <fmt/format.h>

#include <cstdlib>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.h"
#include "compare/pieces.h"
#include "digest/digest.h"
#include "parts/partial.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

View small_view(float first) {
  std::vector<float> values(64);
  std::iota(values.begin(), values.end(), first);
  std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return contiguous_view(DType::f32, {8, 8}, ByteSource(bytes_of(std::move(bytes)))).value();
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char each : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(each));
  return text;
}

void merge(const Partial& partial) {
  const AlignedPair pair{small_view(0), small_view(1), {}};
  std::vector<const Piece*> pieces;
  for (const PairPiece& each : partial.pieces) pieces.push_back(&each.piece);
  for (std::size_t count = 0; count <= pieces.size(); ++count) {
    Beyond beyond;
    static_cast<void>(compare_pieces(pair, {}, std::span(pieces).first(count), beyond));
  }
}

void read_part(const std::string& file) {
  const Result<Partial> partial = read_partial(as_bytes(file));
  if (!partial.ok()) return;
  if (write_partial(partial.value()) != file) std::abort();
  merge(partial.value());
}

void read_model(const std::string& file) {
  const Result<Digest> digest = read_digest(as_bytes(file));
  if (!digest.ok()) return;
  const Result<Digest> again = read_digest(as_bytes(write_digest(digest.value())));
  if (!again.ok() || again.value().tensors.size() != digest.value().tensors.size()) std::abort();
}

}  // namespace
}  // namespace tensordiff

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace tensordiff;
  if (size == 0) return 0;
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      read_part(body);
      break;
    case 1:
      read_part(std::string(kPartMagic) + sha256(body) + body);
      break;
    case 2:
      read_model(body);
      break;
    default:
      read_model("{\"schema\":\"tensordiff.digest/1\",\"sha256\":\"" + hex(sha256(body)) +
                 "\",\n\"digest\":" + body + "}\n");
  }
  return 0;
}
