// TransformerEngine's DumpTensors: tensor_dumps/rank_{r}/iter_{i:06d}/{layer}_{tensor}.pt with
// {"high_precision": tensor}. Dots in the name of the layer are underscores.
//
// "activation" is what the multiplication reads, so it is what the step before it gave: the norm of
// linear_qkv and linear_fc1, the heads of linear_proj, the activation of linear_fc2.

#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "dumps/grammar.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

constexpr std::string_view kKey = ".high_precision";
constexpr std::array<std::string_view, 6> kTensors = {"_activation", "_weight", "_output",
                                                      "_gradient",   "_wgrad",  "_dgrad"};

struct EngineName {
  int32_t rank = Place::kNone, iteration = 0;
  std::string_view layer, tensor;
};

std::optional<EngineName> parse(std::string_view name) {
  if (!name.ends_with(kKey)) return std::nullopt;
  name.remove_suffix(kKey.size());
  EngineName found;
  const std::vector<std::string_view> parts = split(name, '/');
  for (const std::string_view part : parts) {
    if (const auto rank = number_after(part, "rank_")) found.rank = *rank;
    if (const auto iteration = number_after(part, "iter_")) found.iteration = *iteration;
  }
  for (const std::string_view tensor : kTensors)
    if (parts.back().ends_with(tensor) && parts.back().size() > tensor.size()) {
      found.layer = parts.back().substr(0, parts.back().size() - tensor.size());
      found.tensor = tensor.substr(1);
      return found;
    }
  return std::nullopt;
}

bool recognises(const Catalog& catalog) {
  return mostly(catalog, [](std::string_view name) { return parse(name).has_value(); });
}

// What the step before a multiplication is called in a layer.
std::string_view step_before(std::string_view layer) {
  constexpr std::pair<std::string_view, std::string_view> kSteps[] = {
      {"linear_qkv", "input_layernorm"},
      {"layernorm_qkv", "input_layernorm"},
      {"linear_proj", "self_attn.attn"},
      {"linear_fc1", "post_attention_layernorm"},
      {"linear_fc2", "mlp.act_fn"}};
  for (const auto& [ending, step] : kSteps)
    if (layer.ends_with(ending)) return step;
  return {};
}

std::string path_of(const EngineName& name) {
  if (name.tensor == "output") return std::string(name.layer);
  if (name.tensor == "weight") return fmt::format("{}.weight", name.layer);
  const Place place = read_place(name.layer);
  const std::string_view step = step_before(name.layer);
  if (name.tensor == "activation" && !step.empty() && place.layer >= 0)
    return fmt::format("layers.{}.{}", place.layer, step);
  return fmt::format("{}.{}", name.layer, name.tensor);
}

Dump read(const Catalog& catalog) {
  Dump dump;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    const std::optional<EngineName> name = parse(catalog.tensors[i].name);
    if (!name) continue;
    Record record{.tensor = i, .path = path_of(*name)};
    record.name = fmt::format("{}_{}", name->layer, name->tensor);
    record.rank = name->rank;
    record.pass = name->iteration;
    record.order = static_cast<int64_t>(i);
    dump.records.push_back(std::move(record));
  }
  return dump;
}

}  // namespace

constinit const Layout layouts::transformer_engine = {
    .name = "transformer-engine",
    .summary = "TransformerEngine DumpTensors: rank_0/iter_000001/decoder_layers_3_x_output.pt",
    .recognises = recognises,
    .read = read,
};

}  // namespace tensordiff
