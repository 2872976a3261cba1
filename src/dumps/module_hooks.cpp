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
// Modules of Megatron give (output, bias or None): a number 0 that has no 1 beside it is the output
// of any module that is known by its path.

#include <algorithm>
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

bool is_fact(const Tensor& tensor) { return fact_in(tensor, tensor.name) != RunFact::none; }

// The names of a dump, and what their numbers mean.
class Names {
 public:
  explicit Names(const Catalog& catalog) : passes_(catalog) {
    std::size_t results = 0, words = 0;
    for (const Tensor& tensor : catalog.tensors) {
      const std::string name = passes_.read(tensor.name).rest;
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

  const PassNames& passes() const { return passes_; }

  // Takes what tells the output off a path; says which it is, and whether there was anything.
  bool take(std::string_view& path, std::optional<int32_t>& number) const {
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
  std::set<std::string, std::less<>> names_;
  bool says_output_ = false;
  std::size_t parents_ = 0;  // How many names stand below another one.
};

// Facts, tuples or passes: without them the names are as they are compared.
bool recognises(const Catalog& catalog) {
  const Names names(catalog);
  std::size_t modules = 0, others = 0;
  for (const Tensor& tensor : catalog.tensors) {
    const std::string name = names.passes().read(tensor.name).rest;
    const Place place = read_place(name);
    if (place.parameter != Param::none) return false;
    std::string_view path = name;
    std::optional<int32_t> number;
    const bool taken = names.take(path, number);
    const bool other = is_fact(tensor) || (taken && (number || read_place(path).known));
    modules += place.known || other;
    others += other;
  }
  return (others > 0 || names.passes().any()) && 2 * modules >= catalog.tensors.size();
}

Dump read(const Catalog& catalog) {
  Dump dump;
  const Names names(catalog);
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    const auto [pass, name] = names.passes().read(catalog.tensors[i].name);
    Record record{.tensor = i, .path = name};
    record.order = static_cast<int64_t>(i);
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
