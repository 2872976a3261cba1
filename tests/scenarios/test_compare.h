// For tests: two catalogs compared as the program does it.

#pragma once

#include <gtest/gtest.h>

#include <utility>

#include "pipeline.h"

namespace tensordiff {

inline Report compare_catalogs(Catalog a, Catalog b) {
  const Request request;
  Result<Pairing> pairing = pair_up(std::move(a), std::move(b), request);
  EXPECT_TRUE(pairing.ok());
  Result<Report> report = compare_pairs(pairing.value(), pairing.value().report, request);
  EXPECT_TRUE(report.ok());
  return std::move(report).value();
}

}  // namespace tensordiff
