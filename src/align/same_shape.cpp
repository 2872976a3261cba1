// Shapes that already agree. Nothing else is tried on them: an order of axes that would explain the
// values better is a finding about the tensors, not a layout.

#include "align/aligner.h"

namespace tensordiff {
namespace {

std::vector<Plan> propose(const Shape& a, const Shape& b) {
  if (a != b) return {};
  return {Plan{}};
}

}  // namespace

constinit const Aligner aligners::same_shape = {
    .name = "same-shape",
    .summary = "the shapes agree",
    .evidence = Evidence::none,
    .propose = propose,
};

}  // namespace tensordiff
