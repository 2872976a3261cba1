// Files compressed as a whole: what is inside is found, and every fault and limit is said.

#include "formats/compressed.h"

#include <gtest/gtest.h>

#include "formats/limits.h"
#include "formats/test_files.h"

namespace tensordiff {
namespace {

using namespace test_files;

struct Codec {
  const Format* format;
  std::string (*pack)(std::string_view plain);
  std::string_view ending;
};
const Codec kCodecs[] = {{&formats::gzip, gzip, ".gz"},
                         {&formats::zstd, zstd, ".zst"},
                         {&formats::xz, xz, ".xz"},
                         {&formats::bzip2, bzip2, ".bz2"}};

TEST(Compressed, OpensWhatIsInside) {
  for (const Codec& codec : kCodecs) {
    const Result<Catalog> alone = codec.format->open(input(codec.pack(npy_f32({1, 2}))));
    ASSERT_TRUE(alone.ok()) << alone.error().message();
    EXPECT_EQ(alone.value().format, fmt::format("npy{}", codec.ending));
    EXPECT_TRUE(read_all(alone.value()));
    const std::string tarred = tar({{"d/a.npy", npy_f32({1})}, {"d/b.npy", npy_f32({2})}});
    const Result<Catalog> several = codec.format->open(input(codec.pack(tarred)));
    ASSERT_TRUE(several.ok()) << several.error().message();
    EXPECT_EQ(several.value().format, fmt::format("tar{}", codec.ending));
    EXPECT_EQ(several.value().tensors.size(), 2U);
  }
}

TEST(Compressed, ReadsStreamsInARow) {
  const std::string plain = npy_f32({1, 2, 3});
  for (const Codec& codec : kCodecs) {
    const std::string both = codec.pack(plain.substr(0, 50)) + codec.pack(plain.substr(50));
    EXPECT_EQ(error_of(*codec.format, both), "") << codec.ending;
  }
}

TEST(Compressed, SaysWhatIsWrong) {
  const std::string plain = npy_f32({1, 2, 3});
  for (const Codec& codec : kCodecs) {
    const std::string packed = codec.pack(plain);
    const std::string cut = error_of(*codec.format, packed.substr(0, packed.size() - 9));
    EXPECT_EQ(cut, "the compressed data ends in the middle") << codec.ending;
    EXPECT_NE(error_of(*codec.format, packed + "junk"), "") << codec.ending;
    EXPECT_EQ(error_of(*codec.format, codec.pack(packed)), "compressed more than once");
    EXPECT_TRUE(error_of(*codec.format, codec.pack("hello")).starts_with("not of a known format"));
    std::string changed = packed;
    changed[packed.size() / 2] ^= 0x55;
    EXPECT_NE(error_of(*codec.format, changed), "") << codec.ending;
  }
}

TEST(Compressed, HoldsTheLimits) {
  const std::string zeros(80 << 20, '\0');  // Every codec but gzip packs this a thousandfold.
  for (const Codec& codec : kCodecs) {
    Input packed = input(codec.pack(zeros));
    packed.limits.growth_max = 500;
    EXPECT_EQ(codec.format->open(packed).error().message(),
              "it unpacks to more than 500 times its size, the limit; --limit growth=N raises it");
    packed.limits.expanded_bytes_max = 1000;
    EXPECT_EQ(codec.format->open(packed).error().message(),
              "it unpacks to more than 1000 B, the limit; --limit expanded=N raises it");
  }
}

TEST(Limits, AreSetByName) {
  Limits limits;
  for (const LimitRow& row : kLimitRows) {
    EXPECT_TRUE(set_limit(limits, row.name, 17).ok());
    EXPECT_EQ(limits.*row.value, 17U) << row.name;
  }
  EXPECT_TRUE(set_limit(limits, "nothing", 1)
                  .error()
                  .message()
                  .starts_with("no limit 'nothing'; known are pickle, json"));
}

}  // namespace
}  // namespace tensordiff
