// From the simplest form to the boldest: as alignment lays the pair out, axes in another order,
// rows in another order, a function of the values. The search ends with the first step that fits.

#include "convert/fits.h"

#include <algorithm>
#include <cmath>

#include "align/view.h"
#include "convert/candidates.h"
#include "convert/misfit.h"
#include "match/signature.h"

namespace tensordiff {
namespace {

// In standard errors of the moments, as in the value strategy: the same elements in another order
// stay below a tenth, other elements are about one apart.
constexpr double kSameElements = 0.3;
// Squared: what a type of 16 bits leaves is far below, what one of 4 bits leaves is above.
constexpr double kSure = 1e-3;
constexpr uint64_t kReadMax = 1 << 24;  // Larger tensors are not read whole to learn their rows.

// Those of the candidates that fit; a fit of one value all over proves nothing.
std::vector<Form> fitting(const std::vector<Candidate>& candidates) {
  std::vector<Form> forms;
  double least = std::numeric_limits<double>::infinity();
  std::vector<double> misfits;
  for (const Candidate& candidate : candidates) {
    misfits.push_back(misfit(candidate.pair));
    if (misfits.back() < least) least = misfits.back();
  }
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const double limit = misfit_max(candidates[i].pair.a.elements(), candidates.size());
    // A right form leaves rounding, a wrong one nearly everything.
    if (misfits[i] <= limit && misfits[i] <= 4 * least + 1e-12) forms.push_back(candidates[i].form);
  }
  return forms;
}

// Whether the shapes allow the matrix to be turned.
bool is_square(const Candidate& plain) {
  const Shape& shape = plain.pair.a.shape;
  return shape.size() == 2 && shape[0] == shape[1] && shape[0] > 1;
}

bool same_elements(const Tensor& a, const Tensor& b) {
  const bool in_blocks = is_in_blocks(a.view.dtype) || is_in_blocks(b.view.dtype);
  if (a.elements() > kReadMax || in_blocks) return true;  // Blocks of few bits move the moments.
  return distance(signature_of(a, kReadMax), signature_of(b, kReadMax)) <= kSameElements;
}

// The same of a part, as a candidate lays it out.
bool same_part(const Candidate& plain, const Tensor& a, const Tensor& b) {
  Tensor of_a = a, of_b = b;
  of_a.view = plain.pair.a;
  of_b.view = plain.pair.b;
  of_a.shards.clear();
  of_b.shards.clear();
  return same_elements(of_a, of_b);
}

bool is_sharded(const PairOperands& operands) {
  return operands.a.shards.size() > 1 || operands.b.shards.size() > 1;
}

// Ranks that changed places look like parts that do; so shards need a name that says they are
// parts.
bool may_be_fused(const PairOperands& operands, const Tensor& a, const Tensor& b) {
  const auto says = [](Role role) {
    return role == Role::fused_qkv || role == Role::gate_up || role == Role::kv_up;
  };
  const bool known = a.place.step != Role::other && b.place.step != Role::other;
  return says(a.place.step) || says(b.place.step) || (!known && !is_sharded(operands));
}

}  // namespace

Fits fits_of(const PairOperands& operands, const Tensor& a, const Tensor& b) {
  Fits fits;
  const std::vector<Candidate> plain = plain_candidates(operands.a, operands.b);
  if (plain.empty()) return fits;
  fits.square = is_square(plain[0]);
  const double first = misfit(plain[0].pair);
  fits.tells = !std::isnan(first);
  if (!fits.tells) return fits;
  // A small update or a factor near one leaves the weight as good as it is: the best fit counts.
  if (!operands.merges.empty()) {
    fits.merge = operands.merges[0].how;
    std::vector<Candidate> all = plain;
    for (const MergedOperand& merged : operands.merges)
      for (Candidate& each : merged_candidates(operands, merged)) all.push_back(std::move(each));
    fits.forms = fitting(all);
    if (!fits.forms.empty()) return fits;
  }
  // Where several orders of axes would do, the other layers decide.
  fits.forms = fitting(plain);
  if (!fits.forms.empty()) {
    if (first <= kSure) return fits;
    // A few numbers with an offset fit about as well as coarse blocks do: a function may fit
    // better.
    std::vector<Candidate> all = plain;
    for (Candidate& each : function_candidates(plain[0])) all.push_back(std::move(each));
    fits.forms = fitting(all);
    return fits;
  }

  std::vector<Candidate> others;
  const bool is_part = operands.a.section || operands.b.section;
  const bool fused = may_be_fused(operands, a, b);
  if (!is_part && same_elements(a, b))
    for (const Candidate& candidate : plain)
      for (Candidate& each : row_candidates(candidate, fused))
        if (each.form.parts.empty() || fused || !is_sharded(operands))
          others.push_back(std::move(each));
  // What is fused may have been turned before: q and k for the RoPE of the other side.
  if (is_part && !is_sharded(operands))
    for (const Candidate& candidate : plain)
      if (same_part(candidate, a, b))
        for (Candidate& each : rope_candidates(candidate)) others.push_back(std::move(each));
  fits.forms = fitting(others);
  if (!fits.forms.empty()) return fits;

  others.clear();
  for (const Candidate& candidate : plain)
    for (Candidate& each : function_candidates(candidate)) others.push_back(std::move(each));
  fits.forms = fitting(others);
  return fits;
}

}  // namespace tensordiff
