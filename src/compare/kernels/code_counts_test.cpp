#include "compare/kernels/code_counts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "compare/kernels/test_targets.h"

namespace tensordiff::kernels {
namespace {

// `values` codes at most on each side: one pair alone fills a count.
std::vector<uint8_t> random_codes(std::size_t count, unsigned values, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> codes(count);
  for (uint8_t& code : codes) code = static_cast<uint8_t>(0x7e + random() % values);
  return codes;
}

TEST(CodeCounts, AgreeWithThePlainTwin) {
  on_every_target([](const char* target) {
    CodeCounts counts;
    for (const std::size_t count : {0, 1, 31, 64, 1000, 65536}) {
      for (const unsigned values : {1, 4, 256}) {
        SCOPED_TRACE(fmt::format("{} pairs of {}, {}", count, values, target));
        const auto a = random_codes(count, values, 1), b = random_codes(count, values, 2);
        const auto found = counts.count(a.data(), b.data(), count);
        EXPECT_EQ(std::vector(found.begin(), found.end()),
                  reference::count_codes(a.data(), b.data(), count));
      }
    }
  });
}

TEST(CodeCounts, TellHowFarCodesAreApart) {
  on_every_target([](const char* target) {
    for (const std::size_t count : {0, 1, 33, 2048}) {
      SCOPED_TRACE(fmt::format("{} pairs, {}", count, target));
      const auto a = random_codes(count, 256, 3), b = random_codes(count, 256, 4);
      for (const CodeOrder order :
           {CodeOrder::unsigned_int, CodeOrder::signed_int, CodeOrder::sign_and_size})
        EXPECT_EQ(codes_apart(order, a.data(), b.data(), count),
                  reference::codes_apart(order, a.data(), b.data(), count));
    }
  });
}

}  // namespace
}  // namespace tensordiff::kernels
