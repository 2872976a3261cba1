#include "diagnose/operators/operator.h"

namespace tensordiff::operators {

uint64_t Extents::rows() const {
  uint64_t product = 1;
  for (const uint64_t size : rows_by_axis) product *= size;
  return product;
}

std::string_view name_of(Standing standing) {
  switch (standing) {
    case Standing::given:
      return "given";
    case Standing::fitted:
      return "fitted";
    default:
      return "unknown";
  }
}

std::string_view name_of(Family family) {
  switch (family) {
    case Family::affine:
      return "affine";
    case Family::index:
      return "index";
    case Family::parameter:
      return "parameter";
    case Family::quantiser:
      return "quantiser";
    case Family::term:
      return "term";
    case Family::substitution:
      return "substitution";
    default:
      return "support";
  }
}

}  // namespace tensordiff::operators
