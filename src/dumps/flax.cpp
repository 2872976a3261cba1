// What flax's capture_intermediates gives: variables["intermediates"], nested by the names of
// modules, each with "__call__": a tuple with one element for each call, which may be a tuple of
// outputs. Names are joined by dots, or by slashes where somebody flattened them. JAX sorts keys,
// so their order is none of computing.

#include <algorithm>
#include <map>

#include "dumps/grammar.h"

namespace tensordiff {
namespace {

constexpr std::string_view kCall = ".__call__";
constexpr std::string_view kTop = "intermediates.";

std::string dotted(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '/', '.');
  return text;
}

bool is_call(std::string_view stored) {
  const std::string text = dotted(stored);
  const std::string_view name = text;
  const std::size_t at = name.rfind(kCall);
  if (at == std::string_view::npos || at == 0) return false;
  const std::string_view behind = name.substr(at + kCall.size());
  return behind.empty() || behind[0] == '.';
}

bool recognises(const Catalog& catalog) { return mostly(catalog, is_call); }

// The module that rotates gives (key, query) in Hugging Face's models; others expect the query
// first, which is the larger of them where they differ.
void turn_rotated(const Catalog& catalog, Dump& dump) {
  std::map<std::pair<int32_t, std::string_view>, std::vector<Record*>> outputs;
  for (Record& record : dump.records)
    if (record.path.ends_with(".rotary_emb") && record.output >= 0)
      outputs[{record.pass, record.path}].push_back(&record);
  for (auto& [key, both] : outputs) {
    if (both.size() != 2) continue;
    std::ranges::sort(both, {}, &Record::output);
    if (catalog.tensors[both[0]->tensor].elements() > catalog.tensors[both[1]->tensor].elements())
      continue;
    std::swap(both[0]->output, both[1]->output);
  }
}

Dump read(const Catalog& catalog) {
  Dump dump;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    if (!is_call(catalog.tensors[i].name)) continue;
    const std::string stored = dotted(catalog.tensors[i].name);
    std::string_view name = stored;
    if (name.starts_with(kTop)) name.remove_prefix(kTop.size());
    const std::size_t at = std::min(name.rfind(kCall), name.size());
    std::string_view behind = name.substr(std::min(at + kCall.size() + 1, name.size()));
    Record record{.tensor = i, .path = std::string(name.substr(0, at))};
    record.pass = whole_number(take_until(behind, ".")).value_or(0);
    if (const auto output = whole_number(behind)) record.output = *output;
    record.order = static_cast<int64_t>(i);
    dump.records.push_back(std::move(record));
  }
  turn_rotated(catalog, dump);
  return dump;
}

}  // namespace

constinit const Layout layouts::flax = {
    .name = "flax",
    .summary = "flax capture_intermediates: intermediates.layers_0.mlp.__call__.0",
    .recognises = recognises,
    .read = read,
};

}  // namespace tensordiff
