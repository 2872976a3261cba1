// Another mask: none, one token too far or too short, another window.

#include <fmt/format.h>

#include <cmath>

#include "diagnose/attention.h"
#include "diagnose/diagnosis.h"

namespace tensordiff {
namespace {

constexpr uint64_t kWindowsTried = 512;  // Windows of more tokens are tried in powers of two only.

struct Candidate {
  AttentionForm form;
  std::string text;
};

std::vector<Candidate> candidates(const AttentionStep& step) {
  std::vector<Candidate> result;
  AttentionForm form = step.form;
  form.masked = !form.masked;
  result.push_back({form, form.masked ? "b masks what comes after a token and a does not"
                                      : "b does not mask what comes after a token"});
  form = step.form;
  for (const int64_t diagonal : {1, -1, 2, -2}) {
    form.diagonal = diagonal;
    form.masked = true;
    result.push_back({form, fmt::format("the mask of b is off by {}: a token sees {}", diagonal,
                                        diagonal > 0 ? "beyond itself" : "not even itself")});
  }
  form = step.form;
  form.window = 0;
  if (step.form.window > 0)
    result.push_back(
        {form, fmt::format("b has no window; a sees only the last {} tokens", step.form.window)});
  return result;
}

// The window that fits b's last token best: the one token that every window shortens.
Candidate best_window(const AttentionStep& step) {
  AttentionProbe probe = step.longest();
  const uint64_t tokens = probe.in.key.tokens;
  probe.rows = {tokens - 1};
  AttentionForm form = step.form, best = step.form;
  double least = INFINITY;
  for (uint64_t window = 1; window < tokens;
       window = window < kWindowsTried ? window + 1 : window * 2) {
    form.window = window;
    const double here = window == step.form.window ? INFINITY : probe.error(form);
    if (here < least) least = here, best = form;
  }
  return {best, fmt::format("b sees only the last {} tokens", best.window)};
}

std::optional<Explanation> examine(const Case& it) {
  if (!it.attention) return std::nullopt;
  std::optional<Explanation> best;
  std::vector<Candidate> all = candidates(*it.attention);
  all.push_back(best_window(*it.attention));
  for (const Candidate& candidate : all) {
    Explanation found = explain_form(it, candidate.form, candidate.text);
    const AttentionForm& form = candidate.form;
    found.parameters = {{"masked", std::string(form.masked ? "yes" : "no")},
                        {"diagonal", static_cast<double>(form.diagonal)},
                        {"window", static_cast<double>(form.window)}};
    if (found.settled) return found;
    if (!best || found.after < best->after) best = std::move(found);
  }
  return best;
}

}  // namespace

constinit const Diagnosis diagnoses::attention_mask = {
    .code = "attention_mask",
    .question = "Does attention see other tokens?",
    .explains = "no causal mask, a mask off by one, a window left out or of another size",
    .replays = true,
    .examine = examine,
};

}  // namespace tensordiff
