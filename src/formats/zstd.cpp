// Zstandard: one file, compressed, in one or more frames. libzstd checks what checksums there are.

#include <zstd.h>

#include <memory>
#include <vector>

#include "formats/compressed.h"

namespace tensordiff {
namespace {

constexpr int kWindowLogMax = 27;  // 128 MiB, what every decoder must be able to hold.

bool recognises(const Bytes& file) { return as_text(file.view).starts_with("\x28\xb5\x2f\xfd"); }

Result<void> unpack(ByteView packed, Sink& sink) {
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(),
                                                                        ZSTD_freeDCtx);
  if (!context) return Error("cannot start to unpack zstd");
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, kWindowLogMax);
  std::vector<std::byte> window(ZSTD_DStreamOutSize());
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  std::size_t due = 0;  // What the frame still wants; 0 at its end.
  while (true) {
    ZSTD_outBuffer out{window.data(), window.size(), 0};
    const std::size_t from = in.pos;
    due = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(due))
      return Error("the compressed data is damaged: {}", ZSTD_getErrorName(due));
    TRY(sink.add(ByteView(window).first(out.pos)));
    if (in.pos == in.size && due == 0) return {};
    if (in.pos == from && out.pos == 0) return cut_short();
  }
}

Result<Catalog> open(const Input& input) { return open_compressed(input, unpack, ".zst"); }

}  // namespace

constinit const Format formats::zstd = {
    .name = "zstd",
    .summary = "zstd-compressed tar, or any other file compressed alone",
    .extensions = ".zst",
    .recognises = recognises,
    .open = open,
};

}  // namespace tensordiff
