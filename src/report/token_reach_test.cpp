#include "report/token_reach.h"

#include <gtest/gtest.h>

#include "tensor/test_views.h"

namespace tensordiff {
namespace {

// Two sequences of four tokens and of two.
std::vector<RunToken> tokens() {
  std::vector<RunToken> all;
  for (int32_t i = 0; i < 4; ++i) all.push_back({0, i});
  for (int32_t i = 0; i < 2; ++i) all.push_back({1, i});
  return all;
}

TEST(TokenReach, SpeaksOfSequencesAndPositions) {
  EXPECT_EQ(reach_text({2, 3}, tokens()), "of sequence 0 from position 2 on");
  EXPECT_EQ(reach_text({4, 5}, tokens()), "of sequence 1");
  EXPECT_EQ(reach_text({1}, tokens()), "of sequence 0 at position 1");
  EXPECT_EQ(reach_text({0, 1, 3, 5}, tokens()),
            "of sequence 0 at positions 0–1, 3 and of sequence 1 from position 1 on");
  EXPECT_EQ(reach_text({1, 2, 3, 5}, tokens()), "of each sequence from position 1 on");
  std::vector<RunToken> three = tokens();
  for (int32_t i = 0; i < 2; ++i) three.push_back({2, i});
  EXPECT_EQ(reach_text({5, 7}, three), "of sequences 1–2 from position 1 on");
  std::vector<RunToken> one = tokens();
  one.resize(4);
  EXPECT_EQ(reach_text({2, 3}, one), "from position 2 on");
}

TEST(TokenReach, FindsTheTokensThatDiffer) {
  const View a = noise_view({1, 6, 8}, 1);
  std::vector<float> changed = values_of(a);
  for (std::size_t i = 4 * 8; i < changed.size(); ++i) changed[i] += 0.5F;
  for (float& value : changed) value *= 1.0F + 1e-7F;  // Rounding is everywhere.
  const AlignedPair pair{a, f32_view({1, 6, 8}, changed), {}};
  EXPECT_EQ(rows_apart(pair, 6), (TokenRows{4, 5}));
  EXPECT_EQ(rows_apart(pair, 5), std::nullopt);
}

TEST(TokenReach, ABatchWithoutPackingIsReadBySequence) {
  const View a = noise_view({2, 3, 8}, 1);
  std::vector<float> changed = values_of(a);
  for (std::size_t i = 4 * 8; i < 5 * 8; ++i) changed[i] += 0.5F;
  EXPECT_EQ(rows_apart({a, f32_view({2, 3, 8}, changed), {}}, 6, 2), (TokenRows{4}));
}

}  // namespace
}  // namespace tensordiff
