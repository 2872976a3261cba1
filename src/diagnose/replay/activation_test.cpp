#include "diagnose/replay/activation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "compare/comparison.h"
#include "diagnose/toys/toy_model.h"

namespace tensordiff {
namespace {

using Function = std::function<double(double)>;

double silu(double x) { return x / (1 + std::exp(-x)); }
double gelu_erf(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

Site site_of(Role role, const Values& a, const Values& b, DType dtype) {
  Site site;
  site.layer = 0;
  site.role = role;
  site.roundoff = dtype == DType::f32 ? std::ldexp(1, -24) : std::ldexp(1, -8);
  site.views.a = view_of({16, a.size() / 16}, a, dtype);
  site.views.b = view_of({16, b.size() / 16}, b, dtype);
  site.comparison = compare(site.views, {}).value();
  return site;
}

// An MLP's input and what each side makes of it; b's machine is off by `off` of each value.
std::optional<ActivationStep> learn(const Function& of_a, const Function& of_b, DType dtype,
                                    double off = 0) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal(0, 1.5);
  Values in, out_a, out_b;
  for (int i = 0; i < 16 * 40; ++i) {
    in.push_back(as_stored(normal(random), dtype));
    out_a.push_back(of_a(in.back()));
    out_b.push_back(of_b(in.back()) * (1 + off * normal(random)));
  }
  Run run;
  run.extent = {1, 16};
  run.sites = {site_of(Role::up, in, in, dtype), site_of(Role::activation, out_a, out_b, dtype)};
  return learn_activation(run, run.sites[1]);
}

TEST(Activation, TellsFunctionsApartThatAreNearlyTheSame) {
  const auto step = learn(gelu_tanh, gelu_erf, DType::f32);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->of_a, "GELU (tanh)");
  EXPECT_EQ(step->of_b, "GELU (erf)");
  EXPECT_FALSE(step->same);
}

TEST(Activation, IsTheSameOnAMachineWithARoughTanh) {
  const auto step = learn(gelu_tanh, gelu_tanh, DType::f32, 2e-5);
  ASSERT_TRUE(step);
  EXPECT_TRUE(step->same);
}

TEST(Activation, DoesNotTellApartWhatRoundingHides) {
  const auto step = learn(gelu_tanh, gelu_erf, DType::bf16);
  ASSERT_TRUE(step);
  EXPECT_TRUE(step->same);
  const auto other = learn(silu, gelu_erf, DType::bf16);
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->same);
}

TEST(Activation, IsUnknownWhereNoFunctionFits) {
  EXPECT_FALSE(learn([](double x) { return 3 * std::sin(x); }, gelu_erf, DType::f32));
}

}  // namespace
}  // namespace tensordiff
