#include "analyze/structure.h"

#include <algorithm>
#include <bitset>
#include <set>

#include "analyze/patch.h"
#include "analyze/study.h"
#include "base/text.h"

namespace tensordiff {
namespace {

bool has(std::string_view name, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

// What the names and shapes hint at, counted once.
struct Hints {
  std::set<int64_t> layers;
  std::set<int64_t> experts;
  std::bitset<kRoles> roles;
  bool recurrent = false, convolutions = false, wide_kernels = false, matrices = false;

  bool has(Role role) const { return roles[static_cast<std::size_t>(role)]; }
};

void look_at(const Tensor& tensor, Hints& hints, Structure& found) {
  const Shape& shape = tensor.view.shape;
  const std::string name = lower(tensor.name);
  const Place& place = tensor.place;
  if (place.layer >= 0) hints.layers.insert(place.layer);
  if (has(name, {"weight_ih", "weight_hh", "lstm", "gru."})) hints.recurrent = true;
  // Activations have four axes as well, but are not called so.
  if (shape.size() == 4 && has(name, {"weight", "kernel", "conv"})) {
    hints.convolutions = true;
    hints.wide_kernels |= shape[2] * shape[3] > 1;
  }
  hints.matrices |= shape.size() == 2;
  if (!place.known) return;
  hints.roles.set(static_cast<std::size_t>(place.step));
  if (place.expert >= 0) hints.experts.insert(place.expert);
  if (place.expert == Place::kAll && !shape.empty())
    found.experts = std::max(found.experts, shape[0]);
  if (place.step == Role::embedding && shape.size() == 2) {
    found.vocabulary = shape[0];
    found.width = shape[1];
  }
  if (place.step == Role::attention_norm && shape.size() == 1 && !found.width)
    found.width = shape[0];
}

// The first matrix of this role; null where there is none.
const Tensor* matrix_of(const Catalog& catalog, Role role) {
  for (const Tensor& tensor : catalog.tensors)
    if (tensor.fault.empty() && tensor.place.known && tensor.place.step == role &&
        tensor.place.layer < 0 && tensor.view.shape.size() == 2 && tensor.shards.empty())
      return &tensor;
  return nullptr;
}

Family family_of(const Hints& hints, const Structure& found) {
  const bool attends =
      hints.has(Role::query) || hints.has(Role::fused_qkv) || hints.has(Role::attention_output);
  if (attends && found.experts > 0) return Family::expert_transformer;
  if (attends && hints.convolutions && !hints.has(Role::embedding))
    return Family::vision_transformer;
  if (attends && (hints.has(Role::gate) || hints.has(Role::gate_up)))
    return Family::gated_transformer;
  if (attends) return Family::transformer;
  if (hints.recurrent) return Family::recurrent;
  if (hints.convolutions) return Family::convolutional;
  return hints.matrices ? Family::mlp : Family::unknown;
}

}  // namespace

std::string_view name_of(Family family) {
  constexpr std::string_view kNames[] = {"unknown",
                                         "mlp",
                                         "convolutional",
                                         "recurrent",
                                         "transformer",
                                         "transformer, gated mlp",
                                         "vision transformer",
                                         "transformer, mixture of experts"};
  return kNames[static_cast<std::size_t>(family)];
}

std::string_view name_of(ModelPart part) {
  constexpr std::string_view kNames[] = {"embedding", "head",        "norm", "attention",
                                         "mlp",       "convolution", "other"};
  return kNames[static_cast<std::size_t>(part)];
}

ModelPart part_of(std::string_view full, const Place& place, const Shape& shape) {
  const std::string name = lower(full);
  const Role role = place.known ? place.step : Role::other;
  if (role == Role::embedding || role == Role::positions || has(name, {"embed", "wte", "wpe"}))
    return ModelPart::embedding;
  if (role == Role::logits || has(name, {"lm_head", "classifier"})) return ModelPart::head;
  if (is_norm(role) || (shape.size() <= 1 && has(name, {"norm", "ln_", "bn", "running_"})))
    return ModelPart::norm;
  if (has(name, {"attn", "attention"}) || role == Role::query || role == Role::key ||
      role == Role::value || role == Role::fused_qkv || role == Role::attention_output)
    return ModelPart::attention;
  if (role == Role::gate || role == Role::up || role == Role::mlp_output || role == Role::gate_up ||
      role == Role::router || has(name, {"mlp", "ffn", "experts", "feed_forward"}))
    return ModelPart::mlp;
  if (shape.size() == 4) return ModelPart::convolution;
  return ModelPart::other;
}

const Tensor* tied_head(const Catalog& catalog) {
  const Tensor* head = matrix_of(catalog, Role::logits);
  const Tensor* embedding = matrix_of(catalog, Role::embedding);
  if (!head || !embedding || head->view.shape != embedding->view.shape) return nullptr;
  constexpr std::size_t kSample = 4096;
  const Result<std::vector<double>> x = read_values(head->view, kSample);
  const Result<std::vector<double>> y = read_values(embedding->view, kSample);
  return x.ok() && y.ok() && x.value() == y.value() ? head : nullptr;
}

const Tensor* embedding_as_head(const Catalog& catalog) {
  // What ends in a norm and no head gives logits by its embedding, as generating models do.
  const bool ends_in_norm = std::ranges::any_of(catalog.tensors, [](const Tensor& tensor) {
    return tensor.place.known && tensor.place.step == Role::final_norm;
  });
  if (!ends_in_norm || matrix_of(catalog, Role::logits)) return nullptr;
  return matrix_of(catalog, Role::embedding);
}

Structure structure_of(const Catalog& catalog, const Facts& facts) {
  Structure found;
  Hints hints;
  const Tensor* tied = tied_head(catalog);
  for (const Tensor& tensor : catalog.tensors) {
    if (!tensor.fault.empty() || &tensor == tied) continue;
    if (purpose_of(tensor.name, tensor.view.shape) != Purpose::weight) continue;
    const uint64_t elements = tensor.elements() * std::max<std::size_t>(1, tensor.shards.size());
    found.parameters += elements;
    found.by_part[name_of(part_of(tensor.name, tensor.place, tensor.view.shape))] += elements;
    look_at(tensor, hints, found);
  }
  found.layers = hints.layers.size();
  found.experts = std::max<uint64_t>(found.experts, hints.experts.size());
  found.convolutions = hints.wide_kernels;
  found.heads = facts.model().heads;
  found.kv_heads = facts.model().kv_heads;
  found.family = family_of(hints, found);
  return found;
}

}  // namespace tensordiff
