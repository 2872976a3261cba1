#include "formats/pickle/derived.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/text.h"
#include "tensor/reader.h"

namespace tensordiff::pickle {
namespace {

constexpr uint64_t kMemoryBytesMax = 64ULL << 20;  // More than this goes to a temporary file.
constexpr std::size_t kPiece = 1 << 16;            // Elements made at a time.

Result<Bytes> make_in_memory(uint64_t count, std::size_t item, const Fill& fill) {
  std::string memory(count * item, '\0');
  auto* out = reinterpret_cast<std::byte*>(memory.data());
  for (uint64_t done = 0; done < count; done += kPiece)
    fill(done, std::min<uint64_t>(kPiece, count - done), out + done * item);
  return bytes_of(std::move(memory));
}

Result<Bytes> make_in_file(uint64_t count, std::size_t item, const Fill& fill) {
  SpillFile file = TRY(SpillFile::create());
  std::vector<std::byte> piece(kPiece * item);
  for (uint64_t done = 0; done < count; done += kPiece) {
    const std::size_t now = std::min<uint64_t>(kPiece, count - done);
    fill(done, now, piece.data());
    TRY(file.append(ByteView(piece).first(now * item)));
  }
  return std::move(file).map();
}

// The bit that a float of `bytes` bytes carries its sign in is the highest of its last byte.
void flip_sign(std::byte* value, std::size_t bytes) { value[bytes - 1] ^= std::byte{0x80}; }

}  // namespace

Result<View> made_in_order(DType dtype, const Shape& shape, std::function<Result<Fill>()> open) {
  const std::optional<uint64_t> count = element_count(shape);
  const std::size_t item = item_bytes(dtype);
  if (!count || *count > kMadeBytesMax / item)
    return Error("shape {} is larger than {} once its values are made", shape_text(shape),
                 human_bytes(kMadeBytesMax));
  const auto make = [count = *count, item, open = std::move(open)]() -> Result<Bytes> {
    const Fill fill = TRY(open());
    return count * item > kMemoryBytesMax ? make_in_file(count, item, fill)
                                          : make_in_memory(count, item, fill);
  };
  return contiguous_view(dtype, shape, ByteSource(*count * item, make));
}

Result<View> flipped(View stored, bool conjugate, bool negative) {
  const DType dtype = stored.dtype;
  if (!is_complex(dtype) && !(is_float(dtype) && item_bytes(dtype) >= 2))
    return Error("a negated tensor of {}", name_of(dtype));
  const Shape shape = stored.shape;
  const auto open = [stored = std::move(stored), conjugate, negative]() -> Result<Fill> {
    const auto reader = std::make_shared<const Reader>(TRY(Reader::open(stored)));
    const std::size_t item = item_bytes(stored.dtype);
    const std::size_t part = is_complex(stored.dtype) ? item / 2 : item;
    const bool imaginary = is_complex(stored.dtype) && conjugate != negative;
    return Fill([=](uint64_t first, std::size_t count, std::byte* out) {
      std::vector<std::byte> buffer;
      std::memcpy(out, reader->raw(first, count, buffer), count * item);
      for (std::size_t i = 0; i < count; ++i) {
        if (negative) flip_sign(out + i * item, part);
        if (imaginary) flip_sign(out + i * item + part, part);
      }
    });
  };
  return made_in_order(dtype, shape, open);
}

}  // namespace tensordiff::pickle
