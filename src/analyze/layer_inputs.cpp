#include "analyze/layer_inputs.h"

#include <algorithm>
#include <cmath>

#include "analyze/linear_algebra.h"
#include "analyze/patch.h"
#include "packed/packed.h"

namespace tensordiff {
namespace {

constexpr std::size_t kTokens = 32, kOutputs = 128;

// The steps whose output a projection reads as it is; the first that was dumped counts.
std::initializer_list<Role> read_by(Role role) {
  static constexpr auto kAttention = {Role::attention_norm};
  static constexpr auto kMlp = {Role::mlp_norm, Role::branch_norm};
  static constexpr auto kHeads = {Role::attention_heads};
  static constexpr auto kGated = {Role::gated, Role::activation};
  static constexpr auto kFinal = {Role::final_norm};
  switch (role) {
    case Role::query:
    case Role::key:
    case Role::value:
    case Role::fused_qkv:
    case Role::query_down:
    case Role::kv_down:
      return kAttention;
    case Role::gate:
    case Role::up:
    case Role::gate_up:
    case Role::router:
      return kMlp;
    case Role::attention_output:
      return kHeads;
    case Role::mlp_output:
      return kGated;
    case Role::logits:
      return kFinal;
    default:
      return {};
  }
}

std::string module_of(std::string_view name) {
  constexpr std::string_view kWeight = ".weight";
  return std::string(name.ends_with(kWeight) ? name.substr(0, name.size() - kWeight.size()) : name);
}

// Rows of the last axis, spread over all tokens.
Result<Dense> rows_of(const View& view, std::size_t wanted) {
  const uint64_t width = view.shape.back();
  const Reader reader = TRY(Reader::open(view));
  Dense rows{0, static_cast<std::size_t>(width), {}};
  for (const uint64_t row : spread(view.elements() / width, wanted)) {
    rows.values.resize(rows.values.size() + width);
    reader.values(row * width, width, rows.values.data() + rows.rows++ * width);
  }
  for (double& value : rows.values)
    if (!std::isfinite(value)) value = 0;
  if (!reader.intact()) return Error("the file was cut short while it was read");
  return rows;
}

}  // namespace

LayerInputs::LayerInputs(const Catalog& dump, const Study& study) {
  for (const Tensor& tensor : dump.tensors) {
    if (!tensor.fault.empty() || tensor.view.shape.empty() || tensor.elements() == 0 ||
        is_complex(tensor.view.dtype))
      continue;
    names_.emplace(tensor.name, &tensor);
    if (tensor.place.parameter == Param::none)
      roles_.emplace(std::tuple(tensor.place.tower, tensor.place.layer, tensor.place.step),
                     &tensor);
  }
  int votes = 0;
  for (const Row* pair : study.weights()) {
    if (pair->views.a.shape.size() != 2 || pair->views.a.shape[0] == pair->views.a.shape[1])
      continue;
    const Tensor* input = input_of(*pair);
    if (!input) continue;
    votes += input->view.shape.back() == pair->views.a.shape[0] ? 1 : -1;
  }
  inputs_first_ = votes > 0;
}

const Tensor* LayerInputs::by_name(const std::string& name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : found->second;
}

const Tensor* LayerInputs::input_of(const Row& pair) const {
  for (const std::string& name : {pair.a.name, pair.b.name})
    for (const std::string_view end :
         {".input", ".input.0", ".inputs.0", ".inputs", ".input_0", ".in", ".args.0"})
      if (const Tensor* found = by_name(module_of(name) + std::string(end))) return found;
  if (pair.a.place.expert != Place::kNone) return nullptr;  // Which tokens it saw is not told.
  for (const Role role : read_by(pair.a.place.step)) {
    const bool inside = role != Role::final_norm;
    const auto found =
        roles_.find({pair.a.place.tower, inside ? pair.a.place.layer : Place::kNone, role});
    if (found != roles_.end()) return found->second;
  }
  return nullptr;
}

std::optional<bool> LayerInputs::turned(const Row& pair, const Tensor& input) const {
  const Shape& shape = pair.views.a.shape;
  const uint64_t width = input.view.shape.back();
  if (shape.size() != 2 || (shape[0] != width && shape[1] != width)) return std::nullopt;
  return shape[0] == shape[1] ? inputs_first_ : shape[0] == width;
}

std::optional<double> LayerInputs::output_error(const Row& pair) const {
  const Tensor* input = input_of(pair);
  if (!input) return std::nullopt;
  const std::optional<bool> inputs_first = turned(pair, *input);
  if (!inputs_first) return std::nullopt;
  const auto outputs = [&](const View& view) {
    return rows_of(*inputs_first ? tensordiff::turned(view) : view, kOutputs);
  };
  const Result<Dense> x = rows_of(input->view, kTokens);
  const Result<Dense> a = outputs(pair.views.a), b = outputs(pair.views.b);
  if (!x.ok() || !a.ok() || !b.ok()) return std::nullopt;
  const Dense change = difference(b.value(), a.value());
  double signal = 0, noise = 0;
  for (std::size_t token = 0; token < x.value().rows; ++token)
    for (std::size_t out = 0; out < change.rows; ++out) {
      const double right = dot(x.value().row(token), a.value().row(out));
      const double wrong = dot(x.value().row(token), change.row(out));
      signal += right * right;
      noise += wrong * wrong;
    }
  return signal > 0 ? std::optional(noise / signal) : std::nullopt;
}

}  // namespace tensordiff
