#include <gtest/gtest.h>

#include "report/token_reach.h"

namespace tensordiff {
namespace {

// A prompt in two chunks, then two steps of decoding.
std::vector<RunToken> in_passes() {
  std::vector<RunToken> all;
  for (int32_t i = 0; i < 8; ++i) all.push_back({0, i, i < 3 ? 0 : i < 6 ? 1 : i - 4});
  return all;
}

TEST(TokenPasses, NamesChunksAndDecodeSteps) {
  EXPECT_EQ(passes_text({3, 4, 5}, in_passes()), "the second chunk");
  EXPECT_EQ(passes_text({4, 5}, in_passes()), "in the second chunk");
  EXPECT_EQ(passes_text({3, 4, 5, 6, 7}, in_passes()), "from the second chunk on");
  EXPECT_EQ(passes_text({6, 7}, in_passes()), "all decode steps");
  EXPECT_EQ(passes_text({7}, in_passes()), "the second decode step");
  EXPECT_EQ(passes_text({2, 5}, in_passes()), "");  // Nothing that passes have to do with.
  EXPECT_EQ(passes_text({1}, {{0, 0}, {0, 1}, {1, 0}}), "");  // One pass.
}

TEST(TokenPasses, WithoutPositionsPassesAreNamed) {
  std::vector<RunToken> all = in_passes();
  for (RunToken& token : all) token.sequence = token.pass, token.placed = false;
  EXPECT_EQ(reach_text({3, 4, 5}, all), "of pass 1");
  EXPECT_EQ(passes_text({3, 4, 5}, all), "");
}

}  // namespace
}  // namespace tensordiff
