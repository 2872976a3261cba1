#include "diagnose/sample/evidence_slice.h"

#include <gtest/gtest.h>

#include "diagnose/toys/toy_model.h"

namespace tensordiff {
namespace {

// Two heads of three tokens of four features; one element differs.
Site site_with(std::size_t different) {
  Values a, b;
  for (int i = 0; i < 24; ++i) a.push_back(i);
  b = a;
  b[different] += 10;  // Less than what other values are: size alone must not draw the eye.
  Site site;
  site.views.a = view_of({2, 3, 4}, a, DType::f32);
  site.views.b = view_of({2, 3, 4}, b, DType::f32);
  return site;
}

Case case_of(const Run& run, const Site& site) {
  return {run, site, read_matrix(site.views.a, run.extent).value(),
          read_matrix(site.views.b, run.extent).value()};
}

TEST(EvidenceSlice, IsWhereTheSidesAreFarthestApart) {
  tensordiff::Run run;
  run.extent = {1, 3};
  for (const std::size_t different : {0, 7, 13, 23}) {
    const Site site = site_with(different);
    const Case it = case_of(run, site);
    const auto slice = evidence_of(it, std::nullopt);
    ASSERT_TRUE(slice);
    // A whole line of the last axis, in the axes of the tensor and not of the matrix.
    EXPECT_EQ(slice->at, (std::vector<uint64_t>{different / 12, different / 4 % 3, 0}));
    ASSERT_EQ(slice->a.size(), 4U);
    const std::size_t line = different - different % 4;
    EXPECT_EQ(slice->a[0], static_cast<double>(line));
    EXPECT_EQ(slice->b[different % 4], static_cast<double>(different) + 10);
    EXPECT_TRUE(slice->model.empty());
  }
}

TEST(EvidenceSlice, StaysWhereTheModelSpeaks) {
  tensordiff::Run run;
  run.extent = {1, 3};
  const Site site = site_with(5);
  const Case it = case_of(run, site);
  Matrix model = it.b;
  std::ranges::fill(model.values, NAN);
  model.row(2)[1] = 7;
  const auto slice = evidence_of(it, model);
  ASSERT_TRUE(slice);
  EXPECT_EQ(slice->at, (std::vector<uint64_t>{0, 2, 0}));
  EXPECT_EQ(slice->model[1], 7);
}

}  // namespace
}  // namespace tensordiff
