// inference_speed_estimate: how fast could each run at best on a given device?
//
//   FLOPs  = 2 · elements of all matrices that every token passes (of experts: those in use)
//   bytes  = their bytes as stored, read once for each token, one sequence at a time
//   time   = max(FLOPs / the device's, bytes / its bandwidth)

#include <algorithm>
#include <array>
#include <charconv>

#include "analyze/analysis.h"
#include "analyze/roofline.h"
#include "analyze/structure.h"
#include "base/text.h"

namespace tensordiff {
namespace {

struct DataSheet {
  std::string_view name;
  double flops, bandwidth;
};

// From the data sheets: dense bfloat16 and memory bandwidth. The first is the default.
constexpr DataSheet kDevices[] = {
    {"h100", 989e12, 3.35e12},   {"h200", 989e12, 4.8e12},      {"a100", 312e12, 2.039e12},
    {"l40s", 362e12, 0.864e12},  {"rtx4090", 165e12, 1.008e12}, {"mi300x", 1307e12, 5.3e12},
    {"m2-ultra", 27e12, 0.8e12},
};

std::optional<double> positive(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0)) return std::nullopt;
  return value;
}

// How many of the experts a token passes, of all; nothing where only a config would say.
std::optional<double> share_of_experts(const Structure& structure, const Facts& facts) {
  if (structure.experts == 0) return 1;
  for (const std::string_view key : {"num_experts_per_tok", "moe_topk", "num_experts_per_token"})
    if (const std::optional<double> used = facts.config()[key].number())
      return std::min(1.0, *used / static_cast<double>(structure.experts));
  return std::nullopt;
}

void add_side(const std::string& side, const std::optional<Roofline>& found, Answer& answer) {
  if (!found) {
    answer.unknown(
        "tokens_per_second_" + side,
        "work that depends on the weights alone (no convolutions; experts with a config)");
    return;
  }
  answer.field("tokens_per_second_" + side, 1 / found->seconds);
  answer.field("bytes_per_token_" + side, found->bytes);
  answer.field("flops_per_token_" + side, found->flops);
  answer.field("bound_" + side, found->by_memory ? "memory" : "arithmetic");
}

void examine(const Study& study, Answer& answer) {
  const std::optional<Device> device = find_device(study.options().device);
  if (!device) {
    answer.unknown("device", "a device that is known: " + device_names() + ", or FLOPS:BYTES");
    return;
  }
  const std::optional<Roofline> a = roofline_of(study.a(), study.facts_a(), *device);
  const std::optional<Roofline> b = roofline_of(study.b(), study.facts_b(), *device);
  answer.field("device", device->name);
  add_side("a", a, answer);
  add_side("b", b, answer);
  if (a && b) answer.field("speedup", a->seconds / b->seconds);
  answer.notes.push_back(
      "an upper bound: one sequence, weights read once a token, no caches, launches or attention");
}

}  // namespace

std::optional<Device> find_device(std::string_view name) {
  for (const DataSheet& row : kDevices)
    if (name.empty() || row.name == lower(name))
      return Device{std::string(row.name), row.flops, row.bandwidth};
  const std::size_t colon = name.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::optional<double> flops = positive(name.substr(0, colon));
  const std::optional<double> bandwidth = positive(name.substr(colon + 1));
  if (!flops || !bandwidth) return std::nullopt;
  return Device{std::string(name), *flops, *bandwidth};
}

std::string device_names() {
  std::string text;
  for (const DataSheet& row : kDevices) text += (text.empty() ? "" : ", ") + std::string(row.name);
  return text;
}

std::optional<Roofline> roofline_of(const Catalog& catalog, const Facts& facts,
                                    const Device& device) {
  const Structure structure = structure_of(catalog, facts);
  const std::optional<double> experts = share_of_experts(structure, facts);
  if (structure.convolutions || !experts) return std::nullopt;
  Roofline found;
  const Tensor* head = embedding_as_head(catalog);
  for (const Tensor& tensor : catalog.tensors) {
    const Shape& shape = tensor.view.shape;
    if (!tensor.fault.empty() || shape.size() < 2) continue;
    if (purpose_of(tensor.name, shape) != Purpose::weight) continue;
    if (part_of(tensor.name, tensor.place, shape) == ModelPart::embedding && &tensor != head)
      continue;
    const bool of_expert = tensor.place.known && tensor.place.expert != Place::kNone;
    const double share = of_expert ? *experts : 1;
    const auto copies = static_cast<double>(std::max<std::size_t>(1, tensor.shards.size()));
    found.flops += 2 * share * copies * static_cast<double>(tensor.elements());
    found.bytes += share * copies * static_cast<double>(tensor.bytes());
  }
  if (found.bytes == 0) return std::nullopt;
  const double arithmetic = found.flops / device.flops, memory = found.bytes / device.bandwidth;
  found.seconds = std::max(arithmetic, memory);
  found.by_memory = memory >= arithmetic;
  return found;
}

constinit const Analysis analyses::inference_speed_estimate = {
    .name = "inference_speed_estimate",
    .flag = "--inference-speed-estimate",
    .question = "How fast could each run at best on a given device?",
    .definition = "roofline: bytes and FLOPs a token against those of a device (--device)",
    .examine = examine,
};

}  // namespace tensordiff
