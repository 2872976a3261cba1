// Every vector kernel against its plain twin, on every instruction set this machine has.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "compare/kernels/decode.h"
#include "compare/kernels/test_targets.h"
#include "compare/kernels/tile.h"

namespace tensordiff {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Values {
  std::vector<float> a, b;
};

Values random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.5F, 2.0F);
  Values values;
  for (std::size_t i = 0; i < count; ++i) {
    values.a.push_back(random() % 11 ? normal(random) : 0.0F);
    values.b.push_back(random() % 7 ? values.a.back() * (1 + 1e-3F * normal(random))
                                    : values.a.back());
  }
  return values;
}

void expect_near(double got, double want, const char* what) {
  EXPECT_NEAR(got, want, 1e-10 * std::abs(want) + 1e-300) << what;
}

void expect_same(const Sums& got, const Sums& want) {
  EXPECT_EQ(got.count, want.count);
  EXPECT_EQ(got.equal, want.equal);
  EXPECT_EQ(got.exceeding, want.exceeding);
  EXPECT_EQ(got.max_abs, want.max_abs);
  EXPECT_EQ(got.max_abs_at, want.max_abs_at);
  EXPECT_EQ(got.max_rel, want.max_rel);
  EXPECT_EQ(got.rtol_needed, want.rtol_needed);
  EXPECT_EQ(got.a.min, want.a.min);
  EXPECT_EQ(got.a.max, want.a.max);
  EXPECT_EQ(got.b.min, want.b.min);
  EXPECT_EQ(got.b.max, want.b.max);
  EXPECT_EQ(got.a.zeros, want.a.zeros);
  EXPECT_EQ(got.b.zeros, want.b.zeros);
  expect_near(got.a.mean, want.a.mean, "mean a");
  expect_near(got.b.m2, want.b.m2, "m2 b");
  expect_near(got.co, want.co, "co");
  expect_near(got.d_abs, want.d_abs, "d_abs");
  expect_near(got.d_squared, want.d_squared, "d_squared");
  expect_near(got.d_relative, want.d_relative, "d_relative");
}

std::vector<double> widened(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

TEST(VectorDiff, AgreesWithThePlainKernelAtEveryLength) {
  on_every_target([](const char* target) {
    for (std::size_t count = 1; count < 70; ++count) {
      SCOPED_TRACE(testing::Message() << target << ", " << count << " elements");
      const Values v = random_values(count, static_cast<unsigned>(count));
      const bool crowded = count % 2 == 1;  // Only a hint.
      const kernels::Tile tile{count, 1000, {1e-4, 1e-3}, {}, {}, false, crowded};
      Sums got;
      const std::size_t done = kernels::diff(v.a.data(), v.b.data(), tile, got);
      ASSERT_GT(done + 70, count);
      if (done == 0) continue;
      kernels::Tile part = tile;
      part.count = done;
      const auto a = widened(v.a);
      const auto b = widened(v.b);
      expect_same(got, kernels::reference::diff(a.data(), b.data(), part));

      Sums wide;
      const std::size_t wide_done = kernels::diff(a.data(), b.data(), tile, wide);
      part.count = wide_done;
      if (wide_done) expect_same(wide, kernels::reference::diff(a.data(), b.data(), part));
    }
  });
}

TEST(VectorDiff, DeclinesValuesThatAreNotFinite) {
  on_every_target([](const char* target) {
    for (const float bad : {static_cast<float>(kInf), static_cast<float>(-kInf),
                            std::numeric_limits<float>::quiet_NaN()}) {
      for (std::size_t at = 0; at < 64; at += 13) {
        Values v = random_values(64, 5);
        v.b[at] = bad;
        Sums sums;
        EXPECT_EQ(kernels::diff(v.a.data(), v.b.data(), {64, 0, {}, {}, {}, false}, sums), 0U)
            << target << bad;
      }
    }
  });
}

// A reciprocal of 1e38 is no normal float any more.
TEST(VectorDiff, TakesValuesNearTheEndOfTheRange) {
  on_every_target([](const char* target) {
    SCOPED_TRACE(target);
    Values v = random_values(64, 5);
    v.a[3] = 1e38F, v.b[3] = 1.1e38F, v.a[40] = -2e38F, v.b[40] = -1.5e38F;
    Sums got;
    ASSERT_EQ(kernels::diff(v.a.data(), v.b.data(), {64, 0, {1e-4, 1e-3}, {}, {}, false}, got),
              64U);
    const auto a = widened(v.a);
    const auto b = widened(v.b);
    expect_same(got,
                kernels::reference::diff(a.data(), b.data(), {64, 0, {1e-4, 1e-3}, {}, {}, false}));
  });
}

// Walks the values in tiles of 64, each told the records before it, and holds the whole against the
// plain kernel. What does not beat a record may be left out, and merging brings it back.
void expect_same_in_tiles(const Values& v, const Threshold& limit, bool narrow) {
  const auto a = widened(v.a);
  const auto b = widened(v.b);
  Sums total;
  for (std::size_t first = 0; first < a.size(); first += 64) {
    Sums part;
    const kernels::Best best{total.max_abs, total.max_rel, total.rtol_needed};
    const bool crowded = first / 64 % 2 == 1;
    ASSERT_EQ(kernels::diff(v.a.data() + first, v.b.data() + first,
                            {64, first, limit, best, {}, narrow, crowded}, part),
              64U);
    total.merge(part);
  }
  expect_same(total,
              kernels::reference::diff(a.data(), b.data(), {a.size(), 0, limit, {}, {}, narrow}));
}

TEST(VectorDiff, FindsEveryRecordAcrossTiles) {
  on_every_target([](const char* target) {
    for (const Threshold limit : {Threshold{1e-4, 1e-3}, {0, 0}, {0, 1e-3}, {1e-42, 1e-6}}) {
      SCOPED_TRACE(testing::Message() << target << ", atol " << limit.atol);
      expect_same_in_tiles(random_values(4096, 21), limit, false);
    }
  });
}

// Values of few bits have the same largest ratio and distance many times over; the tiny ones lie
// among the subnormal floats, where products round to nothing.
TEST(VectorDiff, TellsATieFromARecordAmongNarrowValues) {
  on_every_target([](const char* target) {
    for (const DType dtype : {DType::bf16, DType::f16}) {
      for (const float size : {1.0F, 3e-5F, 1e-38F}) {
        for (const float noise : {1e-3F, 0.05F, 3.0F}) {
          SCOPED_TRACE(testing::Message() << target << ", " << size << ", noise " << noise);
          std::mt19937 random(5);
          std::normal_distribution<float> normal;
          Values v{std::vector<float>(4096), std::vector<float>(4096)};
          std::vector<uint16_t> bits(4096);
          for (std::size_t i = 0; i < 4096; ++i) {
            v.a[i] = size * normal(random);
            v.b[i] = v.a[i] * (1 + noise * normal(random));
          }
          for (std::vector<float>* side : {&v.a, &v.b}) {
            kernels::encode16(dtype, side->data(), 4096, bits.data());
            kernels::decode(dtype, reinterpret_cast<const std::byte*>(bits.data()), 4096,
                            side->data());
          }
          expect_same_in_tiles(v, {1e-5, 1e-2}, true);
          expect_same_in_tiles(v, {0, 1.0 / 256}, true);
        }
      }
    }
  });
}

TEST(VectorDiff, NeedsNoToleranceForZeroDistance) {
  const std::vector<float> a(64, 0.0F);
  const std::vector<float> b(64, 0.0F);
  Sums sums;
  ASSERT_EQ(kernels::diff(a.data(), b.data(), {64, 0, {0, 0}, {}, {}, false}, sums), 64U);
  EXPECT_EQ(sums.max_rel, 0);
  EXPECT_EQ(sums.rtol_needed, 0);
  EXPECT_EQ(sums.exceeding, 0U);
  EXPECT_EQ(sums.equal, 64U);
}

TEST(VectorDiff, NoRtolWillDoWhereTheReferenceIsZero) {
  const std::vector<float> a(64, 0.0F);
  const std::vector<float> b(64, 1.0F);
  Sums sums;
  ASSERT_EQ(kernels::diff(a.data(), b.data(), {64, 0, {1e-5, 1e-3}, {}, {}, false}, sums), 64U);
  EXPECT_EQ(sums.rtol_needed, kInf);
  EXPECT_EQ(sums.max_rel, 1);
}

// As a float, the record is without limit too.
TEST(VectorDiff, NoRtolIsMoreThanOneThatNoFloatHolds) {
  std::vector<float> a(64, 1.0F);
  const std::vector<float> b(64, 1.0F);
  a[7] = 0;
  Sums sums;
  ASSERT_EQ(
      kernels::diff(a.data(), b.data(), {64, 0, {1e-5, 1e-3}, {10, 1, 1e42}, {}, false}, sums),
      64U);
  EXPECT_EQ(sums.rtol_needed, kInf);
}

TEST(VectorMoments, AgreeWithThePlainKernel) {
  on_every_target([](const char* target) {
    const Values v = random_values(2048, 9);
    Moments got;
    ASSERT_EQ(kernels::moments(v.a.data(), v.a.size(), got), v.a.size()) << target;
    const auto a = widened(v.a);
    const Moments want = kernels::reference::moments(a.data(), a.size());
    expect_near(got.mean, want.mean, "mean");
    expect_near(got.m2, want.m2, "m2");
    EXPECT_EQ(got.min, want.min);
    EXPECT_EQ(got.max, want.max);
    EXPECT_EQ(got.zeros, want.zeros);
  });
}

TEST(VectorMoments, AreGivenOnlyWhereTheTwinHasTheSameBits) {
  on_every_target([](const char* target) {
    SCOPED_TRACE(target);
    const Values v = random_values(2048, 9);
    Moments alone;
    Moments same;
    ASSERT_EQ(kernels::moments(v.a.data(), v.a.size(), alone), v.a.size());
    const std::vector<float> twin = v.a;
    ASSERT_EQ(kernels::moments_if_same(v.a.data(), twin.data(), twin.size(), same), twin.size());
    EXPECT_EQ(same.mean, alone.mean);
    EXPECT_EQ(same.m2, alone.m2);
    for (const std::size_t at : {0U, 1U, 777U, 2047U}) {
      std::vector<float> other = v.a;
      other[at] = std::nextafter(other[at], 100.0F);
      EXPECT_EQ(kernels::moments_if_same(v.a.data(), other.data(), other.size(), same), 0U) << at;
    }
  });
}

TEST(VectorMoments, DeclineWhatIsNotFinite) {
  on_every_target([](const char* target) {
    for (const float bad : {static_cast<float>(kInf), std::numeric_limits<float>::quiet_NaN()}) {
      for (const std::size_t at : {0U, 1U, 63U}) {
        Values v = random_values(64, 5);
        v.a[at] = bad;
        Moments moments;
        EXPECT_EQ(kernels::moments(v.a.data(), 64, moments), 0U) << target << at;
        EXPECT_EQ(kernels::moments_if_same(v.a.data(), v.a.data(), 64, moments), 0U) << target;
      }
    }
  });
}

TEST(VectorDiff, CountsTheStepsBetweenFloatsOfOneSign) {
  on_every_target([](const char* target) {
    SCOPED_TRACE(target);
    Values v = random_values(256, 31);
    const auto found = [&] {
      Sums sums;
      EXPECT_EQ(kernels::diff(v.a.data(), v.b.data(), {256, 0, {}, {}, {}, false}, sums), 256U);
      return sums.ulp;
    };
    for (std::size_t i = 0; i < 256; ++i)
      if (std::signbit(v.a[i]) != std::signbit(v.b[i])) v.b[i] = v.a[i];
    EXPECT_EQ(found(), kernels::reference::ulp(v.a.data(), v.b.data(), 256));
    for (const auto& [a, b] : {std::pair{1.0F, -1.0F}, {0.0F, -0.0F}, {3e38F, -0.0F}}) {
      v.a[200] = a, v.b[200] = b;
      EXPECT_EQ(found(), kStepsUnknown) << a << " " << b;
    }
  });
}

TEST(Ulp, AgreesWithThePlainKernelAndCountsAcrossZero) {
  on_every_target([](const char* target) {
    for (std::size_t count = 0; count < 70; ++count) {
      const Values v = random_values(count, 77);
      EXPECT_EQ(kernels::ulp(v.a.data(), v.b.data(), count),
                kernels::reference::ulp(v.a.data(), v.b.data(), count))
          << target << count;
      const auto a = widened(v.a);
      const auto b = widened(v.b);
      EXPECT_EQ(kernels::ulp(a.data(), b.data(), count),
                kernels::reference::ulp(a.data(), b.data(), count));
    }
  });
  on_every_target([](const char* target) {
    std::mt19937 random(5);
    std::vector<uint8_t> bytes(600);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    std::vector<uint16_t> words(600);
    for (uint16_t& word : words) word = static_cast<uint16_t>(random());
    for (std::size_t count = 0; count < 300; count += 7) {
      EXPECT_EQ(kernels::ulp8(bytes.data(), bytes.data() + 300, count),
                kernels::reference::ulp8(bytes.data(), bytes.data() + 300, count))
          << target << count;
      EXPECT_EQ(kernels::ulp16(words.data(), words.data() + 300, count),
                kernels::reference::ulp16(words.data(), words.data() + 300, count))
          << target << count;
    }
  });
  const float tiny = std::numeric_limits<float>::denorm_min();
  const float a[] = {tiny, 0.0F, 1.0F};
  const float b[] = {-tiny, -0.0F, std::nextafter(1.0F, 2.0F)};
  EXPECT_EQ(kernels::ulp(a, b, 1), 2U);
  EXPECT_EQ(kernels::ulp(a + 1, b + 1, 1), 0U);
  EXPECT_EQ(kernels::ulp(a + 2, b + 2, 1), 1U);
}

// All patterns of all the small types, through the vectors and through the plain decoder.
TEST(Decode, AgreesWithThePlainDecoderOnEveryPattern) {
  constexpr DType kTypes[] = {DType::f16,     DType::bf16,        DType::f8_e4m3,
                              DType::f8_e5m2, DType::f8_e4m3fnuz, DType::f8_e5m2fnuz,
                              DType::f8_e8m0};
  on_every_target([&](const char* target) {
    for (const DType dtype : kTypes) {
      const std::size_t count = std::size_t{1} << info(dtype).bits;
      std::vector<std::byte> stored(count * item_bytes(dtype));
      for (std::size_t i = 0; i < count; ++i) {
        stored[i * item_bytes(dtype)] = static_cast<std::byte>(i);
        if (item_bytes(dtype) == 2) stored[i * 2 + 1] = static_cast<std::byte>(i >> 8);
      }
      std::vector<float> got(count - 1);  // One short, so that there is a tail.
      std::vector<double> want(count);
      kernels::decode(dtype, stored.data(), count - 1, got.data());
      decode(dtype, stored.data(), count, want.data());
      for (std::size_t i = 0; i + 1 < count; ++i) {
        if (std::isnan(want[i])) {
          EXPECT_TRUE(std::isnan(got[i])) << target << " " << name_of(dtype) << " " << i;
        } else {
          EXPECT_EQ(got[i], want[i]) << target << " " << name_of(dtype) << " " << i;
        }
      }
    }
  });
}

TEST(Encode16, IsTheInverseOfDecodeAndRoundsToNearestEven) {
  on_every_target([](const char* target) {
    for (const DType dtype : {DType::f16, DType::bf16}) {
      std::vector<uint16_t> bits;
      for (unsigned i = 0; i < 0x7c00; i += 3) bits.push_back(static_cast<uint16_t>(i));
      std::vector<float> values(bits.size());
      kernels::decode(dtype, reinterpret_cast<const std::byte*>(bits.data()), bits.size(),
                      values.data());
      std::vector<uint16_t> back(bits.size());
      kernels::encode16(dtype, values.data(), values.size(), back.data());
      EXPECT_EQ(back, bits) << target << " " << name_of(dtype);
    }
    // Half way between two neighbours: the even one wins.
    const float ties[] = {1 + 0x1p-8F, 1 + 3 * 0x1p-8F};
    uint16_t bits[2];
    kernels::encode16(DType::bf16, ties, 2, bits);
    EXPECT_EQ(bits[0], 0x3f80);
    EXPECT_EQ(bits[1], 0x3f82);
  });
}

TEST(Sums, MergingPartsGivesTheWhole) {
  const Values v = random_values(1000, 3);
  const auto a = widened(v.a);
  const auto b = widened(v.b);
  const Sums whole = kernels::reference::diff(a.data(), b.data(), {1000, 0, {1e-4, 1e-3}, {}, {}});
  Sums parts;
  for (std::size_t first = 0; first < 1000; first += 130) {
    const std::size_t count = std::min<std::size_t>(130, 1000 - first);
    parts.merge(kernels::reference::diff(a.data() + first, b.data() + first,
                                         {count, first, {1e-4, 1e-3}, {}, {}}));
  }
  expect_same(parts, whole);
}

}  // namespace
}  // namespace tensordiff
