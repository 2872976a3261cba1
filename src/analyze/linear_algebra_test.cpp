#include "analyze/linear_algebra.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analyze/clusters.h"

namespace tensordiff {
namespace {

Dense random_matrix(std::size_t rows, std::size_t columns, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  Dense matrix{rows, columns, std::vector<double>(rows * columns)};
  for (double& value : matrix.values) value = normal(generator);
  return matrix;
}

Dense product(const Dense& x, const Dense& y) {
  Dense result{x.rows, y.columns, std::vector<double>(x.rows * y.columns)};
  for (std::size_t i = 0; i < x.rows; ++i)
    for (std::size_t k = 0; k < x.columns; ++k)
      for (std::size_t j = 0; j < y.columns; ++j) result.row(i)[j] += x.row(i)[k] * y.row(k)[j];
  return result;
}

TEST(Eigenvalues, OfSmallMatrices) {
  EXPECT_EQ(eigenvalues({1, 1, {7}}), std::vector<double>{7});
  const std::vector<double> two = eigenvalues({2, 2, {2, 1, 1, 2}});
  EXPECT_NEAR(two[0], 3, 1e-12);
  EXPECT_NEAR(two[1], 1, 1e-12);
  // The chain of n springs: 2 - 2 cos(k pi / (n + 1)).
  const std::vector<double> three = eigenvalues({3, 3, {2, -1, 0, -1, 2, -1, 0, -1, 2}});
  for (int k = 1; k <= 3; ++k) EXPECT_NEAR(three[3 - k], 2 - 2 * std::cos(k * M_PI / 4), 1e-12);
}

// Sums of powers of eigenvalues are traces of powers of the matrix.
TEST(Eigenvalues, KeepTheTraces) {
  for (const std::size_t n : {2, 3, 10, 96}) {
    const Dense symmetric = gram(random_matrix(n, n + 3, 5));
    const std::vector<double> values = eigenvalues(symmetric);
    double trace = 0, squares = 0, sum = 0, sum_squares = 0;
    for (std::size_t i = 0; i < n; ++i) trace += symmetric.row(i)[i];
    for (const double value : symmetric.values) squares += value * value;
    for (const double value : values) sum += value, sum_squares += value * value;
    EXPECT_NEAR(sum / trace, 1, 1e-11) << n;
    EXPECT_NEAR(sum_squares / squares, 1, 1e-11) << n;
    EXPECT_GE(values.back(), -1e-9 * values[0]);
  }
}

TEST(Eigenvalues, OfDiagonalAndZeroMatrices) {
  EXPECT_EQ(eigenvalues({3, 3, {1, 0, 0, 0, 5, 0, 0, 0, 3}}), (std::vector<double>{5, 3, 1}));
  EXPECT_EQ(eigenvalues({2, 2, {0, 0, 0, 0}}), (std::vector<double>{0, 0}));
  EXPECT_TRUE(eigenvalues({}).empty());
}

TEST(Spectrum, FindsTheRank) {
  const Dense matrix = product(random_matrix(60, 4, 1), random_matrix(4, 90, 2));
  const Spectrum spectrum = spectrum_of(matrix);
  EXPECT_EQ(spectrum.rank_holding(1 - 1e-9), 4);
  EXPECT_NEAR(spectrum.held_by(4), 1, 1e-12);
  EXPECT_LT(spectrum.held_by(3), 0.99);
  EXPECT_LT(spectrum.effective_rank(), 4.001);
}

TEST(Spectrum, OfAnIdentityIsFlat) {
  const Spectrum spectrum = spectrum_of({3, 3, {1e-200, 0, 0, 0, 1e-200, 0, 0, 0, 1e-200}});
  EXPECT_EQ(spectrum_of({2, 2, {0, 0, 0, 0}}).stable_rank(), 0);
  EXPECT_EQ(spectrum.energies.size(), 3);
  const Spectrum one = spectrum_of({3, 3, {2, 0, 0, 0, 2, 0, 0, 0, 2}});
  EXPECT_NEAR(one.stable_rank(), 3, 1e-12);
  EXPECT_NEAR(one.effective_rank(), 3, 1e-12);
  EXPECT_NEAR(one.energies[0], 4, 1e-12);
}

TEST(LinearCka, IsBlindToScaleAndOrderOfFeatures) {
  const Dense x = random_matrix(20, 12, 3);
  Dense turned = x;
  for (std::size_t i = 0; i < x.rows; ++i)
    for (std::size_t j = 0; j < x.columns; ++j) turned.row(i)[j] = -3 * x.row(i)[11 - j];
  EXPECT_NEAR(linear_cka(row_gram(x), row_gram(turned)), 1, 1e-9);
  EXPECT_LT(linear_cka(row_gram(x), row_gram(random_matrix(20, 12, 4))), 0.8);
  EXPECT_EQ(linear_cka(row_gram(x), {20, 20, std::vector<double>(400, 1.0)}), 0);
}

TEST(Clusters, AreFound) {
  Dense rows = random_matrix(30, 5, 6);
  for (std::size_t i = 0; i < rows.rows; ++i) rows.row(i)[i % 3] += 40;
  const Clusters found = cluster_rows(rows, 3);
  for (std::size_t i = 3; i < 30; ++i) EXPECT_EQ(found.labels[i], found.labels[i % 3]);
  EXPECT_GT(found.explained, 0.98);
}

TEST(Clusters, OfFewOrEqualRows) {
  EXPECT_TRUE(cluster_rows({}, 3).labels.empty());
  const Clusters one = cluster_rows({2, 1, {4, 4}}, 5);
  EXPECT_EQ(one.count, 2);
  EXPECT_EQ(one.explained, 0);
}

TEST(AdjustedRand, CorrectsForChance) {
  const std::vector<std::size_t> x = {0, 0, 0, 1, 1, 1}, renamed = {2, 2, 2, 0, 0, 0};
  EXPECT_DOUBLE_EQ(adjusted_rand(x, renamed), 1);
  const std::vector<std::size_t> crossed = {0, 1, 0, 1, 0, 1};
  EXPECT_LT(adjusted_rand(x, crossed), 0.1);
}

}  // namespace
}  // namespace tensordiff
