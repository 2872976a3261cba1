// Hidden states of all layers.
//
// Hugging Face's output_hidden_states gives L + 1 of them, as tensors "0", "1", … or
// "hidden_states.0", …, or stacked in one [L + 1, batch, tokens, hidden]. The first is the
// embedding, the i-th the stream before layer i, and the last is normed.
//
// vLLM's connector writes "hidden_states" [tokens, layers, hidden] beside "token_ids". Which layers
// were chosen is not in the file: they are taken for the outputs of layers 0, 1, …, and pairing
// renumbers layers by their values.

#include <algorithm>

#include <fmt/format.h>

#include "dumps/grammar.h"

namespace tensordiff {
namespace {

constexpr std::string_view kName = "hidden_states.";

std::optional<int32_t> index_in(std::string_view name) {
  if (name.starts_with(kName)) name.remove_prefix(kName.size());
  return whole_number(name);
}

// All of one shape with a batch, numbered from 0 on.
bool is_tuple(const Catalog& catalog) {
  std::vector<int32_t> numbers;
  const Shape* shape = nullptr;
  for (const Tensor& tensor : catalog.tensors) {
    if (fact_in(tensor, tensor.name) != RunFact::none) continue;
    const std::optional<int32_t> index = index_in(tensor.name);
    if (!index || tensor.view.shape.size() != 3) return false;
    if (shape && *shape != tensor.view.shape) return false;
    shape = &tensor.view.shape;
    numbers.push_back(*index);
  }
  std::ranges::sort(numbers);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] != static_cast<int32_t>(i)) return false;
  return numbers.size() > 2;
}

// The one tensor that all are stacked in; none where there are several.
const Tensor* stack_in(const Catalog& catalog) {
  const Tensor* found = nullptr;
  for (const Tensor& tensor : catalog.tensors) {
    if (fact_in(tensor, tensor.name) != RunFact::none) continue;
    if (found || !tensor.name.ends_with("hidden_states")) return nullptr;
    found = &tensor;
  }
  return found;
}

uint64_t token_ids_in(const Catalog& catalog) {
  for (const Tensor& tensor : catalog.tensors)
    if (fact_in(tensor, tensor.name) == RunFact::ids) return tensor.elements();
  return 0;
}

// The axis of the layers; nothing where the shape does not tell.
std::optional<std::size_t> layers_axis(const Catalog& catalog) {
  const Tensor* stack = stack_in(catalog);
  if (!stack) return std::nullopt;
  const Shape& shape = stack->view.shape;
  if (shape.size() == 4 && shape[0] > 2) return 0;
  if (shape.size() == 3 && shape[0] > 0 && shape[0] == token_ids_in(catalog)) return 1;
  return std::nullopt;
}

bool recognises(const Catalog& catalog) {
  return is_tuple(catalog) || layers_axis(catalog).has_value();
}

std::string path_of(int32_t index, int32_t last) {
  return index == 0      ? "model.layers.0.resid_pre"  // Behind positions and scales.
         : index == last ? "model.norm"
                         : fmt::format("model.layers.{}", index - 1);
}

void read_stack(const Tensor& stack, std::size_t axis, const Record& of, Dump& dump) {
  constexpr uint64_t kLayersMax = 4096;  // More are no layers.
  const uint64_t layers = std::min(stack.view.shape[axis], kLayersMax);
  for (uint64_t i = 0; i < layers; ++i) {
    Record record = of;
    record.part = AxisIndex{axis, i};
    record.name = fmt::format("{}.{}", stack.name, i);
    record.path = axis == 0 ? path_of(static_cast<int32_t>(i), static_cast<int32_t>(layers) - 1)
                            : fmt::format("model.layers.{}", i);
    record.order = static_cast<int64_t>(i);
    dump.records.push_back(std::move(record));
  }
}

Dump read(const Catalog& catalog) {
  Dump dump;
  int32_t last = 0;
  for (const Tensor& tensor : catalog.tensors)
    if (fact_in(tensor, tensor.name) == RunFact::none)
      last = std::max(last, index_in(tensor.name).value_or(0));
  const std::optional<std::size_t> axis = layers_axis(catalog);
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    const Tensor& tensor = catalog.tensors[i];
    Record record{.tensor = i, .path = tensor.name, .name = tensor.name};
    record.fact = fact_in(tensor, tensor.name);
    if (record.fact == RunFact::none && axis) {
      read_stack(tensor, *axis, record, dump);
      continue;
    }
    const int32_t index = index_in(tensor.name).value_or(0);
    record.order = index;
    if (record.fact == RunFact::none) record.path = path_of(index, last);
    dump.records.push_back(std::move(record));
  }
  return dump;
}

}  // namespace

constinit const Layout layouts::hidden_states = {
    .name = "hidden-states",
    .summary = "the hidden states of all layers, as output_hidden_states gives them",
    .recognises = recognises,
    .read = read,
};

}  // namespace tensordiff
