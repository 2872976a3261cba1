// A folder for each module, with files for what goes in and what comes out:
//
//   {run}/step_{n}/{module}[_{call}]/{inputs|outputs}[_{i}]_{device}_{d}.pt   vLLM's intermediate
//                                                                         logging
//   {device}{d}_{pid}/{token}/root.{module}/{input|output}[_{i}].pth      Ascend's msit, and ait
//
// and the same without folders, a file for each call: "{module}_outputs_{call}", whose tensors are
// "output" or "output_{i}".
//
// What goes in is what came out of another module, but for token ids and positions. vLLM's module
// of RoPE is one for all layers and stands under the name of the first: its calls are the layers.

#include <algorithm>
#include <array>
#include <set>

#include "dumps/grammar.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

constexpr std::array<std::string_view, 6> kDevices = {"cuda", "cpu", "npu", "xpu", "hpu", "mps"};

struct FolderName {
  std::string path;
  bool in = false;                // What goes into the module.
  int32_t output = Place::kNone;  // Which of several.
  std::string rest;               // Of a dict that the module gives: the key.
  int32_t pass = 0, rank = Place::kNone;
  int32_t call = 0;
};

// "cuda_1", "npu0", "cpu": the number of the device, 0 where it has none.
std::optional<int32_t> device_number(std::string_view text) {
  for (const std::string_view device : kDevices) {
    if (!text.starts_with(device)) continue;
    std::string_view digits = text.substr(device.size());
    if (digits.empty()) return 0;
    if (digits[0] == '_') digits.remove_prefix(1);
    if (const std::optional<int32_t> number = whole_number(digits)) return number;
  }
  return std::nullopt;
}

// "inputs", "input", "outputs" or "output" in front: takes it off, and says which it was.
std::optional<bool> take_direction(std::string_view& text) {
  for (const auto& [word, in] :
       {std::pair("inputs", true), {"input", true}, {"outputs", false}, {"output", false}}) {
    const std::string_view start = word;
    if (!text.starts_with(start)) continue;
    const std::string_view rest = text.substr(start.size());
    if (!rest.empty() && rest[0] != '_' && rest[0] != '.') continue;
    text = rest.empty() ? rest : rest.substr(1);
    return in;
  }
  return std::nullopt;
}

// What stands behind the direction: "0_cuda_1", "1", "cuda_0", "hidden_states_cuda_0".
void read_output(std::string_view text, FolderName& found) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (at > 0 && text[at - 1] != '_') continue;
    const std::optional<int32_t> device = device_number(text.substr(at));
    if (!device) continue;
    found.rank = *device;
    text = text.substr(0, at > 0 ? at - 1 : 0);
    break;
  }
  if (text.empty()) return;
  const std::string_view first = take_until(text, "_");
  if (const std::optional<int32_t> number = whole_number(first))
    found.output = *number;
  else
    found.rest = first;
  if (!text.empty()) found.rest.append(found.rest.empty() ? "" : "_").append(text);
}

// "npu0_7000": the device of a process, and its pid.
std::optional<int32_t> process_device(std::string_view folder) {
  const std::size_t bar = folder.rfind('_');
  if (bar == std::string_view::npos || !whole_number(folder.substr(bar + 1))) return std::nullopt;
  return device_number(folder.substr(0, bar));
}

void read_folders(std::string_view folders, FolderName& found) {
  while (!folders.empty()) {
    const std::string_view each = take_until(folders, "/");
    if (const auto device = process_device(each))
      found.rank = *device;
    else if (const auto step = number_after(each, "step_"))
      found.pass = *step;
    else if (const auto token = whole_number(each))
      found.pass = *token;
  }
}

bool is_module(std::string_view path) {
  return path.find('.') != std::string_view::npos || read_place(path).known;
}

std::string_view without_root(std::string_view path) {
  constexpr std::string_view kRoot = "root.";
  return path.starts_with(kRoot) ? path.substr(kRoot.size()) : path;
}

// "{folders}/{module}/outputs_0_cuda_0".
std::optional<FolderName> parse_folder(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  FolderName found;
  std::string_view file = name.substr(slash + 1);
  const std::optional<bool> in = take_direction(file);
  const std::string_view above = name.substr(0, slash);
  const std::size_t module = above.rfind('/') + 1;
  const std::string_view path = without_root(above.substr(module));
  if (!in || !is_module(path)) return std::nullopt;
  read_folders(above.substr(0, module), found);
  found.in = *in;
  read_output(file, found);
  found.path = path;
  return found;
}

// "{module}_outputs_2.output_1".
std::optional<FolderName> parse_call(std::string_view name) {
  name = name.substr(name.rfind('/') + 1);
  for (const auto& [word, in] : {std::pair("_outputs_", false), {"_inputs_", true}}) {
    const std::size_t at = name.rfind(word);
    if (at == std::string_view::npos || at == 0) continue;
    std::string_view rest = name.substr(at + std::string_view(word).size());
    const std::optional<int32_t> call = whole_number(take_until(rest, "."));
    if (!call || !is_module(name.substr(0, at))) continue;
    FolderName found;
    found.path = name.substr(0, at);
    found.in = in;
    found.pass = *call;
    if (!rest.empty()) {
      take_direction(rest);
      read_output(rest, found);
    }
    return found;
  }
  return std::nullopt;
}

std::optional<FolderName> parse(std::string_view name) {
  std::optional<FolderName> found = parse_folder(name);
  return found ? found : parse_call(name);
}

bool recognises(const Catalog& catalog) {
  return mostly(catalog, [](std::string_view name) { return parse(name).has_value(); });
}

using Paths = std::set<std::string, std::less<>>;

// Cuts the number of a call off a module that also stands without one; that of RoPE is its layer.
void take_call(const Paths& paths, FolderName& found) {
  const std::string_view path = found.path;
  const std::size_t bar = path.rfind('_');
  if (bar == std::string_view::npos) return;
  const std::optional<int32_t> call = whole_number(path.substr(bar + 1));
  if (!call || !paths.contains(path.substr(0, bar))) return;
  found.call = *call;
  found.path.resize(bar);
}

// "model.layers.0.self_attn.rotary_emb" of its third call, in the layer of that number.
void put_in_layer(FolderName& found) {
  const Place place = read_place(found.path);
  if (place.layer != 0) return;
  const auto [start, size] = place.layer_at;
  found.path.replace(start, size, std::to_string(found.call));
  found.call = 0;
}

RunFact fact_of(const Tensor& tensor, const FolderName& name) {
  if (!is_integer(tensor.view.dtype)) return RunFact::none;
  if (read_place(name.path).step == Role::embedding && name.in) return RunFact::ids;
  if (is_rope_module(name.path) && name.in && name.output == 0) return RunFact::positions;
  return RunFact::none;
}

int64_t order_of(const std::string& path) {
  const Place place = read_place(path);
  const int64_t layer = place.layer >= 0                     ? place.layer
                        : place.step <= Role::embedding_norm ? -1
                                                             : INT32_MAX;
  return order_by_role(layer, place.step);
}

Dump read(const Catalog& catalog) {
  Paths paths;
  Dump dump;
  for (const Tensor& tensor : catalog.tensors)
    if (const std::optional<FolderName> name = parse(tensor.name)) paths.insert(name->path);
  bool shared = false;  // One module of RoPE for all layers.
  for (const std::string& path : paths) {
    const std::size_t bar = path.rfind('_');
    shared = shared || (whole_number(path.substr(bar + 1)) && is_rope_module(path.substr(0, bar)));
  }
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    std::optional<FolderName> name = parse(catalog.tensors[i].name);
    if (!name) continue;
    take_call(paths, *name);
    const RunFact fact = fact_of(catalog.tensors[i], *name);
    if (name->in && fact == RunFact::none) continue;
    if (shared && is_rope_module(name->path)) put_in_layer(*name);
    if (name->call > 0) name->path += "@" + std::to_string(name->call);
    if (!name->rest.empty()) name->path += "." + name->rest;
    Record record{.tensor = i, .path = name->path};
    record.output = name->output;
    record.pass = name->pass;
    record.rank = name->rank;
    record.order = order_of(name->path);
    record.fact = fact;
    dump.records.push_back(std::move(record));
  }
  return dump;
}

}  // namespace

constinit const Layout layouts::module_folders = {
    .name = "module-folders",
    .summary = "a folder for each module, with outputs_0_cuda_0.pt: vLLM's intermediate logging",
    .recognises = recognises,
    .read = read,
};

}  // namespace tensordiff
