#include "tensor/stored.h"

#include <algorithm>

#include "base/byte_owner.h"

namespace tensordiff {
namespace {

bool same_part(const Part& a, const Part& b) {
  if (a.origin != b.origin || a.shape != b.shape || a.strides != b.strides ||
      a.offset != b.offset || a.term != b.term || a.packed || b.packed)
    return false;
  const Result<Bytes> of_a = a.source.open(), of_b = b.source.open();
  return of_a.ok() && of_b.ok() && same_remote_bytes(of_a.value(), of_b.value());
}

std::string found_damage(const View& view) {
  for (const Part& part : view.parts) {
    const Result<Bytes> bytes = part.source.open();
    if (bytes.ok() && !bytes.value().intact()) return damage_of(bytes.value());
    for (std::size_t i = 0; part.packed && i < part.packed->inputs.size(); ++i)
      if (const std::string found = found_damage(part.packed->inputs[i]); !found.empty())
        return found;
  }
  return "";
}

}  // namespace

std::string damage_of(const View& view) {
  const std::string found = found_damage(view);
  return found.empty() ? ByteOwner().damage() : found;
}

bool same_remote_elements(const View& a, const View& b) {
  return a.dtype == b.dtype && a.swapped == b.swapped && a.shape == b.shape && a.terms == b.terms &&
         !a.parts.empty() && std::ranges::equal(a.parts, b.parts, same_part);
}

}  // namespace tensordiff
