// Another factor on the attention scores: 1/√d left out, applied twice, or of the wrong d.
//
// The factor that makes the replay nearest to b is searched on a logarithmic grid and then by
// golden section; well-known factors are tried first.

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/limits.h"
#include "diagnose/replay/attention.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

constexpr int kTurns = 40;

std::vector<double> known_scales(const AttentionStep& step) {
  const auto dim = static_cast<double>(step.b[0].in.query.features / step.form.heads);
  const auto width = static_cast<double>(step.b[0].in.query.features);
  const double own = step.form.scale;
  return {1,
          1 / std::sqrt(dim),
          1 / dim,
          1 / std::sqrt(width),
          own * own,
          own * std::sqrt(2.0),
          own / std::sqrt(2.0),
          own * 2,
          own / 2,
          std::sqrt(dim)};
}

double searched_scale(const AttentionStep& step) {
  AttentionForm form = step.form;
  const auto error_at = [&](double logarithm) {
    form.scale = step.form.scale * std::exp(logarithm);
    return step.b[0].error(form);
  };
  double centre = 0, least = INFINITY;
  for (double at = -5; at <= 5; at += 0.25) {
    const double here = error_at(at);
    if (here < least) least = here, centre = at;
  }
  double low = centre - 0.25, high = centre + 0.25;
  for (int turn = 0; turn < kTurns; ++turn) {
    const double left = high - limits::kGolden * (high - low),
                 right = low + limits::kGolden * (high - low);
    (error_at(left) < error_at(right) ? high : low) =
        error_at(left) < error_at(right) ? right : left;
  }
  return step.form.scale * std::exp((low + high) / 2);
}

std::optional<Explanation> explain(const Case& it, double scale) {
  const AttentionStep& step = *it.attention;
  if (near(scale, step.form.scale, 1e-6)) return std::nullopt;
  AttentionForm form = step.form;
  form.scale = scale;
  const uint64_t sizes[] = {step.b[0].in.query.features / form.heads, step.b[0].in.query.features};
  Explanation result = explain_form(
      it, form,
      fmt::format("B scales attention scores by {}, A by {}", factor_text(scale, sizes, 1e-3),
                  factor_text(step.form.scale, sizes, 1e-3)));
  result.parameters = {{"scale_a", step.form.scale}, {"scale_b", scale}};
  return result;
}

// Scores that one side caps, cap · tanh(s / cap), and the other does not, or elsewhere.
std::optional<Explanation> another_cap(const Case& it) {
  for (const double cap : {0.0, 50.0, 30.0, 20.0}) {
    AttentionForm form = it.attention->form;
    if (cap == form.cap) continue;
    form.cap = cap;
    Explanation found = explain_form(
        it, form,
        fmt::format("attention scores are capped at {} in A and at {} in B (0: not at all)",
                    it.attention->form.cap, cap));
    found.parameters = {{"cap_a", it.attention->form.cap}, {"cap_b", cap}};
    if (found.settled) return found;
  }
  return std::nullopt;
}

std::optional<Explanation> examine(const Case& it) {
  if (!it.attention) return std::nullopt;
  for (const double scale : known_scales(*it.attention)) {
    std::optional<Explanation> found = explain(it, scale);
    if (found && found->settled) return found;
  }
  if (std::optional<Explanation> capped = another_cap(it)) return capped;
  return explain(it, searched_scale(*it.attention));
}

}  // namespace

constinit const Diagnosis diagnoses::attention_scale = {
    .code = "attention_scale",
    .question = "Are attention scores scaled by another factor?",
    .explains = "1/√d left out, applied twice, or taken of another size; scores capped or not",
    .replays = true,
    .examine = examine,
};

}  // namespace tensordiff
