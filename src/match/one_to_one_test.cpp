#include "match/one_to_one.h"

#include <gtest/gtest.h>

namespace tensordiff {
namespace {

TEST(OneToOne, TellsThePartnerThatAllPairsAgreeOn) {
  OneToOne names;
  names.learn("h.0", "layers.0");
  names.learn("h.0", "layers.0");
  ASSERT_TRUE(names.partner("h.0"));
  EXPECT_EQ(*names.partner("h.0"), "layers.0");
}

TEST(OneToOne, TellsNothingOfWhatWasNeverSeen) { EXPECT_FALSE(OneToOne().partner("h.0")); }

TEST(OneToOne, TellsNothingOfANameWithTwoPartners) {
  OneToOne names;
  names.learn("h.0", "layers.0");
  names.learn("h.0", "layers.1");
  EXPECT_FALSE(names.partner("h.0"));
}

TEST(OneToOne, TellsNothingOfTwoNamesWithOnePartner) {
  OneToOne names;
  names.learn("h.0", "layers.0");
  names.learn("h.1", "layers.0");
  EXPECT_FALSE(names.partner("h.0"));
  EXPECT_FALSE(names.partner("h.1"));
}

}  // namespace
}  // namespace tensordiff
