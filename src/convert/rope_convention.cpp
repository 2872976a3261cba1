#include "convert/rope_convention.h"

#include <algorithm>

#include "formats/model_config.h"

namespace tensordiff {
namespace {

enum class RopeOrder { unknown, halves, neighbours };

// Architectures of GGUF whose q and k llama.cpp turns by neighbours; the others it turns by halves.
constexpr std::string_view kNeighbours[] = {"llama",  "granite", "olmo",     "minicpm", "internlm2",
                                            "arctic", "deci",    "baichuan", "xverse"};

bool has_name(const Catalog& catalog, std::string_view part) {
  return std::ranges::any_of(catalog.tensors, [&](const Tensor& tensor) {
    return tensor.name.find(part) != std::string::npos;
  });
}

RopeOrder order_of(const Catalog& catalog) {
  for (const Metadata& entry : catalog.metadata)
    if (entry.key == "general.architecture")
      return std::ranges::find(kNeighbours, entry.value) != std::end(kNeighbours)
                 ? RopeOrder::neighbours
                 : RopeOrder::unknown;
  // Meta's own names of Llama, and those of Hugging Face, which turns all Llamas by halves.
  if (has_name(catalog, ".attention.wq.weight")) return RopeOrder::neighbours;
  if (has_name(catalog, ".self_attn.q_proj.weight")) return RopeOrder::halves;
  return RopeOrder::unknown;
}

std::optional<uint64_t> head_of(const Catalog& catalog) {
  const ModelConfig config = model_config_of(catalog);
  if (config.head_dim) return config.head_dim;
  if (!config.hidden || !config.heads || *config.heads == 0) return std::nullopt;
  return *config.hidden / *config.heads;
}

}  // namespace

std::optional<Rows> implied_rope_rows(const Catalog& a, const Catalog& b) {
  const RopeOrder of_a = order_of(a), of_b = order_of(b);
  const bool differ = (of_a == RopeOrder::halves && of_b == RopeOrder::neighbours) ||
                      (of_a == RopeOrder::neighbours && of_b == RopeOrder::halves);
  if (!differ) return std::nullopt;
  std::optional<uint64_t> head = head_of(a);
  if (!head) head = head_of(b);
  if (!head || *head < 4 || *head % 2 != 0) return std::nullopt;
  Rows rows;
  rows.order = RowOrder::rope;
  rows.side = of_a == RopeOrder::halves ? 'a' : 'b';
  rows.head = *head;
  return rows;
}

}  // namespace tensordiff
