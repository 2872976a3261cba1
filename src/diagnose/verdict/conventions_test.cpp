#include "diagnose/verdict/conventions.h"

#include <gtest/gtest.h>

namespace tensordiff {
namespace {

// A norm, a query laid out otherwise, and attention's heads, which read it.
Run run_with(double heads_error) {
  Run run;
  const struct {
    Role role;
    double error;
  } steps[] = {
      {Role::attention_norm, 1e-7}, {Role::query, 1.4}, {Role::attention_heads, heads_error}};
  for (const auto& step : steps) {
    Site site;
    site.index = run.sites.size();
    site.block = 0;
    site.role = step.role;
    site.error = step.error;
    site.roundoff = 0x1p-24;
    site.comparison.status = Status::close;
    site.comparison.diff.compared = 10;
    run.sites.push_back(site);
  }
  run.sites[1].verdict = Verdict::bug;
  return run;
}

TEST(Conventions, ALayoutThatAttentionUndoesIsGoneBehindIt) {
  const tensordiff::Run run = run_with(3e-7);
  EXPECT_EQ(reader_of(run, run.sites[1]), &run.sites[2]);
  EXPECT_TRUE(gone_behind(run, run.sites[1]));
}

TEST(Conventions, ALayoutThatAttentionReadsAsItIsRemains) {
  const tensordiff::Run run = run_with(0.5);
  EXPECT_FALSE(gone_behind(run, run.sites[1]));
}

TEST(Conventions, WhatAgreedToTheBitBeforeMustDoSoBehind) {
  tensordiff::Run run = run_with(3e-7);
  for (Site* site : {&run.sites[0], &run.sites[2]}) site->comparison.diff.equal = 10;
  run.sites[0].role = Role::attention_heads;  // Of an earlier layer.
  run.sites[0].block = -1;
  EXPECT_FALSE(gone_behind(run, run.sites[1]));
}

TEST(Conventions, OtherStepsHaveNoReaderThatUndoesALayout) {
  tensordiff::Run run = run_with(3e-7);
  EXPECT_EQ(reader_of(run, run.sites[0]), nullptr);
  EXPECT_FALSE(gone_behind(run, run.sites[0]));
}

}  // namespace
}  // namespace tensordiff
