// What exceeds the elementwise tolerance is rounding: as small as the noise model says, of mean
// zero, and spread over all positions.

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/noise/coarse_products.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

std::optional<Explanation> examine(const Case& it) {
  if (it.site.bug() || it.before == 0) return std::nullopt;
  double mean = 0, spread = 0;
  for (std::size_t i = 0; i < it.a.values.size(); ++i) {
    const double gap = it.b.values[i] - it.a.values[i];
    if (!std::isfinite(gap)) continue;
    mean += gap;
    spread += gap * gap;
  }
  Explanation result;
  result.after = it.before;
  result.settled = true;
  result.text = fmt::format(
      "rounding: relative error {}; rounding explains at most {}, and it has no structure",
      human_number(it.site.error), human_number(it.site.budget));
  if (const std::string_view products = name_of_products(it.run.product_roundoff);
      !products.empty())
    result.text = fmt::format("B's products (matmuls, convolutions) round like {}; {}", products,
                              result.text);
  result.parameters = {
      {"budget", it.site.budget},
      {"roundoff", it.site.roundoff},
      {"bias", spread > 0 ? mean / std::sqrt(spread * double(it.a.values.size())) : 0.0}};
  return result;
}

}  // namespace

constinit const Diagnosis diagnoses::precision_noise = {
    .code = "precision_noise",
    .question = "Is the difference rounding?",
    .explains = "another order of sums, a narrower type, another kernel: no mistake",
    .examine = examine,
};

}  // namespace tensordiff
