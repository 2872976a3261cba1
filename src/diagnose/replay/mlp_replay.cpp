// An MLP computed again: down(act(gate(x)) · up(x)), or down(act(up(x))), with one mistake at a
// time.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "diagnose/limits.h"
#include "diagnose/replay/activation.h"
#include "diagnose/replay/linear_replay.h"

namespace tensordiff {
namespace {

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
        "B computes {0}(up) · gate, A computes {1}(gate) · up: gate and up "
        "are swapped",
        b.swapped ? b.activation->name : a.activation->name,
        b.swapped ? a.activation->name : b.activation->name);
  return fmt::format("the activation is {} in B and {} in A", b.activation->name,
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

// The MLP of a step with its form, as a computes it.
struct MlpStep {
  const Site* input = nullptr;
  Mlp mlp;
  double work = 0;  // Multiplications for one token.
  Samples samples;
  Best of_a;
  Replayed replayed;
};

std::optional<MlpStep> learn_mlp(const Case& it, const Site& input, std::optional<Mlp> mlp) {
  if (!mlp) return std::nullopt;
  MlpStep step{&input, std::move(*mlp), 0, {}, {}, {}};
  step.work =
      4 * static_cast<double>(step.mlp.up.shape[0]) * static_cast<double>(step.mlp.up.shape[1]);
  std::optional<Samples> samples = samples_of(it, input, step.work);
  if (!samples) return std::nullopt;
  step.samples = std::move(*samples);
  const Hidden hidden = hidden_of(step.mlp, step.samples.in_a);
  step.of_a = best_form(step.mlp.gated, step.samples.out_a, [&](const MlpForm& form) {
    return made_by(step.mlp, hidden, form, step.samples.features);
  });
  if (!step.of_a.form.activation || step.of_a.left > limits::kOwnFit) return std::nullopt;
  const Hidden hidden_b = hidden_of(step.mlp, step.samples.in_b);
  step.replayed = {step.of_a.left,
                   misfit(made_by(step.mlp, hidden_b, step.of_a.form, step.samples.features),
                          step.samples.out_b)};
  return step;
}

std::optional<MlpStep> learn_mlp(const Case& it) {
  const Site* input = find_role(it.run, it.site, Role::mlp_norm);
  if (it.site.role != Role::mlp_output || !input || it.run.weights.empty()) return std::nullopt;
  const uint64_t width = by_tokens(input->views.a, it.run.extent).features;
  for (const std::size_t way : {0, 1})
    if (auto step = learn_mlp(it, *input, find_mlp(it, width, way))) return step;
  return std::nullopt;
}

}  // namespace

std::optional<Expected> expect_mlp(const Case& it) {
  const std::optional<MlpStep> step = learn_mlp(it);
  if (!step) return std::nullopt;
  return expect_replay(it, *step->input, step->replayed, step->work,
                       [&](const Matrix& in, const std::vector<uint64_t>& features) {
                         return made_by(step->mlp, hidden_of(step->mlp, in), step->of_a.form,
                                        features);
                       });
}

std::optional<Explanation> replay_mlp(const Case& it) {
  const std::optional<MlpStep> step = learn_mlp(it);
  if (!step) return std::nullopt;
  const Hidden hidden = hidden_of(step->mlp, step->samples.in_b);
  const Best of_b = best_form(step->mlp.gated, step->samples.out_b, [&](const MlpForm& form) {
    return made_by(step->mlp, hidden, form, step->samples.features);
  });
  const MlpForm &a = step->of_a.form, &b = of_b.form;
  if (!b.activation || (a.activation == b.activation && a.swapped == b.swapped))
    return std::nullopt;
  Explanation result = explain_replay(it, step->samples, step->replayed, of_b.made, describe(b, a));
  result.parameters = parameters_of(b, a);
  return result;
}

}  // namespace tensordiff
