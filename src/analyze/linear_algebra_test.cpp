#include "analyze/linear_algebra.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analyze/clusters.h"
#include "analyze/low_rank.h"

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

// The chain of springs again, which the reflections have nothing to do for, and of any size.
TEST(Eigenvalues, OfChainsOfAnyLength) {
  for (const std::size_t n : {4, 7, 8, 9, 33, 100}) {
    Dense chain{n, n, std::vector<double>(n * n)};
    for (std::size_t i = 0; i < n; ++i) {
      chain.row(i)[i] = 2e-8;
      if (i + 1 < n) chain.row(i)[i + 1] = chain.row(i + 1)[i] = -1e-8;
    }
    const std::vector<double> values = eigenvalues(chain);
    for (std::size_t k = 1; k <= n; ++k) {
      const double angle = static_cast<double>(k) * M_PI / static_cast<double>(n + 1);
      EXPECT_NEAR(values[n - k], 1e-8 * (2 - 2 * std::cos(angle)), 1e-21) << n;
    }
  }
}

TEST(Gram, HasTheProductsOfAllRows) {
  for (const std::size_t n : {1, 5, 16, 17, 40}) {
    const Dense matrix = random_matrix(n, 23, 4), products = row_gram(matrix);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        EXPECT_NEAR(products.row(i)[j], dot(matrix.row(i), matrix.row(j)), 1e-12) << n;
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
  const Spectrum spectrum = spectrum_of(Dense{3, 3, {1e-200, 0, 0, 0, 1e-200, 0, 0, 0, 1e-200}});
  EXPECT_EQ(spectrum_of(Dense{2, 2, {0, 0, 0, 0}}).stable_rank(), 0);
  EXPECT_EQ(spectrum.energies.size(), 3);
  const Spectrum one = spectrum_of(Dense{3, 3, {2, 0, 0, 0, 2, 0, 0, 0, 2}});
  EXPECT_NEAR(one.stable_rank(), 3, 1e-12);
  EXPECT_NEAR(one.effective_rank(), 3, 1e-12);
  EXPECT_NEAR(one.energies[0], 4, 1e-12);
}

// A sample of 96 rows and 192 columns, which is smaller than the ranks that it refuses. Of random
// factors, some rows and columns of the product are the product of some.
TEST(Directions, AreNoMoreThanTheRankAndManyOfNoise) {
  const Extents whole{512, 640};
  const auto least = [&](Dense sample) {
    return 0.81 * directions_of(scaled(std::move(sample)), whole);
  };
  for (const std::size_t rank : {4, 64, 160})
    for (const unsigned seed : {8U, 20U, 31U})
      EXPECT_LT(least(product(random_matrix(96, rank, seed), random_matrix(rank, 192, seed + 1))),
                rank)
          << seed;
  EXPECT_GT(least(random_matrix(96, 192, 3)), 160);
  EXPECT_EQ(directions_of(scaled(Dense{20, 20, std::vector<double>(400)}), {20, 20}), 0);
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

// What is kept from one number of clusters to the next changes nothing, and neither does where the
// rows lie.
TEST(Cloud, GivesTheSameWhateverWasAskedBefore) {
  Dense rows = random_matrix(50, 11, 6);
  for (std::size_t i = 0; i < rows.rows; ++i) rows.row(i)[i % 4] += 7;
  Dense far = rows;
  for (double& value : far.values) value += 1e6;
  Cloud cloud(rows);
  for (const std::size_t count : {9, 2, 4, 17}) {
    const Clusters found = cloud.clusters(count), anew = cluster_rows(rows, count);
    EXPECT_EQ(found.labels, anew.labels) << count;
    EXPECT_DOUBLE_EQ(found.explained, anew.explained) << count;
    EXPECT_NEAR(cluster_rows(far, count).explained, found.explained, 1e-6) << count;
  }
  EXPECT_GT(cloud.clusters(4).explained, 0.7);
}

}  // namespace
}  // namespace tensordiff
