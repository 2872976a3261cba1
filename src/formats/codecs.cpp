#include "formats/codecs.h"

#include <zstd.h>

#include "formats/inflate.h"

namespace tensordiff {
namespace {

Error wrong_size(uint64_t bytes) {
  return Error("it does not unpack to the expected {} bytes", bytes);
}
Error damaged() { return Error("the compressed data is damaged"); }

// Reads packed bytes and writes plain ones, neither beyond its end. What fails stays failed.
class Window {
 public:
  Window(ByteView packed, uint64_t bytes) : packed_(packed), plain_(bytes, '\0') {}

  bool ok() const { return ok_; }
  bool at_end() const { return in_ == packed_.size(); }
  std::size_t written() const { return out_; }

  unsigned byte() {
    if (in_ == packed_.size()) ok_ = false;
    return ok_ ? std::to_integer<unsigned>(packed_[in_++]) : 0;
  }

  void literals(std::size_t count) {
    if (count > packed_.size() - in_ || count > plain_.size() - out_) ok_ = false;
    if (!ok_) return;
    plain_.replace(out_, count, as_text(packed_).substr(in_, count));
    in_ += count;
    out_ += count;
  }

  // Bytes written before, again. They may overlap what is being written: then they repeat.
  void repeat(std::size_t distance, std::size_t count) {
    if (distance == 0 || distance > out_ || count > plain_.size() - out_) ok_ = false;
    for (std::size_t i = 0; ok_ && i < count; ++i, ++out_) plain_[out_] = plain_[out_ - distance];
  }

  Result<std::string> finish() && {
    if (!ok_) return damaged();
    if (out_ != plain_.size()) return wrong_size(plain_.size());
    return std::move(plain_);
  }

 private:
  ByteView packed_;
  std::string plain_;
  std::size_t in_ = 0, out_ = 0;
  bool ok_ = true;
};

}  // namespace

Result<std::string> unpack_gzip(ByteView packed, uint64_t bytes) {
  std::string plain;
  TRY(inflate_gzip(packed, [&](ByteView piece) -> Result<void> {
    if (piece.size() > bytes - plain.size()) return wrong_size(bytes);
    plain += as_text(piece);
    return {};
  }));
  if (plain.size() != bytes) return wrong_size(bytes);
  return plain;
}

Result<std::string> unpack_zstd(ByteView packed, uint64_t bytes) {
  std::string plain(bytes, '\0');
  const std::size_t made =
      ZSTD_decompress(plain.data(), plain.size(), packed.data(), packed.size());
  if (ZSTD_isError(made))
    return Error("the compressed data is damaged: {}", ZSTD_getErrorName(made));
  if (made != bytes) return wrong_size(bytes);
  return plain;
}

// A token holds two counts, of literals and of bytes to repeat; 15 says that more follows.
Result<std::string> unpack_lz4(ByteView packed, uint64_t bytes) {
  Window window(packed, bytes);
  const auto more = [&](std::size_t count) {
    unsigned next = count == 15 ? 255 : 0;
    while (next == 255 && window.ok()) count += next = window.byte();
    return count;
  };
  while (window.ok() && !window.at_end()) {
    const unsigned token = window.byte();
    window.literals(more(token >> 4));
    if (window.at_end()) break;  // The last has literals only.
    const unsigned low = window.byte();
    const std::size_t distance = low | window.byte() << 8;
    window.repeat(distance, more(token & 15) + 4);
  }
  return std::move(window).finish();
}

// A byte below 32 starts literals; any other has the length and the upper bits of a distance.
Result<std::string> unpack_blosclz(ByteView packed, uint64_t bytes) {
  constexpr std::size_t kFar = 8191;
  Window window(packed, bytes);
  bool first = true;
  while (window.ok() && !window.at_end()) {
    const unsigned control = window.byte() & (first ? 31U : 255U);
    first = false;
    if (control < 32) {
      window.literals(control + 1);
      continue;
    }
    std::size_t count = (control >> 5) + 2;
    unsigned next = control >> 5 == 7 ? 255 : 0;
    while (next == 255 && window.ok()) count += next = window.byte();
    const unsigned low = window.byte();
    std::size_t distance = ((control & 31) << 8) + low + 1;
    if (distance == kFar + 1) {  // All ones: a wider distance follows.
      const unsigned high = window.byte();
      distance += (high << 8) + window.byte();
    }
    window.repeat(distance, count);
  }
  return std::move(window).finish();
}

std::string unshuffle(std::string_view bytes, std::size_t item) {
  std::string plain(bytes);
  const std::size_t count = bytes.size() / item;
  for (std::size_t part = 0; part < item; ++part)
    for (std::size_t i = 0; i < count; ++i) plain[i * item + part] = bytes[part * count + i];
  return plain;
}

std::string unshuffle_bits(std::string_view bytes, std::size_t item) {
  const std::size_t count = bytes.size() / item, row = count / 8;
  if (count % 8 != 0) return std::string(bytes);  // Left as they were.
  std::string plain(bytes);
  std::fill_n(plain.begin(), count * item, '\0');
  for (std::size_t bit = 0; bit < item * 8; ++bit) {
    for (std::size_t i = 0; i < count; ++i) {
      const unsigned set = static_cast<unsigned char>(bytes[bit * row + i / 8]) >> i % 8 & 1;
      plain[i * item + bit / 8] |= static_cast<char>(set << bit % 8);
    }
  }
  return plain;
}

}  // namespace tensordiff
