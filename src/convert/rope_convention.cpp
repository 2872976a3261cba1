#include "convert/rope_convention.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "convert/gguf_rope.h"
#include "formats/model_config.h"

namespace tensordiff {
namespace {

// What a format says about the rows of q and k.
enum class RopeOrder {
  unknown,
  hugging_face,  // As Hugging Face stores the architecture: halves, but for a few.
  turned,        // GGUF, and the converter of llama.cpp turns halves into neighbours.
  kept,          // GGUF, and the converter keeps the order of Hugging Face.
  unlisted,      // GGUF of an architecture that is in neither list of gguf_rope.h.
  meta,          // Meta's own names of Llama: neighbours.
};

bool has_name(const Catalog& catalog, std::string_view part) {
  return std::ranges::any_of(catalog.tensors, [&](const Tensor& tensor) {
    return tensor.name.find(part) != std::string::npos;
  });
}

struct Convention {
  RopeOrder order = RopeOrder::unknown;
  std::string text;  // "GGUF of 'llama', whose q and k rows are turned for RoPE on neighbours"
};

Convention convention_of(const Catalog& catalog) {
  for (const Metadata& entry : catalog.metadata) {
    if (entry.key != "general.architecture") continue;
    if (std::ranges::find(kGgufTurned, entry.value) != std::end(kGgufTurned))
      return {RopeOrder::turned,
              fmt::format("a GGUF of '{}', whose RoPE turns neighbouring rows", entry.value)};
    if (std::ranges::find(kGgufKept, entry.value) != std::end(kGgufKept))
      return {RopeOrder::kept,
              fmt::format("a GGUF of '{}', which keeps the rows of Hugging Face", entry.value)};
    return {RopeOrder::unlisted, ""};
  }
  // Llama 4 has Meta's order also in Hugging Face's names.
  if (has_name(catalog, ".self_attn.q_proj.weight") && has_name(catalog, ".feed_forward."))
    return {};
  if (has_name(catalog, ".attention.wq.weight"))
    return {RopeOrder::meta, "in Meta's names, whose RoPE turns neighbouring rows"};
  if (has_name(catalog, ".self_attn.q_proj.weight"))
    return {RopeOrder::hugging_face, "in Hugging Face's names, whose RoPE turns halves"};
  return {};
}

bool is_pair(RopeOrder a, RopeOrder b, RopeOrder x, RopeOrder y) {
  return (a == x && b == y) || (a == y && b == x);
}

std::optional<uint64_t> head_of(const Catalog& catalog) {
  const ModelConfig config = model_config_of(catalog);
  if (config.head_dim) return config.head_dim;
  if (!config.hidden || !config.heads || *config.heads == 0) return std::nullopt;
  return *config.hidden / *config.heads;
}

constexpr uint64_t kHeadMax = 128;  // Features of a head where nobody says: as most models have.

// Where no configuration says how large a head is: as large as the rows of all q and k allow.
std::optional<uint64_t> head_by_rows(const Catalog& catalog) {
  uint64_t head = 0;
  for (const Tensor& tensor : catalog.tensors) {
    const Role role = tensor.place.step;
    if ((role == Role::query || role == Role::key) && !tensor.view.shape.empty())
      head = std::gcd(head, tensor.view.shape[0]);
  }
  while (head > kHeadMax && head % 2 == 0) head /= 2;
  return head == 0 ? std::nullopt : std::optional(head);
}

}  // namespace

std::string open_rope_order(const Catalog& a, const Catalog& b) {
  const RopeOrder of_a = convention_of(a).order, of_b = convention_of(b).order;
  if (!is_pair(of_a, of_b, RopeOrder::hugging_face, RopeOrder::unlisted)) return "";
  return "the rows of q and k are compared in the order that the values show: the RoPE order of "
         "this GGUF architecture is not known";
}

std::optional<ImpliedRows> implied_rope_rows(const Catalog& a, const Catalog& b) {
  using enum RopeOrder;
  const Convention of_a = convention_of(a), of_b = convention_of(b);
  const auto are = [&](RopeOrder x, RopeOrder y) { return is_pair(of_a.order, of_b.order, x, y); };
  ImpliedRows implied{{}, fmt::format("A is {}; B is {}", of_a.text, of_b.text)};
  if (are(hugging_face, kept) || are(meta, turned)) return implied;
  if (!are(hugging_face, turned) && !are(hugging_face, meta)) return std::nullopt;
  std::optional<uint64_t> head = head_of(a);
  if (!head) head = head_of(b);
  if (!head) head = head_by_rows(of_a.order == hugging_face ? a : b);
  if (!head || *head < 4 || *head % 2 != 0) return std::nullopt;
  implied.rows.order = RowOrder::rope;
  implied.rows.side = of_a.order == hugging_face ? 'a' : 'b';
  implied.rows.head = *head;
  return implied;
}

}  // namespace tensordiff
