// The kernel that takes f16 and bf16 as stored, against the one that takes them as floats.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "compare/kernels/decode.h"
#include "compare/kernels/test_targets.h"
#include "compare/kernels/tile.h"

namespace tensordiff {
namespace {

struct Words {
  std::vector<uint16_t> a, b;
};

// Any finite values, subnormals and zeros among them, of both signs or of one; b is a few steps
// away, or anything.
Words random_words(std::size_t count, DType dtype, unsigned seed) {
  std::mt19937 random(seed);
  const uint16_t infinite = dtype == DType::bf16 ? 0x7f80 : 0x7c00;
  const unsigned signs = seed % 4;
  const auto any = [&] {
    const auto size = static_cast<uint16_t>(random() % infinite >> random() % 16);
    const unsigned sign = signs < 2 ? signs : random() % 2;
    return static_cast<uint16_t>(size | sign << 15);
  };
  Words words;
  for (std::size_t i = 0; i < count; ++i) {
    words.a.push_back(any());
    const bool near = random() % 64 != 0 && (words.a.back() & 0x7fff) + 9 < infinite;
    words.b.push_back(near ? static_cast<uint16_t>(words.a.back() + random() % 9) : any());
  }
  return words;
}

std::vector<float> decoded(DType dtype, const std::vector<uint16_t>& words) {
  std::vector<float> values(words.size());
  kernels::decode(dtype, reinterpret_cast<const std::byte*>(words.data()), words.size(),
                  values.data());
  return values;
}

void expect_as_floats(DType dtype, const Words& words, bool crowded) {
  const std::size_t count = words.a.size();
  const std::vector<float> a = decoded(dtype, words.a);
  const std::vector<float> b = decoded(dtype, words.b);
  const kernels::Tile tile{count, 7, {1e-5, 1e-3}, {}, {}, true, crowded};
  Sums want;
  const std::size_t done = kernels::diff(a.data(), b.data(), tile, want);

  std::vector<float> to_a(count), to_b(count);
  Sums got;
  ASSERT_EQ(kernels::diff(
                {words.a.data(), words.b.data(), dtype == DType::bf16, to_a.data(), to_b.data()},
                tile, got),
            done);
  ASSERT_EQ(std::memcmp(to_a.data(), a.data(), count * sizeof(float)), 0);
  ASSERT_EQ(std::memcmp(to_b.data(), b.data(), count * sizeof(float)), 0);
  if (done == 0) return;
  if (got.ulp != kStepsUnknown) {
    EXPECT_EQ(got.ulp, kernels::ulp16(words.a.data(), words.b.data(), done));
  }
  want.ulp = got.ulp;
  // Where zeros of both signs are the lowest or the highest, either may be named.
  for (Sums* sums : {&got, &want})
    for (Moments* side : {&sums->a, &sums->b}) side->min += 0.0, side->max += 0.0;
  EXPECT_EQ(std::memcmp(&got, &want, sizeof got), 0);
}

TEST(Halves, GiveWhatTheirFloatsGive) {
  on_every_target([](const char* target) {
    for (const DType dtype : {DType::f16, DType::bf16})
      for (unsigned seed = 0; seed < 400; ++seed) {
        SCOPED_TRACE(testing::Message() << target << ", " << name_of(dtype) << ", seed " << seed);
        const std::size_t count = seed < 80 ? seed + 1 : 2048 - seed % 70;
        expect_as_floats(dtype, random_words(count, dtype, seed), seed % 2 == 0);
      }
  });
}

// The plain kernel on words.
Sums plain(DType dtype, const Words& words, std::size_t first, std::size_t count,
           const Threshold& limit) {
  const std::vector<float> floats_a = decoded(dtype, words.a);
  const std::vector<float> floats_b = decoded(dtype, words.b);
  const std::vector<double> a(floats_a.begin(), floats_a.end());
  const std::vector<double> b(floats_b.begin(), floats_b.end());
  return kernels::reference::diff(&a[first], &b[first], {count, first, limit, {}, {}});
}

// Tiles are told the records before them. What does not beat one may be left out, and merging
// brings it back.
Sums in_tiles(DType dtype, const Words& words, const Threshold& limit) {
  constexpr std::size_t kTile = 64;
  Sums total;
  for (std::size_t i = 0; i < words.a.size(); i += kTile) {
    const kernels::Best best{total.max_abs, total.max_rel, total.rtol_needed};
    float to_a[kTile], to_b[kTile];
    Sums part;
    const std::size_t done =
        kernels::diff({&words.a[i], &words.b[i], dtype == DType::bf16, to_a, to_b},
                      {kTile, i, limit, best, {}, true, i / kTile % 2 == 1}, part);
    // Differences too large for a float are declined.
    total.merge(done == kTile ? part : plain(dtype, words, i, kTile, limit));
  }
  return total;
}

TEST(Halves, FindEveryRecordAcrossTiles) {
  on_every_target([](const char* target) {
    for (const DType dtype : {DType::f16, DType::bf16})
      for (const Threshold limit : {Threshold{1e-5, 1e-3}, {0, 0}, {0, 1.0 / 256}, {1e-42, 1e-6}})
        for (unsigned seed = 0; seed < 12; ++seed) {
          SCOPED_TRACE(testing::Message() << target << ", " << name_of(dtype) << ", atol "
                                          << limit.atol << ", seed " << seed);
          const Words words = random_words(2048, dtype, seed);
          const Sums got = in_tiles(dtype, words, limit);
          const Sums want = plain(dtype, words, 0, 2048, limit);
          EXPECT_EQ(got.max_abs, want.max_abs);
          EXPECT_EQ(got.max_abs_at, want.max_abs_at);
          EXPECT_EQ(got.max_rel, want.max_rel);
          EXPECT_EQ(got.rtol_needed, want.rtol_needed);
          EXPECT_EQ(got.exceeding, want.exceeding);
          EXPECT_EQ(got.equal, want.equal);
        }
  });
}

TEST(Halves, TellZerosOfBothSigns) {
  on_every_target([](const char* target) {
    SCOPED_TRACE(target);
    const auto measured = [](uint16_t low, uint16_t high) {
      std::vector<uint16_t> a(64, low), b(64, 0x3c00);
      a[40] = high, b[40] = 0x8000;
      std::vector<float> to_a(64), to_b(64);
      Sums sums;
      EXPECT_EQ(kernels::diff({a.data(), b.data(), false, to_a.data(), to_b.data()},
                              {64, 0, {}, {}, {}, true}, sums),
                64U);
      return sums;
    };
    Sums sums = measured(0x8000, 0x0000);
    EXPECT_EQ(sums.a.zeros, 64U);
    EXPECT_EQ(sums.b.zeros, 1U);
    EXPECT_EQ(sums.equal, 1U);
    EXPECT_FALSE(std::signbit(sums.a.min));
    sums = measured(0x8000, 0x8000);
    EXPECT_EQ(sums.a.zeros, 64U);
    EXPECT_TRUE(std::signbit(sums.a.max));
    sums = measured(0x8000, 0x3c00);
    EXPECT_EQ(sums.a.zeros, 63U);
    EXPECT_EQ(sums.a.min, 0);
    EXPECT_EQ(sums.a.max, 1);
    sums = measured(0xbc00, 0x8000);
    EXPECT_EQ(sums.a.min, -1);
    EXPECT_EQ(sums.a.max, 0);
  });
}

// Pairs of one sign and a few steps apart, which is what rounding gives: the steps are known.
TEST(Halves, KnowTheStepsOfWhatRoundingGives) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    Words words;
    for (uint16_t i = 0; i < 2048; ++i) {
      words.a.push_back(static_cast<uint16_t>((i % 2) << 15 | i * 11));
      words.b.push_back(static_cast<uint16_t>(words.a.back() + i % 4));
    }
    std::vector<float> to_a(2048), to_b(2048);
    Sums sums;
    ASSERT_EQ(kernels::diff(
                  {words.a.data(), words.b.data(), dtype == DType::bf16, to_a.data(), to_b.data()},
                  {2048, 0, {1e-5, 1e-3}, {}, {}, true}, sums),
              2048U);
    EXPECT_EQ(sums.ulp, 3U);
  }
}

TEST(Halves, AreDeclinedWhereOneIsNotFinite) {
  on_every_target([](const char* target) {
    for (const uint16_t bad : {0x7c00, 0xfc00, 0x7e00}) {
      Words words = random_words(2048, DType::f16, 3);
      words.b[1234] = bad;
      std::vector<float> to_a(2048), to_b(2048);
      Sums sums;
      EXPECT_EQ(kernels::diff({words.a.data(), words.b.data(), false, to_a.data(), to_b.data()},
                              {2048, 0, {}, {}, {}, true}, sums),
                0U)
          << target;
      EXPECT_EQ(std::memcmp(to_b.data(), decoded(DType::f16, words.b).data(), 8192), 0);
    }
  });
}

}  // namespace
}  // namespace tensordiff
