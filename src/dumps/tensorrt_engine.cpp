// TensorRT-LLM's C++ executor (DebugConfig): a folder for each iteration, a file for each tensor.
//
//   tllm_debug/PP_{size}/TP_{size}/iteration_{n}/{tensor}.npy
//
// The numbers behind PP and TP are sizes, no ranks. An iteration is a pass. Tensors that the
// builder registered are named "{module path}.{name}"; the name is the user's own, "output" here
// and elsewhere. Integers are inputs of the engine: lengths, ids, kinds of requests.

#include "dumps/grammar.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

struct EngineName {
  int32_t iteration = 0;
  std::string_view tensor;
};

std::optional<EngineName> read_name(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view folders = name.substr(0, slash);
  const std::string_view last = folders.substr(folders.rfind('/') + 1);
  const std::optional<int32_t> iteration = number_after(last, "iteration_");
  if (!iteration) return std::nullopt;
  return EngineName{*iteration, name.substr(slash + 1)};
}

RunFact fact_of(const Tensor& tensor, std::string_view name) {
  if (!is_integer(tensor.view.dtype)) return RunFact::none;
  const RunFact fact = fact_in(tensor, name);
  if (fact != RunFact::none) return fact;
  // With what is cached, of each sequence.
  return name == "sequence_length" ? RunFact::lengths : RunFact::other;
}

bool recognises(const Catalog& catalog) {
  return mostly(catalog, [](std::string_view name) { return read_name(name).has_value(); });
}

Dump read(const Catalog& catalog) {
  Dump dump;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    const Tensor& tensor = catalog.tensors[i];
    const std::optional<EngineName> name = read_name(tensor.name);
    Record record{.tensor = i, .path = tensor.name};
    if (name) {
      constexpr std::string_view kOutput = ".output";
      record.pass = name->iteration;
      record.path = record.name = name->tensor;
      if (record.path.ends_with(kOutput)) record.path.resize(record.path.size() - kOutput.size());
      record.fact = fact_of(tensor, name->tensor);
    }
    const Place place = read_place(record.path);
    const int64_t layer = place.layer >= 0                     ? place.layer
                          : place.step <= Role::embedding_norm ? -1
                                                               : INT32_MAX;
    record.order = order_by_role(layer, place.step);
    dump.records.push_back(std::move(record));
  }
  return dump;
}

}  // namespace

constinit const Layout layouts::tensorrt_engine = {
    .name = "tensorrt-engine",
    .summary = "TensorRT-LLM's C++ executor: a folder for each iteration",
    .recognises = recognises,
    .read = read,
};

}  // namespace tensordiff
