// Query heads read the wrong key heads: tiled (h mod n) against repeated (h / group), the two ways
// to spread a few key heads over many query heads.

#include <fmt/format.h>

#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/replay/attention.h"

namespace tensordiff {
namespace {

std::optional<Explanation> examine(const Case& it) {
  if (!it.attention) return std::nullopt;
  AttentionForm form = it.attention->form;
  if (form.kv_heads == 1 || form.kv_heads == form.heads) return std::nullopt;
  form.tiled = !form.tiled;
  Explanation result =
      explain_form(it, form,
                   fmt::format("B {} the {} key heads over {} query heads, A {} them",
                               form.tiled ? "tiles" : "repeats", form.kv_heads, form.heads,
                               form.tiled ? "repeats" : "tiles"));
  result.parameters = {{"heads", static_cast<double>(form.heads)},
                       {"kv_heads", static_cast<double>(form.kv_heads)},
                       {"b", std::string(form.tiled ? "tile" : "repeat")}};
  return result;
}

}  // namespace

constinit const Diagnosis diagnoses::head_mapping = {
    .code = "head_mapping",
    .question = "Do query heads read other key heads?",
    .explains = "grouped-query attention that tiles where it should repeat, or the reverse",
    .replays = true,
    .examine = examine,
};

}  // namespace tensordiff
