#include "diagnose/graph/lone.h"

#include <gtest/gtest.h>

#include "match/test_catalogs.h"

namespace tensordiff {
namespace {

TEST(LoneTensors, AreThoseWithoutAPartnerAndThoseWhosePartnerHasAnotherShape) {
  Catalog catalog = catalog_of(Names{"paired", "left", "other shape", "broken", "whole numbers"});
  catalog.tensors[3].fault = "cut short";
  catalog.tensors[4].view.dtype = DType::i32;
  std::vector<Site> sites(2);
  sites[0].comparison.status = Status::close;
  sites[1].capture = 2;
  sites[1].comparison.status = Status::incomparable;
  std::vector<Leftover> leftovers(3);
  leftovers[0].tensor = 3;
  leftovers[1].tensor = 1;
  leftovers[2].tensor = 4;
  const std::vector<Lone> found = lone_tensors(catalog, leftovers, sites, &Row::capture);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, "left");
  EXPECT_EQ(found[0].capture, 1U);
  EXPECT_EQ(found[1].name, "other shape");
}

}  // namespace
}  // namespace tensordiff
