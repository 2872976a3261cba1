// One number for each token is added to all its logits: softmax does not see it, so the
// probabilities are the same. Some programs subtract the largest logit, others do not.

#include <cmath>

#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

constexpr uint64_t kVocabularyMin = 8;  // Fewer logits agree by chance.

double mean_gap(const Case& it, uint64_t row) {
  double sum = 0, count = 0;
  for (uint64_t i = 0; i < it.a.features; ++i) {
    const double gap = it.b.row(row)[i] - it.a.row(row)[i];
    if (!std::isfinite(gap)) continue;
    sum += gap;
    ++count;
  }
  return sum / std::max(count, 1.0);
}

std::optional<Explanation> examine(const Case& it) {
  if (it.site.role != Role::logits || it.a.features < kVocabularyMin) return std::nullopt;
  std::vector<double> shift(it.a.rows());
  for (uint64_t row = 0; row < shift.size(); ++row) shift[row] = mean_gap(it, row);
  Explanation result = explained_by(
      it, filled(it.a, [&](uint64_t row, uint64_t i) { return it.a.row(row)[i] + shift[row]; }));
  result.text = "one number for each token is added to all its logits";
  result.parameters = {{"shift_norm", norm(shift)}};
  return result;
}

}  // namespace

constinit const Diagnosis diagnoses::softmax_shift = {
    .code = "softmax_shift",
    .question = "Are the probabilities the same?",
    .explains = "logits that differ by a constant for each token: no mistake",
    .examine = examine,
};

}  // namespace tensordiff
