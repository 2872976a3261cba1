// memory_analysis: bytes by dtype, and what running and training the model would take.
//
//   weights    = bytes of all tensors that are no optimizer state, gradient or scalar
//   inference  = weights + keys and values of one sequence as long as the configured context
//   training   = 16 bytes for each parameter (AdamW in mixed precision: weight 2, gradient 2,
//                float32 copy 4, two moments 8; in float32 4 + 4 + 8), without activations

#include <algorithm>
#include <map>

#include "analyze/analysis.h"
#include "analyze/structure.h"
#include "base/text.h"

namespace tensordiff {
namespace {

constexpr double kTrainingBytesPerParameter = 16;
constexpr double kKvBytesPerElement = 2;  // Keys and values are kept in 16 bits.

struct Footprint {
  uint64_t weights = 0, parameters = 0;  // Bytes and elements of the model.
  uint64_t beside = 0;                   // Bytes of optimizer state, gradients and scalars.
  std::map<std::string_view, uint64_t> by_dtype;

  double bytes_per_parameter() const {
    return parameters ? static_cast<double>(weights) / static_cast<double>(parameters) : 0;
  }
};

Footprint footprint_of(const Catalog& catalog) {
  Footprint found;
  const Tensor* tied = tied_head(catalog);
  for (const Tensor& tensor : catalog.tensors) {
    if (!tensor.fault.empty() || &tensor == tied) continue;
    const std::size_t copies = std::max<std::size_t>(1, tensor.shards.size());
    const uint64_t bytes = tensor.bytes() * copies;
    found.by_dtype[name_of(tensor.view.dtype)] += bytes;
    if (purpose_of(tensor.name, tensor.view.shape) != Purpose::weight) {
      found.beside += bytes;
      continue;
    }
    found.weights += bytes;
    found.parameters += tensor.elements() * copies;
  }
  return found;
}

std::string signed_bytes(int64_t bytes) {
  return (bytes < 0 ? "-" : "+") + human_bytes(static_cast<uint64_t>(std::abs(bytes)));
}

void add_running(const Study& study, const Footprint& b, Answer& answer) {
  const ModelConfig& config = study.facts_b().model();
  const std::optional<double> kept = config.kv_elements_per_token();
  const auto weights = static_cast<double>(b.weights);
  if (kept) {
    const double per_token = *kept * kKvBytesPerElement;
    answer.field("kv_cache_bytes_per_token", per_token);
    if (config.context)
      answer.field("kv_cache_bytes_at_context", per_token * static_cast<double>(*config.context));
    answer.field("inference_bytes",
                 weights + per_token * static_cast<double>(config.context.value_or(1)));
    answer.notes.push_back("keys and values are taken to be kept in 16 bits, for one sequence");
  } else {
    answer.unknown("kv_cache_bytes_per_token", "config.json with layers, heads and head size");
    answer.field("inference_bytes", weights);
    answer.notes.push_back("inference: weights alone, without keys, values and activations");
  }
  answer.field("training_bytes", static_cast<double>(b.parameters) * kTrainingBytesPerParameter);
  answer.notes.push_back("training: 16 bytes a parameter (AdamW), without activations");
}

void examine(const Study& study, Answer& answer) {
  const Footprint a = footprint_of(study.a());
  const Footprint b = footprint_of(study.b());
  const int64_t delta = static_cast<int64_t>(b.weights) - static_cast<int64_t>(a.weights);
  answer.field("delta", signed_bytes(delta)).field("delta_bytes", delta);
  answer.field("bytes_a", a.weights).field("bytes_b", b.weights);
  answer.field("parameters_a", a.parameters).field("parameters_b", b.parameters);
  answer.field("bytes_per_parameter_a", a.bytes_per_parameter());
  answer.field("bytes_per_parameter_b", b.bytes_per_parameter());
  answer.field("beside_the_model_a", a.beside).field("beside_the_model_b", b.beside);
  if (tied_head(study.a()) || tied_head(study.b()))
    answer.notes.push_back("a head that is the embedding stored again is counted once");
  add_running(study, b, answer);

  std::map<std::string_view, uint64_t> dtypes = a.by_dtype;
  dtypes.insert(b.by_dtype.begin(), b.by_dtype.end());
  Listing& table = answer.list("dtypes", {"dtype", "bytes_a", "bytes_b"});
  const auto bytes_in = [](const Footprint& side, std::string_view dtype) {
    const auto found = side.by_dtype.find(dtype);
    return found == side.by_dtype.end() ? uint64_t{0} : found->second;
  };
  for (const auto& [dtype, bytes] : dtypes)
    table.add({dtype, bytes_in(a, dtype), bytes_in(b, dtype)});
}

}  // namespace

constinit const Analysis analyses::memory_analysis = {
    .name = "memory_analysis",
    .flag = "--memory-analysis",
    .question = "How much memory do the two take?",
    .definition = "bytes by dtype, and the footprint of running and of training",
    .examine = examine,
};

}  // namespace tensordiff
