// The cache of TransformerLens: "blocks.3.attn.hook_q". Three of its names mean something else than
// they seem to:
//   - ln1.hook_normalized is the norm before its weight, which no other dump has;
//   - mlp.hook_pre is the gate where there is a hook_pre_linear, which then is up;
//   - mlp.hook_post is act(gate) * up in that case.

#include <algorithm>

#include "base/text.h"
#include "dumps/grammar.h"

namespace tensordiff {
namespace {

bool is_hook(std::string_view name) {
  return name.substr(name.rfind('.') + 1).starts_with("hook_");
}

bool recognises(const Catalog& catalog) { return mostly(catalog, is_hook); }

struct Hook {
  std::string_view ending, gated, plain;  // What it is in a gated MLP, and in another.
};
constexpr Hook kHooks[] = {
    {".hook_normalized", ".before_weight", ".before_weight"},
    {".hook_scale", ".size", ".size"},
    {".mlp.hook_pre", ".mlp.gate_proj", ".mlp.up_proj"},
    {".mlp.hook_pre_linear", ".mlp.up_proj", ".mlp.up_proj"},
    {".mlp.hook_post", ".mlp.gated", ".mlp.act"},
    {".attn.hook_rot_q", ".attn.q_rope", ".attn.q_rope"},
    {".attn.hook_rot_k", ".attn.k_rope", ".attn.k_rope"},
};

Dump read(const Catalog& catalog) {
  Dump dump;
  const bool gated = std::ranges::any_of(catalog.tensors, [](const Tensor& tensor) {
    return tensor.name.ends_with(".hook_pre_linear");
  });
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    const std::string& name = catalog.tensors[i].name;
    Record record{.tensor = i, .path = name, .name = name};
    record.order = static_cast<int64_t>(i);
    for (const Hook& hook : kHooks)
      if (name.ends_with(hook.ending))
        record.path = name.substr(0, name.size() - hook.ending.size()) +
                      std::string(gated ? hook.gated : hook.plain);
    dump.records.push_back(std::move(record));
  }
  return dump;
}

}  // namespace

constinit const Layout layouts::transformer_lens = {
    .name = "transformer-lens",
    .summary = "a cache of TransformerLens: blocks.0.attn.hook_q",
    .recognises = recognises,
    .read = read,
};

}  // namespace tensordiff
