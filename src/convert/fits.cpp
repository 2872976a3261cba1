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

bool is_square(const PairOperands& operands) {
  if (operands.a.shards.size() != 1 || operands.b.shards.size() != 1) return false;
  if (operands.a.section || operands.b.section) return false;
  const Shape& shape = operands.a.shards[0].shape;
  return shape.size() == 2 && shape[0] == shape[1] && shape[0] > 1 &&
         operands.b.shards[0].shape == shape;
}

bool same_elements(const Tensor& a, const Tensor& b) {
  if (a.elements() > kReadMax) return true;
  return distance(signature_of(a, kReadMax), signature_of(b, kReadMax)) <= kSameElements;
}

}  // namespace

Fits fits_of(const PairOperands& operands, const Tensor& a, const Tensor& b) {
  Fits fits;
  fits.square = is_square(operands);
  const std::vector<Candidate> plain = plain_candidates(operands.a, operands.b);
  if (plain.empty()) return fits;
  const double first = misfit(plain[0].pair);
  fits.tells = !std::isnan(first);
  if (!fits.tells) return fits;
  if (first <= misfit_max(plain[0].pair.a.elements(), 1)) {
    // As it is stored. Where another order of axes would do as well, the other layers decide.
    fits.forms = fitting(plain);
    return fits;
  }
  fits.forms = fitting(plain);
  if (!fits.forms.empty()) return fits;

  std::vector<Candidate> others;
  const bool is_part = operands.a.section || operands.b.section;
  if (!is_part && same_elements(a, b))
    for (const Candidate& candidate : plain)
      for (Candidate& each : row_candidates(candidate)) others.push_back(std::move(each));
  fits.forms = fitting(others);
  if (!fits.forms.empty()) return fits;

  others.clear();
  for (const Candidate& candidate : plain)
    for (Candidate& each : function_candidates(candidate)) others.push_back(std::move(each));
  fits.forms = fitting(others);
  return fits;
}

}  // namespace tensordiff
