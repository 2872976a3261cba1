#include "diagnose/replay/activation.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

constexpr ActivationFunction kFunctions[] = {
    {"GELU (tanh)",
     [](double x) {
       const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
       return 0.5 * x * (1 + std::tanh(inner));
     }},
    {"GELU (erf)", [](double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }},
    {"quick GELU", [](double x) { return x * sigmoid(1.702 * x); }},
    {"SiLU", [](double x) { return x * sigmoid(x); }},
    {"ReLU", [](double x) { return std::max(x, 0.0); }},
    {"squared ReLU", [](double x) { return std::max(x, 0.0) * std::max(x, 0.0); }},
    {"leaky ReLU (0.01)", [](double x) { return x < 0 ? 0.01 * x : x; }},
    {"leaky ReLU (0.2)", [](double x) { return x < 0 ? 0.2 * x : x; }},
    {"ReLU6", [](double x) { return std::clamp(x, 0.0, 6.0); }},
    {"hard swish", [](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }},
    {"hard sigmoid", [](double x) { return std::clamp(x + 3, 0.0, 6.0) / 6; }},
    {"ELU", [](double x) { return x < 0 ? std::expm1(x) : x; }},
    {"Mish", [](double x) { return x * std::tanh(softplus(x)); }},
    {"softplus", softplus},
    {"sigmoid", sigmoid},
    {"tanh", [](double x) { return std::tanh(x); }},
    {"exp", [](double x) { return std::exp(x); }},
    {"the absolute value", [](double x) { return std::abs(x); }},
    {"no activation", [](double x) { return x; }},
};

// ‖out − f(in)‖ / ‖out‖ of each function on one side; nothing where the input is not there.
std::optional<std::vector<double>> fits(const Run& run, const Site& site, View AlignedPair::*side) {
  const Site* input = activation_input(run, site);
  if (!input) return std::nullopt;
  const Result<Matrix> in = read_matrix(input->views.*side, run.extent);
  const Result<Matrix> out = read_matrix(site.views.*side, run.extent);
  if (!in.ok() || !out.ok() || !same_form(in.value(), out.value())) return std::nullopt;
  const double size = norm(out.value().values);
  if (size == 0) return std::nullopt;
  std::vector<double> left;
  std::vector<double> made(in.value().values.size());
  for (const ActivationFunction& function : kFunctions) {
    std::ranges::transform(in.value().values, made.begin(), function.value);
    left.push_back(distance(made, out.value().values) / size);
  }
  return left;
}

}  // namespace

std::span<const ActivationFunction> activation_functions() { return kFunctions; }

const Site* activation_input(const Run& run, const Site& site) {
  if (!site.recorded.empty() && site.inputs.size() == 1) return &run.sites[site.inputs[0]];
  const Site* gate = find_role(run, site, Role::gate);
  return gate ? gate : find_role(run, site, Role::up);
}

double activation_limit(const Site& site) { return std::clamp(8 * site.roundoff, 1e-4, 0.03); }

const ActivationFunction* function_of(const Run& run, const Site& site, View AlignedPair::*side) {
  const auto left = fits(run, site, side);
  if (!left) return nullptr;
  const auto best = std::ranges::min_element(*left);
  return *best <= activation_limit(site) ? &kFunctions[best - left->begin()] : nullptr;
}

std::optional<ActivationStep> learn_activation(const Run& run, const Site& site) {
  if (site.role != Role::activation || !site.compared()) return std::nullopt;
  const auto left_a = fits(run, site, &AlignedPair::a);
  const auto left_b = fits(run, site, &AlignedPair::b);
  if (!left_a || !left_b) return std::nullopt;
  const auto best = [](const std::vector<double>& left) {
    return static_cast<std::size_t>(std::ranges::min_element(left) - left.begin());
  };
  const std::size_t of_a = best(*left_a), of_b = best(*left_b);
  if ((*left_a)[of_a] > activation_limit(site) || (*left_b)[of_b] > activation_limit(site))
    return std::nullopt;
  // Rounding may favour a function that is nearly the same.
  const bool same = (*left_b)[of_a] <= 2 * (*left_b)[of_b] + 4 * site.roundoff;
  return ActivationStep{kFunctions[of_a].name, kFunctions[of_b].name, same};
}

}  // namespace tensordiff
