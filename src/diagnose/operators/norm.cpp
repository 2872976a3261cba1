#include "diagnose/operators/norm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/operators/context.h"
#include "diagnose/operators/norm_fit.h"
#include "diagnose/operators/proposal.h"
#include "diagnose/operators/sources.h"

namespace tensordiff::operators {
namespace {

// Those that models have.
constexpr double kEpsilons[] = {1e-6, 1e-5, 1e-12, 1e-8, 1e-7, 1e-4, 1e-3, 1e-2, 0};

// The mean square of what a norm gives without its weight: 1, less what an epsilon takes off where
// the input is small, and no more than rounding above.
constexpr double kSizeSlack = 0.1, kUnitSlack = 0x1p-7;

// The weight and bias of a module, or fitted where none are given.
struct NormWeights {
  std::vector<double> weight, bias;
  std::string name;
};

std::vector<NormWeights> weights_of(const Context& context) {
  std::vector<NormWeights> found;
  const std::string path = context.path();
  const View* weight = context.parameters().find(path, "weight");
  if (weight && weight->shape.size() == 1)
    found.push_back({read_vector(weight), read_vector(context.parameters().find(path, "bias")),
                     path + ".weight"});
  return found;
}

// The epsilon that leaves least of A.
void choose_epsilon(const Context& context, NormForm& form, const OperatorPtr& input) {
  double least = INFINITY;
  double best = kEpsilons[0];
  for (const double epsilon : kEpsilons) {
    form.epsilon = epsilon;
    const Misfit left = context.misfit(Norm(form, input), false);
    // One that cannot be told from a smaller misfit by a tenth is no better than the first.
    if (left.known && left.s < 0.9 * least) least = left.s, best = epsilon;
  }
  form.epsilon = best;
}

// With given weights: both kinds, with and without 1 added.
OperatorPtr with_given(const Context& context, const NormWeights& given, const OperatorPtr& input) {
  const uint64_t features = input->extents().features;
  if (given.weight.empty() || features % given.weight.size() != 0) return nullptr;
  for (const bool centred : {!given.bias.empty(), given.bias.empty()})
    for (const double plus : {0.0, 1.0}) {
      NormForm form{centred,    kEpsilons[0], given.weight.size(), given.weight,
                    given.bias, plus,         given.name};
      choose_epsilon(context, form, input);
      auto made = std::make_shared<Norm>(form, input);
      if (context.explains_a(*made)) return made;
    }
  return nullptr;
}

// Whether the rows of a norm's input have the size that a norm leaves: 1 but for the epsilon.
bool is_size_one(const Context& context, const Norm& norm) {
  const Block rows = norm.input()->predict({}, {context.grid(norm.extents()).rows});
  for (uint64_t r = 0; r < rows.rows(); ++r) {
    double sum = 0;
    for (uint64_t c = 0; c < rows.features; ++c) sum += rows.row(r)[c] * rows.row(r)[c];
    const double mean = sum / static_cast<double>(rows.features);
    if (!(mean > 1 - kSizeSlack && mean < 1 + kUnitSlack)) return false;
  }
  return !rows.empty();
}

// What was normalised was not dumped: A's output without its weight and bias is what it was, but
// for the size of each row, which a norm does not see.
OperatorPtr with_own_output(const Context& context, const NormWeights& given) {
  const DumpedPtr& target = context.target(Layout::tokens);
  if (!target || !context.inputs_agree() || given.weight.size() != target->extents().features)
    return nullptr;
  for (const double plus : {0.0, 1.0}) {
    std::vector<AsInA::Line> lines;
    for (std::size_t i = 0; i < given.weight.size(); ++i)
      lines.push_back({given.weight[i] + plus, given.bias.empty() ? 0 : given.bias[i]});
    const auto without = [](const AsInA::Line& line) { return line.factor == 0; };
    if (std::ranges::any_of(lines, without)) continue;
    NormForm form{!given.bias.empty(), 1,    given.weight.size(), given.weight,
                  given.bias,          plus, given.name,          true};
    auto made = std::make_shared<Norm>(form, std::make_shared<AsInA>(target, std::move(lines)));
    if (is_size_one(context, *made)) return made;
  }
  return nullptr;
}

OperatorPtr propose(const Context& context) {
  const std::vector<NormWeights> given = weights_of(context);
  for (const Layout layout : {Layout::tokens, Layout::channels}) {
    const DumpedPtr& target = context.target(layout);
    if (!target || (given.empty() && !may_be_norm(context, *target))) continue;
    OperatorPtr found;
    try_streams(context, target->extents(), [&](const OperatorPtr& input) {
      if (given.empty()) {
        if (std::optional<NormForm> form = fit_norm(context, *target, input, kEpsilons)) {
          auto made = std::make_shared<Norm>(std::move(*form), input);
          if (context.explains_a(*made)) found = std::move(made);
        }
      } else if (given[0].weight.size() <= target->extents().features &&
                 may_be_input(context, *target, input)) {
        found = with_given(context, given[0], input);
      }
      return found != nullptr;
    });
    if (found) return found;
  }
  return given.empty() ? nullptr : with_own_output(context, given[0]);
}

}  // namespace

Block Norm::predict(const Reading& from, const Grid& grid) const {
  const Block x = input_->predict(from, {grid.rows});
  if (x.empty()) return {};
  Block made{grid.columns.empty() ? x.features : grid.columns.size()};
  made.values.resize(grid.rows.size() * made.features);
  const uint64_t group = form_.group == 0 ? x.features : form_.group;
  const auto size = static_cast<double>(group);
  std::vector<double> mean(x.features / group), scale(mean.size());
  for (uint64_t r = 0; r < made.rows(); ++r) {
    const double* in = x.row(r);
    for (std::size_t g = 0; g < mean.size(); ++g) {
      double sum = 0, squares = 0;
      for (uint64_t i = g * group; i < (g + 1) * group; ++i) sum += in[i];
      mean[g] = form_.centred ? sum / size : 0;
      double all = 0;
      for (uint64_t i = g * group; i < (g + 1) * group; ++i) {
        squares += (in[i] - mean[g]) * (in[i] - mean[g]);
        all += in[i] * in[i];
      }
      const double lacking = form_.of_own_output ? std::max(0.0, 1 - all / size) : 1;
      scale[g] = 1 / std::sqrt(squares / size + lacking * form_.epsilon);
    }
    for (uint64_t c = 0; c < made.features; ++c) {
      const uint64_t column = grid.columns.empty() ? c : grid.columns[c];
      const uint64_t g = column / group;
      double value = (in[column] - mean[g]) * scale[g];
      if (!form_.weight.empty()) value *= form_.weight[column % form_.weight.size()] + form_.plus;
      if (!form_.bias.empty()) value += form_.bias[column % form_.bias.size()];
      made.row(r)[c] = value;
    }
  }
  return made;
}

void Norm::change_epsilon(const Context& context, std::vector<Change>& changes) const {
  if (form_.of_own_output) return;
  const auto text = [&](double epsilon) {
    return fmt::format("the norm has epsilon {} in B and {} in A", human_number(epsilon),
                       human_number(form_.epsilon));
  };
  const auto add = [&](double epsilon, double bits, double dof) {
    NormForm other = form_;
    other.epsilon = epsilon;
    changes.push_back({with(other),
                       "norm_epsilon",
                       text(epsilon),
                       "epsilon",
                       Family::parameter,
                       bits,
                       dof,
                       {{"epsilon_a", form_.epsilon}, {"epsilon_b", epsilon}}});
  };
  for (const double epsilon : kEpsilons)
    if (epsilon != form_.epsilon) add(epsilon, std::log2(std::size(kEpsilons)), 0);
  // Any other: the one that leaves least of B, by thirds in its logarithm.
  double low = std::log(1e-13), high = std::log(1e2);
  const auto left = [&](double log_epsilon) {
    NormForm other = form_;
    other.epsilon = std::exp(log_epsilon);
    return context.misfit(Norm(other, input_), true).rest;
  };
  for (int step = 0; step < 40; ++step) {
    const double third = (high - low) / 3;
    if (left(low + third) < left(high - third))
      high -= third;
    else
      low += third;
  }
  add(std::exp((low + high) / 2), 1, 1);
}

void Norm::change_weight(const Context& context, std::vector<Change>& changes) const {
  const auto add = [&](NormForm form, std::string text, std::string cause, double bits) {
    changes.push_back(
        {with(form), "norm_weight", std::move(text), std::move(cause), Family::parameter, bits});
  };
  NormForm other = form_;
  other.weight.clear();
  add(other, "B omits the weight of the norm", "weight_missing", 2);
  if (!form_.bias.empty()) {
    other.bias.clear();
    add(other, "B omits weight and bias of the norm", "weight_missing", 2);
    other = form_;
    other.bias.clear();
    add(other, "B omits the bias of the norm", "bias_missing", 2);
    other = form_;
    std::swap(other.weight, other.bias);
    add(other, "B has weight and bias of the norm swapped", "swapped", 2);
  }
  other = form_;
  other.plus = form_.plus == 0 ? 1 : 0;
  add(other,
      form_.plus == 0 ? "B adds 1 to the weight of the norm, A does not"
                      : "B does not add 1 to the weight of the norm, A does",
      "plus_one", 2);
  if (form_.name.empty()) return;
  const std::vector<Named> others = context.parameters().of_shape({form_.weight.size()}, false);
  for (const Named& vector : others) {
    if (vector.name == form_.name || !vector.name.ends_with("weight")) continue;
    other = form_;
    other.weight = read_vector(vector.view);
    if (other.weight.empty()) continue;
    const double bits = std::log2(static_cast<double>(others.size()) + 1) + 1;
    const std::string text = fmt::format("B has the weight '{}' where A has '{}'",
                                         printable(vector.name, 80), printable(form_.name, 80));
    add(other, text, "other_weight", bits);
    const std::string path = vector.name.substr(0, vector.name.size() - 7);
    other.bias = read_vector(context.parameters().find(path, "bias"));
    if (!form_.bias.empty() && other.bias.size() == form_.bias.size())
      add(other, text, "other_weight", bits);
  }
}

std::vector<Change> Norm::changes(const Context& context) const {
  std::vector<Change> changes;
  change_epsilon(context, changes);
  change_weight(context, changes);
  NormForm other = form_;
  other.centred = !form_.centred;
  changes.push_back({with(other), "operator",
                     form_.centred
                         ? "B does not subtract the mean: an RMS norm where A has a layer "
                           "norm"
                         : "B subtracts the mean: a layer norm where A has an RMS norm",
                     "centring", Family::parameter, 1});
  // Its own output without its weight is normalised already.
  if (!form_.of_own_output)
    changes.push_back({input_, "other_tensor",
                       fmt::format("B does not normalize {}", input_->text()), "norm_missing",
                       Family::substitution, 1});
  lift(
      input_->changes(context),
      [&](const OperatorPtr& made) { return std::make_shared<Norm>(form_, made); }, changes);
  return changes;
}

std::string Norm::text() const { return fmt::format("the norm of {}", input_->text()); }

constinit const Proposal kinds::norm = {
    .kind = "norm",
    .needs = "the tensor that is normalized, or the two that are added to make it",
    .propose = propose,
};

}  // namespace tensordiff::operators
