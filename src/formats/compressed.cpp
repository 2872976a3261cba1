#include "formats/compressed.h"

#include <algorithm>

#include "base/text.h"
#include "formats/limits.h"

namespace tensordiff {
namespace {

bool is_compressed(const Bytes& file) {
  constexpr const Format* kPacked[] = {&formats::gzip, &formats::zstd, &formats::xz,
                                       &formats::bzip2};
  return std::ranges::any_of(kPacked,
                             [&](const Format* format) { return format->recognises(file); });
}

}  // namespace

Result<Sink> Sink::create(uint64_t packed_bytes, const Limits& limits) {
  return Sink(TRY(SpillFile::create()), packed_bytes, limits);
}

Result<void> Sink::add(ByteView piece) {
  const uint64_t bytes_max = limits_.expanded_bytes_max;
  if (file_.size() > bytes_max || piece.size() > bytes_max - file_.size())
    return limit_hit("expanded", fmt::format("it unpacks to more than {}", human_bytes(bytes_max)));
  if (grows_too_much(file_.size() + piece.size(), packed_bytes_, limits_))
    return limit_hit("growth",
                     fmt::format("it unpacks to more than {} times its size", limits_.growth_max));
  return file_.append(piece);
}

Result<Catalog> open_compressed(const Input& input, Unpack unpack, std::string_view ending) {
  const Bytes packed = TRY(input.source.open());
  Sink sink = TRY(Sink::create(packed.size(), input.limits));
  TRY(unpack(packed.view, sink));
  Input inside = input;
  inside.source = ByteSource(TRY(std::move(sink).finish()));
  inside.limits = limits_inside(input.limits, inside.source.size(), packed.size());
  if (is_compressed(TRY(inside.source.open()))) return Error("compressed more than once");
  Catalog catalog = TRY(open_input(inside));
  catalog.format += ending;
  return catalog;
}

Error cut_short() { return Error("the compressed data ends in the middle"); }

Error bytes_behind(uint64_t count) {
  return Error("{} bytes follow the end of the compressed data", count);
}

}  // namespace tensordiff
