// The forward hook of sglang (--debug-tensor-dump-output-folder) and its copy for vLLM:
//
//   TP{t}_PP{p}_Rank{r}_pid{pid}/Pass{n:05d}.pt, each a dict {module path: tensor or list}
//
// The pid differs between runs and ranks. The hook of the whole model writes the file before it
// adds its own output: "model" and "logits_processor" of pass n stand first in the file of n + 1.

#include <map>
#include <optional>

#include "dumps/grammar.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

struct HookName {
  int32_t pass = 0;
  int32_t rank = Place::kNone;
  std::string_view path;
};

// "TP1_PP0_Rank1_pid201": the tensor parallel rank.
std::optional<int32_t> rank_in(std::string_view folder) {
  std::string_view rest = folder;
  const std::optional<int32_t> tp = number_after(take_until(rest, "_"), "TP");
  const std::optional<int32_t> pp = number_after(take_until(rest, "_"), "PP");
  const std::optional<int32_t> rank = number_after(take_until(rest, "_"), "Rank");
  return pp && rank && rest.starts_with("pid") ? tp : std::nullopt;
}

// "[TP1_PP0_Rank1_pid201/]Pass00003.model.norm". Folders that all names share are not in them.
std::optional<HookName> parse(std::string_view name) {
  HookName found;
  const std::size_t slash = name.rfind('/');
  if (slash != std::string_view::npos) {
    const std::string_view above = name.substr(0, slash);
    if (const auto rank = rank_in(above.substr(above.rfind('/') + 1))) found.rank = *rank;
    name = name.substr(slash + 1);
  }
  const std::optional<int32_t> pass = number_after(take_until(name, "."), "Pass");
  if (!pass || name.empty()) return std::nullopt;
  found.pass = *pass;
  found.path = name;
  return found;
}

bool recognises(const Catalog& catalog) {
  return mostly(catalog, [](std::string_view name) { return parse(name).has_value(); });
}

// Whether the pass has come to its own tensors.
bool is_of_pass(std::string_view path) {
  const Place place = read_place(path);
  return place.layer != Place::kNone || place.step == Role::embedding;
}

Dump read(const Catalog& catalog) {
  Dump dump;
  std::map<std::pair<int32_t, int32_t>, bool> begun;  // By rank and pass.
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    const std::optional<HookName> name = parse(catalog.tensors[i].name);
    if (!name) continue;
    Record record{.tensor = i, .path = std::string(name->path)};
    record.rank = name->rank;
    record.pass = name->pass;
    record.order = static_cast<int64_t>(i);
    record.fact = fact_in(catalog.tensors[i], name->path);
    bool& has_begun = begun[{name->rank, name->pass}];
    has_begun = has_begun || is_of_pass(name->path);
    if (!has_begun && record.pass > 0 && record.fact == RunFact::none) --record.pass;
    std::string_view path = name->path;
    if (const auto output = take_output(path);
        output && (read_place(path).known || is_rope_module(path))) {
      record.output = *output;
      record.path = path;
    }
    dump.records.push_back(std::move(record));
  }
  return dump;
}

}  // namespace

constinit const Layout layouts::forward_hook = {
    .name = "forward-hook",
    .summary = "sglang's and vLLM's forward hook: TP0_PP0_Rank0_pid7/Pass00000.pt",
    .recognises = recognises,
    .read = read,
};

}  // namespace tensordiff
