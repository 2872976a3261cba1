// Values inside of an ONNX graph, as PyTorch's exporter names them: the module path, then the
// operator that gives the value.
//
//   /model/layers.0/self_attn/q_proj/MatMul_output_0
//   /model/layers.0/Add_1_output_0
//
// They come from graphs whose inner values were made outputs, from Polygraphy, and from the node
// dumps of ONNX Runtime, one TensorProto a file. The last operator of a module that contains no
// other gives its output. A module that contains others computes between them: attention gives its
// heads to the output projection by a Reshape, an MLP its product by a Mul, a layer adds twice.

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "dumps/grammar.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

struct ValueName {
  std::string module;        // "model.layers.0.self_attn".
  std::string_view op;       // "Add".
  int32_t number = 0;        // Of this operator in its module: 1 of "Add_1".
  std::string_view as_read;  // "/model/layers.0/Add_1_output_0".
};

// What the exporter calls all that is no output of a module: "Constant_2_output_0" is a number.
bool is_constant(const ValueName& name) {
  return name.op == "Constant" || name.op == "ConstantOfShape" || name.op == "Shape";
}

// A file of a node dump is called by the letters and digits of the value's name and by the rank;
// the true name stands behind it: "_model_norm_Mul_output_0_rank_1./model/norm/Mul_output_0".
struct NodeFile {
  std::string_view value;
  int32_t rank = Place::kNone;
  int32_t pass = 0;
};

// Several runs of a session: "iteration_2//model/norm/Mul_output_0".
int32_t take_iteration(std::string_view& name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return 0;
  const std::optional<int32_t> pass = number_after(name.substr(0, slash), "iteration_");
  if (pass) name.remove_prefix(slash + 1);
  return pass.value_or(0);
}

NodeFile node_file(std::string_view name) {
  const int32_t pass = take_iteration(name);
  constexpr std::string_view kRank = "rank_";
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos;
       dot = name.find('.', dot + 1)) {
    const std::string_view value = name.substr(dot + 1);
    const std::string_view file = name.substr(name.rfind('/', dot - (dot > 0)) + 1);
    const auto spelled = [](char c, char in_file) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      return in_file == (plain ? c : '_');
    };
    if (value.empty() || file.size() < 2 * value.size()) continue;
    const std::string_view written = file.substr(0, file.size() - value.size() - 1);
    if (!std::equal(value.begin(), value.end(), written.begin(), spelled)) continue;
    const std::size_t rank = written.find(kRank, value.size());
    if (rank == std::string_view::npos) return {value, Place::kNone, pass};
    return {value, number_after(written.substr(rank), kRank).value_or(Place::kNone), pass};
  }
  return {name, Place::kNone, pass};
}

std::optional<ValueName> parse(std::string_view name) {
  constexpr std::string_view kOutput = "_output_";
  name = node_file(name).value;
  const std::size_t start = name.find('/');
  if (start == std::string_view::npos) return std::nullopt;
  ValueName found;
  found.as_read = name;
  const std::size_t slash = name.rfind('/');
  std::string_view last = name.substr(slash + 1);
  const std::size_t output = last.rfind(kOutput);
  if (output == std::string_view::npos || output == 0) return std::nullopt;
  if (!whole_number(last.substr(output + kOutput.size()))) return std::nullopt;
  last = last.substr(0, output);
  const std::size_t underscore = last.rfind('_');
  const std::optional<int32_t> number = underscore == std::string_view::npos
                                            ? std::nullopt
                                            : whole_number(last.substr(underscore + 1));
  found.op = number ? last.substr(0, underscore) : last;
  found.number = number.value_or(0);
  if (found.op.empty() || found.op[0] < 'A' || found.op[0] > 'Z') return std::nullopt;
  for (const std::string_view part : split(name.substr(0, slash), '/'))
    if (!part.empty()) found.module += (found.module.empty() ? "" : ".") + std::string(part);
  return found;
}

bool recognises(const Catalog& catalog) {
  return mostly(catalog, [](std::string_view name) { return parse(name).has_value(); });
}

// One value of a module.
struct Value {
  std::size_t tensor = 0;
  std::string_view op;
  int32_t number = 0;
  uint64_t elements = 0;
};

// The tensors of one pass.
class Reading {
 public:
  Reading(const Catalog& catalog, const std::vector<std::size_t>& tensors)
      : catalog_(catalog), tensors_(tensors) {
    std::vector<std::string_view> names;
    for (const std::size_t i : tensors) {
      const Tensor& tensor = catalog.tensors[i];
      names.push_back(tensor.name);
      const std::optional<ValueName> name = parse(tensor.name);
      if (!name || is_constant(*name)) continue;
      modules_[name->module].push_back({i, name->op, name->number, tensor.elements()});
    }
    // By the alphabet, but for what somebody put in front or behind: files of a folder, sets.
    constexpr std::size_t kFew = 20;  // One in so many. In order of computing it is one in three.
    std::size_t back = 0;
    for (std::size_t i = 1; i < names.size(); ++i) back += names[i] < names[i - 1];
    in_order_ = kFew * back > names.size();
  }

  void read(Dump& result) {
    for (const auto& [module, values] : modules_)
      has_modules(module) ? name_inner(module, values) : name_leaf(module, values);
    for (const std::size_t i : tensors_) {
      const Tensor& tensor = catalog_.tensors[i];
      if (const auto name = parse(tensor.name); name && is_constant(*name)) continue;
      const auto [value, rank, pass] = node_file(tensor.name);
      Record record{.tensor = i, .path = std::string(value), .name = std::string(value)};
      record.fact = fact_in(tensor, value);
      record.rank = rank;
      record.pass = pass;
      record.order = static_cast<int64_t>(i);
      if (const auto known = known_as_.find(i); known != known_as_.end())
        record.path = known->second;
      result.records.push_back(std::move(record));
    }
  }

 private:
  bool has_modules(const std::string& module) const {
    const auto next = modules_.upper_bound(module + ".");
    return next != modules_.end() && next->first.starts_with(module + ".");
  }

  // The value that the module gives: the last of its largest ones; of a projection, which may read
  // more than it gives, those as large as its product. Where the order is not known, a bias is
  // added behind a product, a norm or an activation ends with a product, and the tokens of a batch
  // that were put into one row for Gemm come apart again.
  const Value* last_of(const std::string& module, const std::vector<Value>& values) const {
    const Value* gemm = numbered(values, "Gemm", true);
    uint64_t most = 0;
    for (const Value& value : values) most = std::max(most, value.elements);
    if (gemm) most = gemm->elements;
    const bool ends_in_product = read_place(module).step == Role::activation;
    const auto rank = [&](const Value& value) {
      if (in_order_) return std::pair(0, static_cast<int64_t>(value.tensor));
      const int kind = value.op == "Reshape" && gemm                     ? 5
                       : value.op == "Mul" && ends_in_product            ? 4
                       : value.op == "Add" || value.op == "Gemm"         ? 3
                       : value.op.find("Normalization") != value.op.npos ? 3
                       : value.op == "Mul"                               ? 2
                       : value.op == "MatMul" || value.op == "Gather"    ? 1
                                                                         : 0;
      return std::pair(kind, static_cast<int64_t>(value.number));
    };
    const Value* best = nullptr;
    for (const Value& value : values)
      if (value.elements == most && (!best || rank(*best) < rank(value))) best = &value;
    return best;
  }

  void name_leaf(const std::string& module, const std::vector<Value>& values) {
    if (module.ends_with("rotary_emb")) return;  // It gives two: cosines and sines.
    if (const Value* last = last_of(module, values)) known_as_[last->tensor] = module;
  }

  static const Value* numbered(const std::vector<Value>& values, std::string_view op, bool last) {
    const Value* found = nullptr;
    for (const Value& value : values)
      if (value.op == op && (!found || (value.number > found->number) == last)) found = &value;
    return found;
  }

  void name_inner(const std::string& module, const std::vector<Value>& values) {
    const Place place = read_place(module);
    if (place.layer < 0 || !place.known) return;
    if (place.step == Role::layer_output) return name_layer(module, values);
    if (place.step == Role::mlp)
      if (const Value* product = numbered(values, "Mul", true))
        known_as_[product->tensor] = module + ".gated";
    if (place.step != Role::attention) return;
    if (const Value* heads = numbered(values, "Reshape", true)) {
      if (catalog_.tensors[heads->tensor].view.shape.size() < 4)
        known_as_[heads->tensor] = module + ".attn";
    }
    name_rotated(module, values);
  }

  // Half of a head is negated to rotate it; then query and key are the first two sums.
  void name_rotated(const std::string& module, const std::vector<Value>& values) {
    if (!numbered(values, "Neg", false)) return;
    for (const Value& value : values) {
      if (value.op != "Add" || value.number > 1) continue;
      if (catalog_.tensors[value.tensor].view.shape.size() != 4) continue;
      known_as_[value.tensor] = module + (value.number == 0 ? ".q_rope" : ".k_rope");
    }
  }

  // The stream between attention and MLP is added before anything of the MLP.
  void name_layer(const std::string& layer, const std::vector<Value>& values) {
    const Value* first = numbered(values, "Add", false);
    const Value* last = numbered(values, "Add", true);
    if (!first || first == last) return;
    known_as_[last->tensor] = layer;
    std::size_t mlp = SIZE_MAX;
    for (auto at = modules_.lower_bound(layer + "."); at != modules_.end(); ++at) {
      if (!at->first.starts_with(layer + ".")) break;
      const Role step = read_place(at->first).step;
      if (step != Role::gate && step != Role::up && step != Role::mlp) continue;
      for (const Value& value : at->second) mlp = std::min(mlp, value.tensor);
    }
    if (in_order_ && first->tensor < mlp) known_as_[first->tensor] = layer + ".resid_mid";
  }

  const Catalog& catalog_;
  const std::vector<std::size_t>& tensors_;
  std::map<std::string, std::vector<Value>> modules_;
  std::map<std::size_t, std::string> known_as_;
  bool in_order_ = false;
};

Dump read(const Catalog& catalog) {
  std::map<int32_t, std::vector<std::size_t>> passes;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i)
    passes[node_file(catalog.tensors[i].name).pass].push_back(i);
  Dump dump;
  for (const auto& [pass, tensors] : passes) Reading(catalog, tensors).read(dump);
  return dump;
}

}  // namespace

constinit const Layout layouts::onnx_values = {
    .name = "onnx-values",
    .summary = "inner values of an ONNX graph: /model/layers.0/mlp/act_fn/Mul_output_0",
    .recognises = recognises,
    .read = read,
};

}  // namespace tensordiff
