// Compares what an implementation computed with what its reference did, without writing a file.
//
// example: two dumps made here, in memory. example A B: two files. Prints the first divergence and
// its cause; exits as diff(1) does.

#include <tensordiff/tensordiff.h>

#include <cmath>
#include <iostream>
#include <vector>

namespace {

using namespace tensordiff::api;

constexpr uint64_t kTokens = 8, kWidth = 32;

// The output of three steps for each token; `scale` is what the second one multiplies by.
std::vector<std::vector<float>> run_model(float scale) {
  std::vector<std::vector<float>> steps(3, std::vector<float>(kTokens * kWidth));
  for (std::size_t i = 0; i < kTokens * kWidth; ++i) {
    steps[0][i] = std::sin(static_cast<float>(i) * 0.7F);
    steps[1][i] = steps[0][i] * scale;
    steps[2][i] = steps[1][i] + std::cos(static_cast<float>(i));
  }
  return steps;
}

std::vector<Tensor> dump(const std::vector<std::vector<float>>& steps) {
  const char* names[] = {"layers.0.input", "layers.0.attn", "layers.0.output"};
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < steps.size(); ++i)
    tensors.push_back({names[i], "f32", {kTokens, kWidth}, steps[i].data()});
  return tensors;
}

int show(const Outcome& outcome) {
  if (!outcome.error.empty()) {
    std::cerr << "example: " << outcome.error << "\n";
    return exit_status(Verdict::trouble);
  }
  const Report& report = outcome.report;
  if (report.first_divergence)
    std::cout << "first divergence: " << report.pairs[report.first_divergence->pair].name_a << "\n";
  for (const Finding& finding : report.findings)
    std::cout << "cause: " << finding.code << ": " << finding.explanation << "\n";
  std::cout << report.pairs.size() << " pairs\n";
  return exit_status(report.verdict);
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 3) return show(compare(arguments[1], arguments[2]));
  const auto a = run_model(1);
  const auto b = run_model(0.125F);
  return show(compare(dump(a), dump(b)));
}
