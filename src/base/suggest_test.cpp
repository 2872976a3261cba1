#include "base/suggest.h"

#include <gtest/gtest.h>

namespace tensordiff {
namespace {

constexpr std::string_view kWords[] = {"rel_l2", "max_abs", "cosine", "mse"};

TEST(Suggest, FindsTheWordThatWasMeant) {
  EXPECT_EQ(nearest_word("rel-l2", kWords), "rel_l2");
  EXPECT_EQ(nearest_word("Cosin", kWords), "cosine");
  EXPECT_EQ(nearest_word("maxabs", kWords), "max_abs");
  EXPECT_EQ(nearest_word("mes", kWords), "mse");
  EXPECT_EQ(nearest_word("nms", kWords), "");
  EXPECT_EQ(nearest_word("perplexity", kWords), "");
  EXPECT_EQ(nearest_word("", kWords), "");
  EXPECT_EQ(nearest_word(std::string(100'000, 'x'), kWords), "");
}

TEST(Suggest, ListsAllWhereNoneIsNear) {
  EXPECT_EQ(did_you_mean("mze", kWords), "; did you mean 'mse'?");
  EXPECT_EQ(did_you_mean("perplexity", kWords), "; known are rel_l2, max_abs, cosine, mse");
}

}  // namespace
}  // namespace tensordiff
