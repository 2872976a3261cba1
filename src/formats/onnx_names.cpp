#include "formats/onnx_names.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "base/text.h"

namespace tensordiff::onnx {
namespace {

constexpr std::string_view kScopes = "pkg.torch.onnx.name_scopes";

// Which parameter an operator reads as its n-th input; '-' for none.
struct Operator {
  std::string_view type;
  std::string_view inputs;
};
constexpr Operator kOperators[] = {
    {"MatMul", "weight weight"},
    {"MatMulInteger", "- weight"},  // As ONNX Runtime quantizes: the levels of the weight.
    {"ConvInteger", "- weight"},
    {"Gemm", "- weight bias"},
    {"Conv", "- weight bias"},
    {"ConvTranspose", "- weight bias"},
    {"Gather", "weight"},
    {"Add", "bias bias"},
    {"Mul", "weight weight"},
    {"LayerNormalization", "- weight bias"},
    {"SimplifiedLayerNormalization", "- weight"},
    {"RMSNormalization", "- weight"},
    {"GroupNormalization", "- weight bias"},
    {"InstanceNormalization", "- weight bias"},
    {"BatchNormalization", "- weight bias running_mean running_var"},
    {"PRelu", "- weight"},
};

std::string_view parameter_of(std::string_view type, std::size_t input) {
  const auto found = std::ranges::find(kOperators, type, &Operator::type);
  if (found == std::end(kOperators)) return {};
  const std::vector<std::string_view> names = split(found->inputs, ' ');
  return input < names.size() && names[input] != "-" ? names[input] : std::string_view();
}

// The last but one of "['', 'm', 'm.q_proj', 'linear']": the module; the last is the call.
std::string module_in(std::string_view scopes) {
  std::vector<std::string_view> names;
  for (std::size_t at = scopes.find('\''); at != std::string_view::npos;
       at = scopes.find('\'', at + 1)) {
    const std::size_t end = scopes.find('\'', at + 1);
    if (end == std::string_view::npos) break;
    names.push_back(scopes.substr(at + 1, end - at - 1));
    at = end;
  }
  return names.size() < 2 ? "" : std::string(names[names.size() - 2]);
}

// "/bert/pooler/dense/Gemm" is of bert.pooler.dense.
std::string module_of_path(std::string_view node) {
  if (!node.starts_with('/')) return "";
  const std::size_t last = node.rfind('/');
  std::string module(node.substr(1, last == 0 ? 0 : last - 1));
  std::ranges::replace(module, '/', '.');
  return module;
}

bool is_numbered(std::string_view name, std::string_view word) {
  return name.starts_with(word) && name.size() > word.size() &&
         all_digits(name.substr(word.size()));
}

// Whether a name is one that an exporter made up.
bool says_nothing(std::string_view name) {
  return name.starts_with("onnx::") || is_numbered(name, "val_") || is_numbered(name, "_val_") ||
         is_numbered(name, "tensor_constant") || all_digits(name);
}

}  // namespace

void Readers::add(ByteView node) {
  std::vector<std::string_view> inputs;
  std::string_view name, type, scopes;
  ProtoReader reader(node);
  while (const auto field = reader.next()) {
    if (field->is_bytes(1)) inputs.push_back(field->text());
    if (field->is_bytes(3)) name = field->text();
    if (field->is_bytes(4)) type = field->text();
    if (!field->is_bytes(9)) continue;
    std::string_view key, value;
    ProtoReader property(field->bytes);
    while (const auto part = property.next()) {
      if (part->is_bytes(1)) key = part->text();
      if (part->is_bytes(2)) value = part->text();
    }
    if (key == kScopes) scopes = value;
  }
  const std::string module = scopes.empty() ? module_of_path(name) : module_in(scopes);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!says_nothing(inputs[i])) continue;
    const std::string_view parameter = parameter_of(type, i);
    std::string meant =
        module.empty() || parameter.empty() ? std::string() : module + "." + std::string(parameter);
    const auto [use, is_new] = meant_.try_emplace(std::string(inputs[i]), meant);
    if (!is_new && use->second != meant) use->second.clear();
  }
}

void Readers::name(Catalog& catalog) const {
  std::set<std::string, std::less<>> taken;
  for (const Tensor& tensor : catalog.tensors) taken.insert(tensor.name);
  for (Tensor& tensor : catalog.tensors) {
    if (!tensor.fault.empty()) continue;
    const DType dtype = tensor.view.dtype;
    const bool nameless = says_nothing(tensor.name);
    if ((is_integer(dtype) && item_bytes(dtype) > 1) || (nameless && tensor.elements() <= 1)) {
      tensor.auxiliary = "graph constant";
      continue;
    }
    const auto use = nameless ? meant_.find(tensor.name) : meant_.end();
    if (use == meant_.end() || use->second.empty()) continue;
    if (taken.insert(use->second).second) tensor.known_as = use->second;
  }
}

}  // namespace tensordiff::onnx
