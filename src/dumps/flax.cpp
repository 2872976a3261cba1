// What flax's capture_intermediates gives: variables["intermediates"], nested by the names of
// modules, each with "__call__": a tuple with one element for each call. The order of keys is none
// of computing.

#include "dumps/grammar.h"

namespace tensordiff {
namespace {

constexpr std::string_view kCall = ".__call__";
constexpr std::string_view kTop = "intermediates.";

bool is_call(std::string_view name) {
  const std::size_t at = name.rfind(kCall);
  if (at == std::string_view::npos || at == 0) return false;
  const std::string_view behind = name.substr(at + kCall.size());
  return behind.empty() || behind[0] == '.';
}

bool recognises(const Catalog& catalog) { return mostly(catalog, is_call); }

Dump read(const Catalog& catalog) {
  Dump dump;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    std::string_view name = catalog.tensors[i].name;
    if (!is_call(name)) continue;
    if (name.starts_with(kTop)) name.remove_prefix(kTop.size());
    const std::size_t at = std::min(name.rfind(kCall), name.size());
    std::string_view behind = name.substr(std::min(at + kCall.size() + 1, name.size()));
    Record record{.tensor = i, .path = std::string(name.substr(0, at))};
    record.pass = whole_number(take_until(behind, ".")).value_or(0);
    if (const auto output = whole_number(behind)) record.output = *output;
    record.order = static_cast<int64_t>(i);
    dump.records.push_back(std::move(record));
  }
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
