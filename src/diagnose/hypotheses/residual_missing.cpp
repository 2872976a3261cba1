// b is a less another tensor of the run, or with it twice: a residual sum that was left out, or
// done again on each rank.
//
// d = b − a is compared with every tensor x of the same layer and of the last one before it; a
// factor <d,x> / <x,x> of −1 is a missing sum, of +n one that was made n times more. Where the sum
// itself was not dumped, the norm that reads it shows it.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagnose/graph/heads.h"
#include "diagnose/hypotheses/branch_alone.h"
#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/limits.h"
#include "diagnose/noise/norms.h"
#include "diagnose/replay/norm_lines.h"
#include "diagnose/replay/norm_replay.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTokensMin = 4;  // For two unknowns of each feature.
constexpr uint64_t kTokensReplayed = 32;
constexpr double kAloneMin = 1e-4;
constexpr double kNotAlone = 0.1;  // What a norm of the branch alone leaves of a's.

bool may_be_summed(const Case& it, const Site& other) {
  const bool near_it = other.block == it.site.block ||
                       (it.site.block && other.block == *it.site.block - 1) || !other.block;
  return &other != &it.site && other.compared() && other.role != Role::setting && near_it &&
         other.views.a.elements() == it.site.views.a.elements();
}

std::string alone_text(const Case& it) {
  return fmt::format("B normalizes the {} alone: the residual sum is missing",
                     it.site.role == Role::mlp_norm ? "attention output" : "MLP output");
}

// What was added to the stream last before a norm reads it.
const Site* added_before(const Case& it) {
  const Site* last = nullptr;
  for (const Site& other : it.run.sites) {
    if (&other == &it.site) return last && may_be_summed(it, *last) ? last : nullptr;
    if (reduces_over_ranks(other.role)) last = &other;
  }
  return nullptr;
}

// What a norm of it, with or without centring, leaves of a norm, on one side; nothing where that
// cannot be told.
std::optional<double> left_alone(const Case& it, const Site& branch, View AlignedPair::*side) {
  const Matrix& out = side == &AlignedPair::a ? it.a : it.b;
  const Result<Matrix> in =
      read_matrix(branch.views.*side, it.run.extent, it.a.first_token, out.values.size());
  const double size = norm(out.values);
  if (!in.ok() || !same_form(in.value(), out) || size == 0) return std::nullopt;
  double least = INFINITY;
  for (const bool centred : {true, false}) {
    const Matrix unit = unit_tokens(in.value(), centred);
    const Matrix made = on_lines(unit, lines_between(unit, out, centred));
    least = std::min(least, distance(made.values, out.values) / size);
  }
  return least;
}

}  // namespace

// The replay of norms knows that only where the stream was dumped.
std::optional<Explanation> branch_alone(const Case& it) {
  const Site* branch =
      is_norm(it.site.role) && it.a.rows() >= kTokensMin ? added_before(it) : nullptr;
  const auto of_a = branch ? left_alone(it, *branch, &AlignedPair::a) : std::nullopt;
  const auto of_b = of_a ? left_alone(it, *branch, &AlignedPair::b) : std::nullopt;
  if (!of_b || *of_a < kNotAlone || *of_b > std::max(kAloneMin, 8 * it.site.roundoff))
    return std::nullopt;
  Explanation result;
  result.text = alone_text(it);
  result.after = *of_b;
  result.settled = true;
  return result;
}

namespace {

// A norm of what should have been added to the stream, and of nothing else.
std::optional<Explanation> without_stream(const Case& it) {
  const std::optional<NormReplay> norm = replay_norm(it.run, it.site, {0, kTokensReplayed});
  if (!norm || !norm->alone) return std::nullopt;
  Explanation result;
  result.text = alone_text(it);
  result.after = norm->branch_left;
  result.settled = true;
  if (same_form(norm->branch_made, it.b)) result.model = norm->branch_made;
  return result;
}

std::optional<Explanation> examine(const Case& it) {
  for (const auto& alone : {without_stream, branch_alone})
    if (std::optional<Explanation> found = alone(it)) return found;
  std::optional<Explanation> best;
  const Matrix gap =
      filled(it.a, [&](uint64_t row, uint64_t i) { return it.b.row(row)[i] - it.a.row(row)[i]; });
  for (const Site& other : it.run.sites) {
    if (!may_be_summed(it, other)) continue;
    const View& added = it.own ? other.views.b : other.views.a;
    const Result<Matrix> x = read_matrix(added, it.run.extent, it.a.first_token, gap.values.size());
    if (!x.ok() || !same_form(x.value(), gap)) continue;
    const double times = std::round(factor_between(x.value().values, gap.values));
    if (times == 0 || !near(factor_between(x.value().values, gap.values), times, limits::kWhole))
      continue;
    Explanation found = explained_by(it, filled(it.a, [&](uint64_t row, uint64_t i) {
                                       return it.a.row(row)[i] + times * x.value().row(row)[i];
                                     }));
    if (best && found.after >= best->after) continue;
    found.text = times == -1 ? fmt::format("B is A without '{}': a missing sum", other.a.name)
                             : fmt::format("B = A {} {:.0f} × '{}': added too often",
                                           times > 0 ? "+" : "−", std::abs(times), other.a.name);
    found.parameters = {{"tensor", other.a.name}, {"factor", times}};
    best = std::move(found);
  }
  return best;
}

}  // namespace

constinit const Diagnosis diagnoses::residual_missing = {
    .code = "residual_missing",
    .question = "Does B omit a tensor that A adds, or add it twice?",
    .explains = "a residual connection left out, or added once for each rank",
    .examine = examine,
};

}  // namespace tensordiff
