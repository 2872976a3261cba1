// TransformerEngine's DumpTensors: a file for each tensor with {"high_precision": tensor},
//
//   tensor_dumps/rank_{r}/{layer}_{tensor}_iter_{i:06d}.pt
//   tensor_dumps/rank_{r}/iter_{i:06d}/{layer}_{tensor}.pt    in other versions
//
// Dots in the name of the layer are underscores. "activation" is what the multiplication reads, so
// it is what the step before it gave: the norm of linear_qkv and linear_fc1, the heads of
// linear_proj, the product of linear_fc2. TransformerLayer calls them layernorm_qkv, proj,
// layernorm_mlp.fc1 and layernorm_mlp.fc2; Megatron has the first names. LogTensorStats writes
// statistics under the same names (formats/statistics.cpp), with the dots.

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "dumps/grammar.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

constexpr std::string_view kKeys[] = {".high_precision", ".statistics"};
constexpr std::array<std::string_view, 6> kTensors = {"_activation", "_weight", "_output",
                                                      "_gradient",   "_wgrad",  "_dgrad"};

struct EngineName {
  int32_t rank = Place::kNone, iteration = 0;
  std::string_view layer, tensor;
};

std::optional<EngineName> parse(std::string_view name) {
  const auto key =
      std::ranges::find_if(kKeys, [&](std::string_view each) { return name.ends_with(each); });
  if (key == std::end(kKeys)) return std::nullopt;
  name.remove_suffix(key->size());
  EngineName found;
  const std::vector<std::string_view> parts = split(name, '/');
  for (const std::string_view part : parts) {
    if (const auto rank = number_after(part, "rank_")) found.rank = *rank;
    if (const auto iteration = number_after(part, "iter_")) found.iteration = *iteration;
    constexpr std::string_view kLog = "globalrank-";
    if (const std::size_t at = part.find(kLog); at != std::string_view::npos)
      if (const auto rank = number_after(part.substr(at), kLog)) found.rank = *rank;
  }
  std::string_view file = parts.back();
  if (const std::size_t at = file.rfind("_iter_"); at != std::string_view::npos)
    if (const auto iteration = number_after(file.substr(at), "_iter_")) {
      found.iteration = *iteration;
      file = file.substr(0, at);
    }
  for (const std::string_view tensor : kTensors)
    if (file.ends_with(tensor) && file.size() > tensor.size()) {
      found.layer = file.substr(0, file.size() - tensor.size());
      found.tensor = tensor.substr(1);
      return found;
    }
  return std::nullopt;
}

bool recognises(const Catalog& catalog) {
  return mostly(catalog, [](std::string_view name) { return parse(name).has_value(); });
}

uint64_t width_of(const Tensor& tensor) {
  return tensor.view.shape.empty() ? 0 : tensor.view.shape.back();
}

// Whether the first projection of an MLP gives twice what the second reads: gate and up.
bool is_gated(const Catalog& catalog) {
  uint64_t given = 0, read = 0;
  for (const Tensor& tensor : catalog.tensors) {
    const std::optional<EngineName> name = parse(tensor.name);
    if (!name) continue;
    if (name->layer.ends_with("fc1") && name->tensor == "output") given = width_of(tensor);
    if (name->layer.ends_with("fc2") && name->tensor == "activation") read = width_of(tensor);
  }
  return given == 0 || given == 2 * read;
}

// What the step before a multiplication is called in a layer.
std::string_view step_before(std::string_view layer, bool gated) {
  constexpr std::pair<std::string_view, std::string_view> kSteps[] = {
      {"qkv", "input_layernorm"},
      {"proj", "self_attn.attn"},
      {"fc1", "post_attention_layernorm"},
      {"fc2", "mlp.gated"}};
  for (const auto& [ending, step] : kSteps)
    if (layer.ends_with(ending)) return step == "mlp.gated" && !gated ? "mlp.act" : step;
  return {};
}

std::string path_of(const EngineName& name, bool gated) {
  if (name.tensor == "output") return std::string(name.layer);
  if (name.tensor == "weight") return fmt::format("{}.weight", name.layer);
  const Place place = read_place(name.layer);
  const std::string_view step = step_before(name.layer, gated);
  if (name.tensor == "activation" && !step.empty() && place.layer >= 0)
    return fmt::format("layers.{}.{}", place.layer, step);
  return fmt::format("{}.{}", name.layer, name.tensor);
}

Dump read(const Catalog& catalog) {
  Dump dump;
  const bool gated = is_gated(catalog);
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    const std::optional<EngineName> name = parse(catalog.tensors[i].name);
    if (!name) continue;
    Record record{.tensor = i, .path = path_of(*name, gated)};
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
