// Chunks packed by hand. What real writers make is in zarr_test.cpp.

#include "formats/codecs.h"

#include <gtest/gtest.h>

#include "formats/test_files.h"

namespace tensordiff {
namespace {

using test_files::u32;

std::string told(Result<std::string> (*unpack)(ByteView, uint64_t), const std::string& packed,
                 uint64_t bytes) {
  const Result<std::string> plain = unpack(as_bytes(packed), bytes);
  return plain.ok() ? plain.value() : "! " + plain.error().message();
}

TEST(Codecs, UndoLz4) {
  EXPECT_EQ(told(unpack_lz4,
                 "\x30"
                 "abc",
                 3),
            "abc");
  // One literal repeated eight times, then a last literal.
  EXPECT_EQ(told(unpack_lz4,
                 std::string("\x14"
                             "a\x01\x00\x10"
                             "z",
                             6),
                 10),
            "aaaaaaaaaz");
  EXPECT_EQ(told(unpack_lz4,
                 "\x30"
                 "ab",
                 3),
            "! the compressed data is damaged");
  EXPECT_EQ(told(unpack_lz4,
                 "\x30"
                 "abc",
                 2),
            "! the compressed data is damaged");
  EXPECT_EQ(told(unpack_lz4,
                 "\x30"
                 "abc",
                 4),
            "! it does not unpack to the expected 4 bytes");
  EXPECT_EQ(told(unpack_lz4,
                 std::string("\x14"
                             "a\x02\x00\x10"
                             "z",
                             6),
                 10),
            "! the compressed data is damaged");  // From before the start.
  EXPECT_EQ(told(unpack_lz4,
                 std::string("\x14"
                             "a\x00\x00\x10"
                             "z",
                             6),
                 10),
            "! the compressed data is damaged");  // From nowhere.
  EXPECT_EQ(told(unpack_lz4, "\xf0\xff\xff\xff", 1 << 20), "! the compressed data is damaged");
}

TEST(Codecs, UndoBlosclz) {
  EXPECT_EQ(told(unpack_blosclz,
                 "\x02"
                 "abc",
                 3),
            "abc");
  EXPECT_EQ(told(unpack_blosclz,
                 std::string("\x00"
                             "a\x40\x00",
                             4),
                 5),
            "aaaaa");
  EXPECT_EQ(told(unpack_blosclz,
                 std::string("\x00"
                             "a\x40\x01",
                             4),
                 5),
            "! the compressed data is damaged");
  EXPECT_EQ(told(unpack_blosclz,
                 "\x05"
                 "abc",
                 6),
            "! the compressed data is damaged");
}

TEST(Codecs, UndoShuffling) {
  EXPECT_EQ(unshuffle("ACEBDF", 2), "ABCDEF");
  EXPECT_EQ(unshuffle("ABx", 2), "ABx");
  // Eight elements of one byte: bit i of each is in byte i.
  EXPECT_EQ(unshuffle_bits(std::string("\xff\0\0\0\0\0\0\x01", 8), 1),
            std::string("\x81\x01\x01\x01\x01\x01\x01\x01"));
  EXPECT_EQ(unshuffle_bits("abc", 1), "abc");
}

std::string blosc(unsigned flags, uint32_t bytes, uint32_t block, const std::string& rest) {
  return std::string("\x02\x01") + static_cast<char>(flags) + "\x04" + u32(bytes) + u32(block) +
         u32(static_cast<uint32_t>(16 + rest.size())) + rest;
}

TEST(Codecs, OpenBlosc) {
  EXPECT_EQ(told(unpack_blosc, blosc(2, 4, 4, "abcd"), 4), "abcd");
  const std::string lz4 = u32(20) + u32(5) +
                          "\x40"
                          "abcd";
  EXPECT_EQ(told(unpack_blosc, blosc(1 << 5, 4, 4, lz4), 4), "abcd");
  EXPECT_EQ(told(unpack_blosc, blosc(1 << 5, 4, 4, u32(20) + u32(4) + "wxyz"), 4), "wxyz");
}

TEST(Codecs, SayWhatIsWrongWithBlosc) {
  EXPECT_EQ(told(unpack_blosc, "short", 4), "! blosc: its header is cut short");
  std::string other = blosc(2, 4, 4, "abcd");
  other[0] = 5;
  EXPECT_EQ(told(unpack_blosc, other, 4), "! blosc: version 5 is not known");
  EXPECT_EQ(told(unpack_blosc, blosc(2, 4, 4, "abcd") + "x", 4),
            "! blosc: 21 bytes, but 20 "
            "recorded");
  EXPECT_EQ(told(unpack_blosc, blosc(2, 4, 4, "abcd"), 8),
            "! blosc: 4 bytes recorded where 8 are expected");
  EXPECT_EQ(told(unpack_blosc, blosc(2, 4, 4, "abc"), 4), "! blosc: it is cut short");
  EXPECT_EQ(told(unpack_blosc, blosc(2, 4, 0, "abcd"), 4), "! blosc: items or blocks of no size");
  EXPECT_EQ(told(unpack_blosc, blosc(1 << 5, 4, 4, u32(999)), 4), "! blosc: a block is not in it");
  EXPECT_EQ(told(unpack_blosc, blosc(1 << 5, 4, 4, u32(20) + u32(99) + "x"), 4),
            "! blosc: a block is cut short");
  EXPECT_EQ(told(unpack_blosc, blosc(7 << 5, 4, 4, u32(20) + u32(1) + "x"), 4),
            "! blosc: its codec 7 is not known");
}

// Nothing that is cut or changed may be more than an error.
TEST(Codecs, SurviveDamage) {
  const std::string whole = blosc((1 << 5) | 1, 4, 4,
                                  u32(20) + u32(6) +
                                      std::string("\x14"
                                                  "a\x01\x00",
                                                  4) +
                                      "zz");
  for (std::size_t at = 0; at < whole.size(); ++at) {
    told(unpack_blosc, whole.substr(0, at), 4);
    for (int value = 0; value < 256; ++value) {
      std::string changed = whole;
      changed[at] = static_cast<char>(value);
      told(unpack_blosc, changed, 4);
      told(unpack_lz4, changed, 64);
      told(unpack_blosclz, changed, 64);
    }
  }
}

}  // namespace
}  // namespace tensordiff
