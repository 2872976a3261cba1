// An MLP computed again: down(act(gate(x)) · up(x)), or down(act(up(x))), with one mistake at a
// time.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "diagnose/activation.h"
#include "diagnose/linear_replay.h"

namespace tensordiff {
namespace {

constexpr double kOwnFit = 0.03;

// What goes into the activation, on both branches where there are two.
struct Hidden {
  Matrix gate, up;  // gate is empty where there is only one.
};

struct MlpForm {
  const ActivationFunction* activation = nullptr;
  bool swapped = false;  // act(up) · gate
};

Matrix activated(const Hidden& hidden, const MlpForm& form) {
  Matrix result = hidden.up;
  const bool gated = !hidden.gate.values.empty();
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    const double gate = gated ? hidden.gate.values[i] : 1, up = hidden.up.values[i];
    result.values[i] = !gated         ? form.activation->value(up)
                       : form.swapped ? form.activation->value(up) * gate
                                      : form.activation->value(gate) * up;
  }
  return result;
}

std::vector<MlpForm> forms_of(bool gated) {
  std::vector<MlpForm> forms;
  for (const bool swapped : {false, true})
    for (const ActivationFunction& activation : activation_functions())
      if (gated || !swapped) forms.push_back({&activation, swapped});
  return forms;
}

std::string describe(const MlpForm& b, const MlpForm& a) {
  if (b.swapped != a.swapped)
    return fmt::format(
        "b computes {0}(up) · gate where a computes {1}(gate) · up: gate and up "
        "are swapped",
        b.swapped ? b.activation->name : a.activation->name,
        b.swapped ? a.activation->name : b.activation->name);
  return fmt::format("the activation is {} in b and {} in a", b.activation->name,
                     a.activation->name);
}

std::vector<Parameter> parameters_of(const MlpForm& b, const MlpForm& a) {
  return {{"cause", std::string(b.swapped != a.swapped ? "gate_up_swapped" : "activation")},
          {"a", std::string(a.activation->name)},
          {"b", std::string(b.activation->name)}};
}

// The weights of an MLP, found by a's own input and output.
struct Mlp {
  View gate, up, down;
  bool gated = false;
  std::vector<double> gate_bias, up_bias, down_bias;
};

void add_bias(Matrix& matrix, const std::vector<double>& bias) {
  for (std::size_t at = 0; at < matrix.values.size() && !bias.empty(); ++at)
    matrix.values[at] += bias[at % bias.size()];
}

Hidden hidden_of(const Mlp& mlp, const Matrix& in) {
  std::vector<uint64_t> all(mlp.up.shape[0]);
  std::iota(all.begin(), all.end(), 0);
  Hidden hidden;
  hidden.up = product(in, mlp.up, all, 0, in.features);
  add_bias(hidden.up, mlp.up_bias);
  if (mlp.gated) {
    hidden.gate = product(in, mlp.gate, all, 0, in.features);
    add_bias(hidden.gate, mlp.gate_bias);
  }
  return hidden;
}

Matrix made_by(const Mlp& mlp, const Hidden& hidden, const MlpForm& form,
               const std::vector<uint64_t>& features) {
  const Matrix inner = activated(hidden, form);
  Matrix made = product(inner, mlp.down, features, 0, inner.features);
  for (std::size_t at = 0; at < made.values.size() && !mlp.down_bias.empty(); ++at)
    made.values[at] += mlp.down_bias[features[at % features.size()]];
  return made;
}

// The size in the middle is that of the weight; its other size is known. Where it is square, `way`
// tells which of both to read it.
std::optional<Mlp> find_mlp(const Case& it, uint64_t width, std::size_t way) {
  const Weights& weights = it.run.weights;
  const uint64_t inner = weights.inner_size(it.site.layer, width);
  if (inner == 0) return std::nullopt;
  const auto first = [&](Projection projection, uint64_t out, uint64_t in, View& view) {
    std::vector<View> found = weights.matrices(it.site.layer, projection, out, in);
    if (!found.empty()) view = found[std::min(way, found.size() - 1)];
    return !found.empty();
  };
  Mlp mlp;
  mlp.gated = first(Projection::gate, inner, width, mlp.gate);
  if (!first(Projection::up, inner, width, mlp.up) ||
      !first(Projection::down, it.a.features, inner, mlp.down))
    return std::nullopt;
  mlp.gate_bias = weights.bias(it.site.layer, Projection::gate, inner);
  mlp.up_bias = weights.bias(it.site.layer, Projection::up, inner);
  mlp.down_bias = weights.bias(it.site.layer, Projection::down, it.a.features);
  return mlp;
}

// Which form comes nearest to an output.
struct Best {
  MlpForm form;
  double left = 1;
  Matrix made;
};

template <class Make>
Best best_form(bool gated, const Matrix& out, const Make& make) {
  Best best;
  for (const MlpForm& form : forms_of(gated)) {
    Matrix made = make(form);
    const double here = misfit(made, out);
    if (here < best.left) best = {form, here, std::move(made)};
  }
  return best;
}

std::optional<Explanation> explain(const Case& it, const Samples& samples, const Best& a,
                                   const Best& b, double before) {
  if (!a.form.activation || !b.form.activation || a.left > kOwnFit) return std::nullopt;
  if (a.form.activation == b.form.activation && a.form.swapped == b.form.swapped)
    return std::nullopt;
  Explanation result =
      explain_replay(it, samples, {a.left, before}, b.made, describe(b.form, a.form));
  result.parameters = parameters_of(b.form, a.form);
  return result;
}

std::optional<Explanation> replayed_by(const Case& it, const Site& input, const Mlp& mlp) {
  const double work =
      4 * static_cast<double>(mlp.up.shape[0]) * static_cast<double>(mlp.up.shape[1]);
  const std::optional<Samples> samples = samples_of(it, input, work);
  if (!samples) return std::nullopt;
  const Hidden hidden_a = hidden_of(mlp, samples->in_a), hidden_b = hidden_of(mlp, samples->in_b);
  const Best a = best_form(mlp.gated, samples->out_a, [&](const MlpForm& form) {
    return made_by(mlp, hidden_a, form, samples->features);
  });
  if (!a.form.activation) return std::nullopt;
  const Best b = best_form(mlp.gated, samples->out_b, [&](const MlpForm& form) {
    return made_by(mlp, hidden_b, form, samples->features);
  });
  const double before = misfit(made_by(mlp, hidden_b, a.form, samples->features), samples->out_b);
  return explain(it, *samples, a, b, before);
}

}  // namespace

std::optional<Explanation> replay_mlp(const Case& it) {
  const Site* input = find_role(it.run, it.site, Role::mlp_norm);
  if (it.site.role != Role::mlp_output || !input || it.run.weights.empty()) return std::nullopt;
  const uint64_t width = by_tokens(input->views.a, it.run.extent).features;
  std::optional<Explanation> best;
  for (const std::size_t way : {0, 1}) {
    const std::optional<Mlp> mlp = find_mlp(it, width, way);
    if (!mlp) return std::nullopt;
    std::optional<Explanation> found = replayed_by(it, *input, *mlp);
    if (found && (!best || found->after < best->after)) best = std::move(found);
    if (best && best->settled) break;
  }
  return best;
}

}  // namespace tensordiff
