#include "diagnose/replay/norm_factors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tensordiff {
namespace {

constexpr uint64_t kTokens = 16, kFeatures = 40;

Matrix random_matrix(double size, std::mt19937& random) {
  std::normal_distribution<double> normal(0, size);
  Matrix made;
  made.tokens = kTokens, made.features = kFeatures;
  for (uint64_t i = 0; i < kTokens * kFeatures; ++i) made.values.push_back(normal(random));
  return made;
}

Matrix normed(Matrix x, bool centred, std::mt19937& random) {
  std::normal_distribution<double> normal;
  std::vector<double> weight, bias;
  for (uint64_t i = 0; i < kFeatures; ++i) {
    weight.push_back(1 + 0.3 * normal(random));
    bias.push_back(centred ? 0.3 * normal(random) : 0);
  }
  for (uint64_t row = 0; row < kTokens; ++row) {
    double mean = 0, square = 0;
    for (const double value : x.row(row)) mean += centred ? value / kFeatures : 0;
    for (const double value : x.row(row)) square += (value - mean) * (value - mean) / kFeatures;
    for (uint64_t i = 0; i < kFeatures; ++i)
      x.row(row)[i] = (x.row(row)[i] - mean) / std::sqrt(square) * weight[i] + bias[i];
  }
  return x;
}

// The norm of a stream, what is added to it, and the norm of the sum.
NormParts random_parts(bool centred, unsigned seed) {
  std::mt19937 random(seed);
  Matrix stream = random_matrix(1, random), branch = random_matrix(0.7, random);
  for (uint64_t row = 0; row < kTokens; ++row)
    for (double& value : stream.row(row)) value *= 1 + 0.1 * static_cast<double>(row);
  Matrix sum = stream;
  for (std::size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += branch.values[i];
  NormParts parts;
  parts.stream = normed(stream, centred, random);
  parts.out = normed(sum, centred, random);
  parts.branch = branch;
  for (uint64_t row = 0; centred && row < kTokens; ++row) {
    double mean = 0;
    for (const double value : branch.row(row)) mean += value / kFeatures;
    for (double& value : parts.branch.row(row)) value -= mean;
  }
  return parts;
}

TEST(NormFactors, MakeBothKindsOfNorm) {
  for (const bool centred : {false, true}) {
    const NormParts parts = random_parts(centred, 3);
    const NormFactors fit = factors_of(parts, centred, 1e-12);
    EXPECT_LT(fit.left, 1e-6);
    EXPECT_NEAR(left_of(made_by(parts, fit), parts.out), fit.left, 1e-12);
    // Before the weight all tokens of a norm are of one size.
    for (uint64_t row = 0; row < kTokens; ++row)
      EXPECT_NEAR(size_of(parts.out.row(row), fit), size_of(parts.out.row(0), fit), 1e-4);
    EXPECT_GT(left_of(branch_part(parts, fit), parts.out), 0.3);
  }
}

TEST(NormFactors, WithoutBiasesMakeNoLayerNorm) {
  EXPECT_GT(factors_of(random_parts(true, 3), false, 1e-12).left, 0.05);
}

TEST(NormFactors, MakeNothingOfWhatIsNoNorm) {
  for (const bool centred : {false, true}) {
    NormParts parts = random_parts(centred, 3);
    std::mt19937 random(4);
    parts.out = random_matrix(1, random);
    EXPECT_GT(factors_of(parts, centred, 1e-12).left, 0.3);
  }
}

// With the weights that one run tells, another one tells only its tokens.
TEST(NormFactors, AreThoseOfTheTokensWhereTheFeaturesAreKnown) {
  const NormParts parts = random_parts(true, 3);
  const NormFactors whole = factors_of(parts, true, 1e-12);
  NormFactors again = whole;
  std::fill(again.of_stream.begin(), again.of_stream.end(), 0);
  fit_tokens(parts, again);
  for (uint64_t row = 0; row < kTokens; ++row)
    EXPECT_NEAR(again.of_stream[row], whole.of_stream[row], 1e-5);
}

}  // namespace
}  // namespace tensordiff
