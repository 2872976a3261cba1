// What transformers' model_addition_debugger_context writes with use_repr=False, a file of one
// tensor "data" for each value that goes into a module or comes out of it:
//
//   {Model}.{module}_outputs[_{i or key}].safetensors     of modules that have no others in them
//   {Model}.{module}_inputs_{args_0 or kwargs_key}.safetensors
//   {Model}_outputs_logits.safetensors                    of the whole model
//
// What goes into a module came out of another one, but for the token ids. The JSON beside the files
// has no order that the files need: modules are called in the order of their roles.

#include <algorithm>

#include "dumps/grammar.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

constexpr std::string_view kData = ".data";

struct DebugName {
  std::string_view module;  // Empty: the whole model.
  std::string_view key;     // Behind the direction: "0", "logits", "kwargs_input_ids".
  bool in = false;
};

std::optional<DebugName> parse(std::string_view name) {
  if (!name.ends_with(kData)) return std::nullopt;
  name.remove_suffix(kData.size());
  name = name.substr(name.rfind('/') + 1);
  for (const auto& [word, in] : {std::pair("_outputs", false), {"_inputs", true}}) {
    const std::string_view mark = word;
    const std::size_t at = name.rfind(mark);
    if (at == std::string_view::npos || at == 0) continue;
    std::string_view key = name.substr(at + mark.size());
    if (!key.empty() && key[0] != '_') continue;
    if (!key.empty()) key.remove_prefix(1);
    std::string_view module = name.substr(0, at);
    // The class of the model, in front of all paths.
    if (module[0] < 'A' || module[0] > 'Z') continue;
    take_until(module, ".");
    return DebugName{module, key, in};
  }
  return std::nullopt;
}

bool recognises(const Catalog& catalog) {
  return mostly(catalog, [](std::string_view name) { return parse(name).has_value(); });
}

int64_t order_of(std::string_view path) {
  const Place place = read_place(path);
  const bool first = place.layer < 0 && place.step <= Role::embedding_norm;
  return order_by_role(place.layer >= 0 ? place.layer : first ? -1 : INT32_MAX, place.step);
}

Dump read(const Catalog& catalog) {
  constexpr std::string_view kKeywords = "kwargs_";
  Dump dump;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    std::optional<DebugName> name = parse(catalog.tensors[i].name);
    if (!name) continue;
    Record record{.tensor = i, .path = std::string(name->module)};
    if (name->in) {
      if (!name->module.empty() || !name->key.starts_with(kKeywords)) continue;
      record.path = name->key.substr(kKeywords.size());
      record.fact = fact_in(catalog.tensors[i], record.path);
      if (record.fact == RunFact::none) continue;
    } else if (const std::optional<int32_t> output = whole_number(name->key)) {
      record.output = *output;
    } else if (!name->key.empty()) {
      record.path.append(record.path.empty() ? "" : ".").append(name->key);
    }
    if (record.path.empty()) continue;
    record.order = order_of(record.path);
    dump.records.push_back(std::move(record));
  }
  return dump;
}

}  // namespace

constinit const Layout layouts::transformers_debugger = {
    .name = "transformers-debugger",
    .summary = "transformers' model debugger: LlamaForCausalLM.model.norm_outputs.safetensors",
    .recognises = recognises,
    .read = read,
};

}  // namespace tensordiff
