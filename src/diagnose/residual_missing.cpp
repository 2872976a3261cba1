// b is a less another tensor of the run, or with it twice: a residual sum that was left out, or
// done again on each rank.
//
// d = b − a is compared with every tensor x of the same layer and of the last one before it; a
// factor <d,x> / <x,x> of −1 is a missing sum, of +n one that was made n times more. Where the sum
// itself was not dumped, the norm that reads it shows it.

#include <fmt/format.h>

#include <cmath>

#include "diagnose/diagnosis.h"
#include "diagnose/fit.h"
#include "diagnose/norm_replay.h"

namespace tensordiff {
namespace {

constexpr double kWholeTolerance = 0.02;  // How near a whole number the factor lies.

bool may_be_summed(const Case& it, const Site& other) {
  const bool near_it = other.layer == it.site.layer ||
                       (it.site.layer && other.layer == *it.site.layer - 1) || !other.layer;
  return &other != &it.site && other.compared() && other.role != Role::setting && near_it &&
         other.views.a.elements() == it.site.views.a.elements();
}

// A norm of what should have been added to the stream, and of nothing else.
std::optional<Explanation> without_stream(const Case& it) {
  const std::optional<NormReplay> norm = replay_norm(it.run, it.site);
  if (!norm || !norm->alone) return std::nullopt;
  Explanation result;
  result.text = fmt::format("b normalises the {} alone: the residual sum is left out",
                            it.site.role == Role::mlp_norm ? "attention output" : "MLP output");
  result.after = norm->branch_left;
  result.settled = true;
  if (norm->branch_made.values.size() == it.b.values.size()) result.model = norm->branch_made;
  return result;
}

std::optional<Explanation> examine(const Case& it) {
  std::optional<Explanation> best = without_stream(it);
  if (best) return best;
  const Matrix gap =
      filled(it.a, [&](uint64_t row, uint64_t i) { return it.b.row(row)[i] - it.a.row(row)[i]; });
  for (const Site& other : it.run.sites) {
    if (!may_be_summed(it, other)) continue;
    const View& added = it.own ? other.views.b : other.views.a;
    const Result<Matrix> x = read_matrix(added, it.run.extent, it.a.first_token);
    if (!x.ok() || x.value().values.size() != gap.values.size()) continue;
    const double times = std::round(factor_between(x.value().values, gap.values));
    if (times == 0 || !near(factor_between(x.value().values, gap.values), times, kWholeTolerance))
      continue;
    Explanation found = explained_by(it, filled(it.a, [&](uint64_t row, uint64_t i) {
                                       return it.a.row(row)[i] + times * x.value().row(row)[i];
                                     }));
    if (best && found.after >= best->after) continue;
    found.text = times == -1 ? fmt::format("b is a without '{}': a sum left out", other.name_a)
                             : fmt::format("b is a {} {:.0f} × '{}': a sum made too often",
                                           times > 0 ? "+" : "−", std::abs(times), other.name_a);
    found.parameters = {{"tensor", other.name_a}, {"factor", times}};
    best = std::move(found);
  }
  return best;
}

}  // namespace

constinit const Diagnosis diagnoses::residual_missing = {
    .code = "residual_missing",
    .question = "Does b lack a tensor that a adds, or add it twice?",
    .explains = "a residual connection left out, or added once for each rank",
    .examine = examine,
};

}  // namespace tensordiff
