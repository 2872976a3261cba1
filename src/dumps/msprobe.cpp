// Ascend msprobe: step{n}/rank{r}/dump_tensor_data/*.pt (or .npy), a bare tensor each, named
//
//   Module.{path}.{Class}.forward.{call}.{input|output}.{i}[.{j}]     modules (level L0)
//   Module.{path}.{Class}.forward.{call}.parameters.{p}
//   {Tensor|Torch|…}.{api}.{call}.{forward|backward}.{input|output}.{i}     calls of APIs (L1)
//
// Under MindSpore a module is a "Cell". Classes differ between backends and are no part of the
// name. "proc{pid}" stands for the rank of a process that has none. dump.json lists the calls as
// they ended: the order of computing.

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "dumps/grammar.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

constexpr std::string_view kModules[] = {"Module.", "Cell."};  // MindSpore has cells.
constexpr uint64_t kJsonBytesMax = 64ULL << 20;  // As for other texts: Limits::json_bytes_max.

struct ProbeName {
  int32_t step = 0, rank = Place::kNone, call = 0;
  std::string_view entry;  // As dump.json has it: all before ".output.0".
  std::string path;
  std::optional<int32_t> output = std::nullopt;
  bool module = false;
};

void read_folders(std::string_view folders, ProbeName& found) {
  for (const std::string_view folder : split(folders, '/')) {
    if (const auto step = number_after(folder, "step")) found.step = *step;
    if (const auto rank = number_after(folder, "rank")) found.rank = *rank;
  }
}

// "model.layers.0.mlp.LlamaMLP.forward.0.output.0" behind "Module.".
bool read_module(std::string_view text, ProbeName& found) {
  for (const std::string_view way : {".forward.", ".backward."}) {
    const std::size_t at = text.rfind(way);
    if (at == std::string_view::npos) continue;
    const std::string_view before = text.substr(0, at);
    std::string_view behind = text.substr(at + way.size());
    const std::optional<int32_t> call = whole_number(take_until(behind, "."));
    const std::size_t dot = before.rfind('.');
    if (!call || behind.empty()) return false;
    found.call = *call;
    found.path = before.substr(0, dot == std::string_view::npos ? before.size() : dot);
    found.module = true;
    std::string_view kind = take_until(behind, ".");
    if (way == ".forward." && kind == "output") {
      found.output = whole_number(behind);
      if (!found.output) found.path += fmt::format(".output.{}", behind);
    } else if (way == ".forward." && kind == "parameters") {
      found.path += fmt::format(".{}", behind);
    } else {
      found.path += fmt::format("{}{}.{}", way, kind, behind);
    }
    return true;
  }
  const std::size_t grad = text.rfind(".parameters_grad.");
  if (grad == std::string_view::npos) return false;
  const std::string_view before = text.substr(0, grad);
  found.path = fmt::format("{}.{}", before.substr(0, before.rfind('.')), text.substr(grad + 1));
  return true;
}

std::optional<ProbeName> parse(std::string_view name) {
  static constexpr std::string_view kApis[] = {
      "Tensor.",    "Torch.",          "Functional.", "NPU.",    "VF.",
      "Aten.",      "Distributed.",    "MindSpeed.",  "Triton.", "Mint.",
      "Primitive.", "MintFunctional.", "Jit."};
  ProbeName found;
  const std::size_t slash = name.rfind('/');
  if (slash != std::string_view::npos) {
    read_folders(name.substr(0, slash), found);
    name = name.substr(slash + 1);
  }
  for (const std::string_view way : {".output.", ".input.", ".parameters."})
    if (const std::size_t at = name.rfind(way); at != std::string_view::npos)
      found.entry = std::max(found.entry, name.substr(0, at),
                             [](auto x, auto y) { return x.size() < y.size(); });
  for (const std::string_view module : kModules)
    if (name.starts_with(module))
      return read_module(name.substr(module.size()), found) ? std::optional(found) : std::nullopt;
  const bool api =
      std::ranges::any_of(kApis, [&](std::string_view each) { return name.starts_with(each); });
  if (!api || (name.find(".forward.") == std::string_view::npos &&
               name.find(".backward.") == std::string_view::npos))
    return std::nullopt;
  found.path = name;
  return found;
}

bool recognises(const Catalog& catalog) {
  return mostly(catalog, [](std::string_view name) { return parse(name).has_value(); });
}

// Where each call stands in a dump.json. A text that cannot be read tells nothing.
std::map<std::string, int64_t> order_in(const Catalog& catalog) {
  std::map<std::string, int64_t> order;
  for (const Document& document : catalog.documents) {
    if (document.source.size() > kJsonBytesMax) continue;
    const Result<Bytes> bytes = document.source.open();
    if (!bytes.ok()) continue;
    const std::string_view text(reinterpret_cast<const char*>(bytes.value().view.data()),
                                bytes.value().size());
    const Result<Json> json = Json::parse(text);
    if (!json.ok()) continue;
    for (const Json::Member& entry : json.value()["data"].object())
      order.emplace(entry.key, static_cast<int64_t>(order.size()));
    break;  // All ranks compute in one order.
  }
  return order;
}

// Where each call stands without a dump.json, which a crash leaves no time for: what goes into a
// module stands before what it gives.
int64_t order_by_name(const ProbeName& name) {
  if (!name.module) return INT64_MAX;
  const std::size_t in = name.path.rfind(".forward.input");
  const Place place = read_place(std::string_view(name.path).substr(0, in));
  const int64_t layer = place.layer >= 0                     ? place.layer
                        : place.step <= Role::embedding_norm ? -1
                                                             : INT32_MAX;
  return 2 * order_by_role(layer, place.step) + (in == std::string::npos);
}

// A list of models has its number in front of each path. Of one model it tells nothing.
void leave_out_model_number(std::vector<std::pair<std::size_t, ProbeName>>& names) {
  constexpr std::string_view kFirst = "0.";
  for (const auto& [tensor, name] : names)
    if (name.module && !name.path.starts_with(kFirst)) return;
  for (auto& [tensor, name] : names)
    if (name.module) name.path.erase(0, kFirst.size());
}

// What goes into a module is no result of it: what the output projections read has a name of its
// own, where no module gives it.
void name_input(const std::set<std::string>& modules, Record& record) {
  constexpr std::string_view kInput = ".forward.input.";
  const std::size_t at = record.path.rfind(kInput);
  if (at == std::string::npos) return;
  record.name = record.path;
  const std::string module = record.path.substr(0, at);
  const std::string_view which = std::string_view(record.name).substr(at + kInput.size());
  const std::string above = module.substr(0, std::min(module.rfind('.'), module.size()));
  record.path = fmt::format("{}.inputs.{}", module, which);
  for (const auto& [ending, step] : {std::pair(".o_proj", ".attn"), {".down_proj", ".gated"}})
    if (module.ends_with(ending) && which == "0" && !modules.contains(above + step))
      record.path = above + step;
}

Dump read(const Catalog& catalog) {
  Dump dump;
  const std::map<std::string, int64_t> order = order_in(catalog);
  std::vector<std::pair<std::size_t, ProbeName>> names;
  std::map<int32_t, std::size_t> calls;  // How many modules were called so often.
  std::set<std::string> modules;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i)
    if (std::optional<ProbeName> name = parse(catalog.tensors[i].name)) {
      if (name->module && name->output) ++calls[name->call];
      names.emplace_back(i, std::move(*name));
    }
  leave_out_model_number(names);
  for (const auto& [tensor, name] : names)
    if (name.module && name.output) modules.insert(name.path);
  // What most modules do twice are two passes; what a few do is another call.
  const auto is_pass = [&](int32_t call) { return call == 0 || 2 * calls[call] >= calls[0]; };
  for (auto& [tensor, name] : names) {
    Record record{.tensor = tensor, .path = name.path};
    constexpr int32_t kCallsMax = 1 << 15;
    const int32_t call = std::min(name.call, kCallsMax - 1);
    record.pass = std::min(name.step, kCallsMax - 1) * kCallsMax + (is_pass(name.call) ? call : 0);
    name_input(modules, record);
    if (!is_pass(name.call)) record.path += fmt::format("@{}", name.call);
    record.rank = name.rank;
    record.output = name.output.value_or(Place::kNone);
    const auto at = order.find(std::string(name.entry));
    if (order.empty())
      record.order = order_by_name(name);
    else
      record.order = at != order.end() ? at->second : static_cast<int64_t>(order.size() + tensor);
    dump.records.push_back(std::move(record));
  }
  return dump;
}

}  // namespace

constinit const Layout layouts::msprobe = {
    .name = "msprobe",
    .summary = "Ascend msprobe: step0/rank0/dump_tensor_data/Module.x.C.forward.0.output.0.pt",
    .recognises = recognises,
    .read = read,
};

}  // namespace tensordiff
