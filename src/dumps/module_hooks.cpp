// Outputs of modules by their paths, as torch hooks collect them: {module path: output}. A module
// that gives a tuple has its numbers behind the path: "model.layers.3.0", "model.layers.3.1".
//
// A number behind a path may also be the name of a module ("mlp.0" of a Sequential). It is an
// output where the path is a layer, a norm, attention or RoPE by its name, and has no tensor
// itself; or where modules that contain others were hooked, and this one has no tensor itself:
// "block_sparse_moe.0" and ".1" are then the output of a mixture of experts and its router's.
//
// nnsight and others write what was asked of a module: "model.layers.3.output", also with a number
// behind it. Where most names have that, the module is what stands before; BERT has a few modules
// that are called so.
//
// Several passes may lie in one dump, with the number of the pass in front of each name or behind
// it.
//
// A number in front that is another one for each call is a counter of the hooks: it tells the order
// and is no part of a name, "00012_model.layers.0.mlp".
//
// Modules of Megatron give (output, bias or None): a number 0 that has no 1 beside it is the output
// of any module that is known by its path.

#include <algorithm>
#include <map>
#include <set>

#include "dumps/grammar.h"
#include "dumps/pass_names.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

// Takes ".output" or ".output.0" off; says which of several.
bool take_output_word(std::string_view& path, std::optional<int32_t>& number) {
  constexpr std::string_view kWord = ".output";
  std::string_view shorter = path;
  const std::optional<int32_t> found = take_output(shorter);
  if (!shorter.ends_with(kWord) || shorter.size() == kWord.size()) return false;
  number = found;
  path = shorter.substr(0, shorter.size() - kWord.size());
  return true;
}

// A number in front of the last part of a path, and the path without it.
struct Counted {
  int32_t number = 0;
  std::string rest;
};

std::optional<Counted> counted(std::string_view name) {
  const std::size_t start = name.rfind('/') + 1;
  const std::size_t end = name.find_first_not_of("0123456789", start);
  if (end == std::string_view::npos || std::string_view("_-.").find(name[end]) == name.npos)
    return std::nullopt;
  const std::optional<int32_t> number = whole_number(name.substr(start, end - start));
  if (!number || end + 1 == name.size()) return std::nullopt;
  return Counted{*number, std::string(name.substr(0, start)).append(name.substr(end + 1))};
}

bool is_fact(const Tensor& tensor) { return fact_in(tensor, tensor.name) != RunFact::none; }

// The names of a dump, and what their numbers mean.
class Names {
 public:
  // What a name says beside the module: the pass, and the order where it is counted.
  struct Name {
    int32_t pass = 0;
    std::optional<int32_t> order;
    std::string module;
  };

  explicit Names(const Catalog& catalog) : passes_(catalog), counts_(has_counter(catalog)) {
    std::size_t results = 0, words = 0;
    for (const Tensor& tensor : catalog.tensors) {
      const std::string name = read(tensor.name).module;
      names_.insert(name);
      std::string_view path = name;
      std::optional<int32_t> number;
      results += !is_fact(tensor);
      words += take_output_word(path, number);
    }
    says_output_ = results > 0 && 4 * words >= 3 * results;
    for (const std::string& name : names_) {
      const std::size_t dot = name.rfind('.');
      parents_ +=
          dot != std::string::npos && names_.contains(std::string_view(name).substr(0, dot));
    }
  }

  bool tell_more() const { return passes_.any() || counts_; }

  Name read(std::string_view name) const {
    PassName in_pass = passes_.read(name);
    if (!counts_) return {in_pass.pass, std::nullopt, std::move(in_pass.rest)};
    std::optional<Counted> found = counted(in_pass.rest);
    if (!found) return {in_pass.pass, std::nullopt, std::move(in_pass.rest)};
    return {in_pass.pass, found->number, std::move(found->rest)};
  }

  // Takes what tells the output off a path; says which it is, and whether there was anything.
  bool take(std::string_view& path, std::optional<int32_t>& number) const {
    // What a whole model gives is a dataclass: its first field is the output.
    constexpr std::string_view kState = ".last_hidden_state";
    if (path.ends_with(kState)) {
      const std::string_view model = path.substr(0, path.size() - kState.size());
      if (!model.empty() && !names_.contains(model)) {
        path = model;
        number.reset();
        return true;
      }
    }
    if (says_output_ && take_output_word(path, number)) return true;
    std::string_view shorter = path;
    number = take_output(shorter);
    if (!number || names_.contains(shorter)) return false;
    if (!gives_tuples(shorter) && !(*number == 0 && gives_one(shorter)) && !gives_two(shorter))
      return false;
    path = shorter;
    return true;
  }

 private:
  // Each number stands before one module, which has its layer in its own name.
  bool has_counter(const Catalog& catalog) const {
    std::map<std::pair<int32_t, int32_t>, std::string> modules;  // By pass and number.
    std::set<std::pair<int32_t, std::string>> rests;
    std::size_t results = 0, layered = 0;
    for (const Tensor& tensor : catalog.tensors) {
      const auto [pass, name] = passes_.read(tensor.name);
      const std::optional<Counted> found = counted(name);
      if (!found && fact_in(tensor, name) != RunFact::none) continue;
      if (!found || !rests.insert({pass, found->rest}).second) return false;
      std::string_view module = found->rest;
      take_output(module);
      const auto at = modules.try_emplace({pass, found->number}, module).first;
      if (at->second != module) return false;
      ++results;
      layered += read_place(found->rest).layer >= 0;
    }
    return results > 0 && 2 * layered >= results;
  }

  bool gives_one(std::string_view path) const {
    const Place place = read_place(path);
    return place.known && place.layer >= 0 && place.parameter == Param::none &&
           place.expert == Place::kNone && !names_.contains(std::string(path) + ".1");
  }

  // Two tensors under numbers of a module that has none, where other modules with parts have one.
  bool gives_two(std::string_view path) const {
    const auto has = [&](std::string_view end) {
      return names_.contains(std::string(path) + std::string(end));
    };
    const Place place = read_place(path);
    return 2 * parents_ >= names_.size() && place.known && place.layer >= 0 &&
           place.parameter == Param::none && has(".0") && has(".1") && !has(".2");
  }

  PassNames passes_;
  bool counts_ = false;
  std::set<std::string, std::less<>> names_;
  bool says_output_ = false;
  std::size_t parents_ = 0;  // How many names stand below another one.
};

// Facts, tuples or passes: without them the names are as they are compared.
bool recognises(const Catalog& catalog) {
  const Names names(catalog);
  std::size_t modules = 0, others = 0;
  for (const Tensor& tensor : catalog.tensors) {
    const std::string name = names.read(tensor.name).module;
    const Place place = read_place(name);
    if (place.parameter != Param::none) return false;
    std::string_view path = name;
    std::optional<int32_t> number;
    const bool taken = names.take(path, number);
    const bool other = is_fact(tensor) || (taken && (number || read_place(path).known));
    modules += place.known || other;
    others += other;
  }
  return (others > 0 || names.tell_more()) && 2 * modules >= catalog.tensors.size();
}

// The module of "model.layers.0.mlp.inputs.0.0", which is what goes into it; empty for what comes
// out.
std::string_view module_read_by(std::string_view name) {
  for (const std::string_view word : {".inputs", ".input"}) {
    const std::size_t at = name.rfind(word);
    if (at == std::string_view::npos || at == 0) continue;
    std::string_view rest = name.substr(at + word.size());
    while (take_output(rest)) {
    }
    if (rest.empty() || (rest[0] == '.' && whole_number(rest.substr(1)))) return name.substr(0, at);
  }
  return "";
}

// What goes into a module stands in front of what it gives, wherever it was stored.
void order_inputs(Dump& dump) {
  std::map<std::pair<int32_t, std::string_view>, int64_t> first;  // By pass and module.
  for (Record& record : dump.records) record.order = 2 * record.order + 1;
  for (const Record& record : dump.records) {
    const auto at = first.try_emplace({record.pass, record.path}, record.order).first;
    at->second = std::min(at->second, record.order);
  }
  for (Record& record : dump.records) {
    const auto module = first.find({record.pass, module_read_by(record.path)});
    if (module != first.end()) record.order = std::min(record.order, module->second - 1);
  }
}

Dump read(const Catalog& catalog) {
  Dump dump;
  const Names names(catalog);
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    const auto [pass, order, name] = names.read(catalog.tensors[i].name);
    Record record{.tensor = i, .path = name};
    record.order = order ? *order : static_cast<int64_t>(i);
    record.pass = pass;
    record.fact = fact_in(catalog.tensors[i], name);
    std::string_view path = name;
    std::optional<int32_t> number;
    if (names.take(path, number)) {
      record.output = number.value_or(Place::kNone);
      record.path = path;
      if (!number) record.name = name;
    }
    dump.records.push_back(std::move(record));
  }
  order_inputs(dump);
  return dump;
}

}  // namespace

constinit const Layout layouts::module_hooks = {
    .name = "module-hooks",
    .summary = "outputs of modules by path, tuples and (hidden, residual) included",
    .recognises = recognises,
    .read = read,
};

}  // namespace tensordiff
