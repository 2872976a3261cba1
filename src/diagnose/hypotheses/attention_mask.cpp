// Another mask: none, one token too far or too short, another window.

#include <fmt/format.h>

#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/replay/attention.h"

namespace tensordiff {
namespace {

struct Candidate {
  AttentionForm form;
  std::string text;
};

std::vector<Candidate> candidates(const AttentionStep& step) {
  std::vector<Candidate> result;
  AttentionForm form = step.form;
  form.masked = !form.masked;
  result.push_back(
      {form, form.masked ? "B masks later tokens and A does not" : "B does not mask later tokens"});
  form = step.form;
  for (const int64_t diagonal : {1, -1, 2, -2}) {
    form.diagonal = diagonal;
    form.masked = true;
    result.push_back({form, fmt::format("B's mask is off by {}: a token sees {}", diagonal,
                                        diagonal > 0 ? "beyond itself" : "not even itself")});
  }
  form = step.form;
  form.window = 0;
  if (step.form.window > 0) {
    result.push_back(
        {form, fmt::format("B has no window; A sees only the last {} tokens", step.form.window)});
    form.masked = false;
    result.push_back({form, "B has neither mask nor window: each token sees all others"});
  }
  return result;
}

// The window that fits b's last token best: the one token that every window shortens.
Candidate best_window(const AttentionStep& step) {
  const AttentionProbe& probe = step.longest();
  AttentionForm form = step.form;
  form.heads = probe.heads, form.kv_heads = probe.kv_heads;
  const uint64_t window = nearest_window(probe.in, form, probe.out);
  form = step.form;
  form.window = window;
  return {form, fmt::format("B sees only the last {} tokens", window)};
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
