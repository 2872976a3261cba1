// Tensors of llama.cpp's graph by their names, {name}-{layer}: "attn_norm-3", "result_output".
//
// Of several tensors under one name ("Qcur-0@1" in a log) the last counts: Qcur and Kcur are behind
// RoPE, and the first of them are the projections. Llama's rows
// of these are in the order of GGUF, two that are rotated together side by side. In the last layer
// only rows of tokens that have an output are kept from ffn_inp on: of a prompt the last.

#include <algorithm>
#include <array>
#include <map>

#include "base/text.h"
#include "dumps/grammar.h"

namespace tensordiff {
namespace {

constexpr std::array<std::string_view, 24> kNames = {
    "inp_embd",    "embd",     "attn_norm",  "Qcur",        "Kcur",          "Vcur",
    "kqv_out",     "attn_out", "ffn_inp",    "ffn_norm",    "ffn_up",        "ffn_gate",
    "ffn_silu",    "ffn_gelu", "ffn_swiglu", "ffn_geglu",   "ffn_gate_par",  "ffn_moe_logits",
    "ffn_moe_out", "ffn_out",  "l_out",      "result_norm", "result_output", "kqv_merged_cont"};

struct GraphName {
  std::string_view name, layer;
  int32_t call = 0;  // Which of those under one name.
};

// "Qcur-0 (reshaped)" is what stands behind another shape of the same, before it is computed on.
std::string_view without_view(std::string_view name) {
  while (name.ends_with(')')) {
    const std::size_t at = name.rfind(" (");
    if (at == std::string_view::npos || at == 0) break;
    name = name.substr(0, at);
  }
  return name;
}

bool is_view(std::string_view name) { return without_view(name).size() != name.size(); }

GraphName parse(std::string_view name) {
  name = without_view(name);
  const std::size_t at = name.rfind('@');
  if (at != std::string_view::npos)
    if (const auto call = whole_number(name.substr(at + 1))) {
      GraphName found = parse(name.substr(0, at));
      found.call = *call;
      return found;
    }
  const std::size_t dash = name.rfind('-');
  if (dash == std::string_view::npos || !whole_number(name.substr(dash + 1))) return {name, {}};
  return {name.substr(0, dash), name.substr(dash + 1)};
}

std::size_t rank_of(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(kNames, name) - kNames.begin());
}

bool recognises(const Catalog& catalog) {
  return mostly(catalog, [](std::string_view name) {
    const GraphName found = parse(name);
    return !found.layer.empty() && rank_of(found.name) < kNames.size();
  });
}

// Files of a folder come by the alphabet, which is no order of computing.
int64_t order_of(const GraphName& name, std::size_t index) {
  const int64_t rank = static_cast<int64_t>(rank_of(name.name));
  // Nodes that nobody named, and views of the cache, tell nothing: what is known stands first.
  const bool first = name.name.starts_with("inp_") || name.name == "embd";
  const int64_t layer = name.layer.empty() ? (first ? -1 : INT32_MAX) : *whole_number(name.layer);
  return ((layer + 1) * 64 + rank) * (1 << 20) + static_cast<int64_t>(index);
}

Dump read(const Catalog& catalog) {
  static constexpr std::pair<std::string_view, std::string_view> kMeanings[] = {
      {"Qcur", "self_attn.q_rope"},
      {"Kcur", "self_attn.k_rope"},
      {"ffn_moe_out", "mlp"},
      {"ffn_moe_logits", "mlp.router"}};
  static constexpr std::pair<std::string_view, std::string_view> kProjections[] = {
      {"Qcur", "self_attn.q_proj"}, {"Kcur", "self_attn.k_proj"}, {"Vcur", "self_attn.v_proj"}};
  Dump dump;
  std::map<std::pair<std::string_view, std::string_view>, int32_t> calls;  // The last of each.
  for (const Tensor& tensor : catalog.tensors) {
    if (is_view(tensor.name)) continue;
    const GraphName parts = parse(tensor.name);
    int32_t& last = calls[{parts.name, parts.layer}];
    last = std::max(last, parts.call);
  }
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    const std::string& name = catalog.tensors[i].name;
    const GraphName parts = parse(name);
    Record record{.tensor = i, .path = name, .name = name};
    record.order = order_of(parts, i);
    if (is_view(name)) {
      dump.records.push_back(std::move(record));
      continue;
    }
    const bool last = parts.call == calls[{parts.name, parts.layer}];
    if (last && parts.call > 0) record.path = name.substr(0, name.rfind('@'));
    const auto mean = [&](const auto& meanings) {
      for (const auto& [from, to] : meanings)
        if (parts.name == from && !parts.layer.empty())
          record.path = "layers." + std::string(parts.layer) + "." + std::string(to);
    };
    if (last) mean(kMeanings);
    if (!last && parts.call == 0) mean(kProjections);
    dump.records.push_back(std::move(record));
  }
  return dump;
}

}  // namespace

constinit const Layout layouts::llama_cpp = {
    .name = "llama-cpp",
    .summary = "tensors of llama.cpp's graph: attn_norm-3, result_output",
    .recognises = recognises,
    .read = read,
};

}  // namespace tensordiff
