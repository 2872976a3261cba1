// Hidden states of all layers.
//
// Hugging Face's output_hidden_states gives L + 1 of them, as tensors "0", "1", … or
// "hidden_states.0", …, or stacked in one [L + 1, batch, tokens, hidden]. The first is the
// embedding, the i-th the stream before layer i, and the last is normed. generate() gives such a
// tuple for each pass: "0.0", "0.1", …, "1.0", ….
//
// {layer: its output} has the same names, and no embedding: L of them. The other dump tells L.
//
// A ModelOutput has other fields beside them: "logits", "past_key_values.0.1" (keys behind RoPE,
// and values, of each layer), "attentions.0".
//
// vLLM's connector writes "hidden_states" [tokens, layers, hidden] beside "token_ids". Which layers
// were chosen is not in the file: they are taken for the outputs of layers 0, 1, …, and pairing
// renumbers layers by their values.

#include "dumps/hidden_states.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "dumps/grammar.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

constexpr std::string_view kName = "hidden_states.";

struct Index {
  int32_t pass = 0, state = 0;
};

std::optional<Index> index_in(std::string_view name) {
  if (name.starts_with(kName)) name.remove_prefix(kName.size());
  if (const std::optional<int32_t> state = whole_number(name)) return Index{0, *state};
  const std::optional<int32_t> pass = whole_number(take_until(name, "."));
  const std::optional<int32_t> state = whole_number(name);
  return pass && state ? std::optional(Index{*pass, *state}) : std::nullopt;
}

// The field of a ModelOutput that a tensor belongs to, where that is another one.
bool is_other_field(std::string_view name) {
  constexpr std::string_view kFields[] = {"logits", "loss", "past_key_values", "attentions",
                                          "last_hidden_state"};
  return std::ranges::find(kFields, take_until(name, ".")) != std::end(kFields);
}

// What a field of a ModelOutput holds: its path, and where it was computed.
void read_field(std::string_view name, Record& record) {
  record.order = INT32_MAX;
  std::string_view rest = name;
  if (take_until(rest, ".") != "past_key_values") return;
  // "3.1" of tuples, "key_cache.3" and "layers.3.keys" of caches.
  if (rest.starts_with("layers.")) take_until(rest, ".");
  const std::string_view first = take_until(rest, ".");
  const bool listed = first == "key_cache" || first == "value_cache";
  const std::optional<int32_t> layer = whole_number(listed ? rest : first);
  const std::string_view kind = listed ? first : rest;
  const bool keys = kind == "0" || kind == "key_cache" || kind == "keys";
  if (!layer || !(keys || kind == "1" || kind == "value_cache" || kind == "values")) return;
  record.path = fmt::format("model.layers.{}.self_attn.{}", *layer, keys ? "k_rope" : "v_proj");
  record.order = *layer;  // Before the output of its layer, whose number is one more.
}

// All of one shape with a batch, numbered from 0 on, in each pass.
bool is_tuple(const Catalog& catalog) {
  std::map<int32_t, std::vector<int32_t>> numbers;
  std::map<int32_t, const Shape*> shapes;
  for (const Tensor& tensor : catalog.tensors) {
    if (fact_in(tensor, tensor.name) != RunFact::none || is_other_field(tensor.name)) continue;
    const std::optional<Index> index = index_in(tensor.name);
    if (!index || tensor.view.shape.size() != 3) return false;
    const Shape*& shape = shapes[index->pass];
    if (shape && *shape != tensor.view.shape) return false;
    shape = &tensor.view.shape;
    numbers[index->pass].push_back(index->state);
  }
  for (auto& [pass, states] : numbers) {
    std::ranges::sort(states);
    for (std::size_t i = 0; i < states.size(); ++i)
      if (states[i] != static_cast<int32_t>(i)) return false;
    if (states.size() != numbers.begin()->second.size()) return false;
  }
  return !numbers.empty() && numbers.begin()->second.size() > 1;
}

// The one tensor that all are stacked in; none where there are several.
const Tensor* stack_in(const Catalog& catalog) {
  const Tensor* found = nullptr;
  for (const Tensor& tensor : catalog.tensors) {
    if (fact_in(tensor, tensor.name) != RunFact::none || is_other_field(tensor.name)) continue;
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

constexpr std::string_view kLast = "model.norm";

std::string path_of(int32_t index, int32_t last) {
  return index == 0      ? "model.layers.0.resid_pre"  // Behind positions and scales.
         : index == last ? std::string(kLast)
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
    if (fact_in(tensor, tensor.name) == RunFact::none && !is_other_field(tensor.name))
      last = std::max(last, index_in(tensor.name).value_or(Index()).state);
  const std::optional<std::size_t> axis = layers_axis(catalog);
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    const Tensor& tensor = catalog.tensors[i];
    Record record{.tensor = i, .path = tensor.name, .name = tensor.name};
    record.fact = fact_in(tensor, tensor.name);
    if (record.fact == RunFact::none && is_other_field(tensor.name)) {
      read_field(tensor.name, record);
      dump.records.push_back(std::move(record));
      continue;
    }
    if (record.fact == RunFact::none && axis) {
      read_stack(tensor, *axis, record, dump);
      continue;
    }
    const auto [pass, state] = index_in(tensor.name).value_or(Index());
    record.order = state;  // The output of layer 0 is number 1.
    record.pass = pass;
    if (record.fact == RunFact::none) {
      record.path = path_of(state, last);
      record.name = fmt::format("hidden_states.{}", state);  // Of all passes.
    }
    dump.records.push_back(std::move(record));
  }
  return dump;
}

}  // namespace

void take_as_layers(Catalog& states, const Catalog& other) {
  std::vector<Tensor>& tensors = states.tensors;
  if (states.layout != layouts::hidden_states.name || tensors.empty()) return;
  std::vector<Tensor*> listed;
  for (Tensor& tensor : tensors)
    if (tensor.name.find("hidden_states") != std::string::npos) listed.push_back(&tensor);
  if (listed.empty() || listed.back()->pairing_name() != kLast) return;
  std::size_t layers = 0;
  for (const Tensor& tensor : other.tensors)
    if (tensor.place.known && tensor.place.layer >= 0)
      layers = std::max(layers, static_cast<std::size_t>(tensor.place.layer) + 1);
  // Of the last layer such a dump has only what the final norm makes of it.
  if (other.layout == states.layout) layers = other.tensors.size() - 1;
  if (layers != listed.size()) return;
  for (std::size_t i = 0; i < listed.size(); ++i)
    listed[i]->known_as = fmt::format("model.layers.{}", i);
  read_places(states);
}

constinit const Layout layouts::hidden_states = {
    .name = "hidden-states",
    .summary = "the hidden states of all layers, as output_hidden_states gives them",
    .recognises = recognises,
    .read = read,
};

}  // namespace tensordiff
