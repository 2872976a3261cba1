#include "formats/table.h"

#include <gtest/gtest.h>

#include "formats/checksum.h"
#include "formats/snappy.h"
#include "formats/test_proto.h"

namespace tensordiff {
namespace {

using namespace test_files;

std::string with_trailer(const std::string& block, char compression) {
  const std::string summed = block + compression;
  return summed + u32(masked(crc32c(as_bytes(summed))));
}

std::string block_of(const std::string& entries) { return entries + u32(0) + u32(1); }

std::string entry(uint64_t shared, std::string_view fresh, std::string_view value) {
  return varint(shared) + varint(fresh.size()) + varint(value.size()) + std::string(fresh) +
         std::string(value);
}

// One data block, an index of it, and the footer.
std::string table(const std::string& block, char compression = 0) {
  std::string file = with_trailer(block, compression);
  const std::string index = block_of(entry(0, "z", varint(0) + varint(block.size())));
  std::string footer = varint(0) + varint(0) + varint(file.size()) + varint(index.size());
  footer.resize(40);
  return file + with_trailer(index, 0) + footer + u64(0xdb4775248b80fb57);
}

std::string fault(const std::string& bytes) {
  const auto entries = read_table(bytes_of(bytes), Limits());
  return entries.ok() ? "" : entries.error().message();
}

TEST(Checksum, IsThatOfTheStandard) {
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xe3069283U);
  EXPECT_EQ(crc32c(as_bytes(std::string(32, '\0'))), 0x8a9136aaU);
  EXPECT_EQ(crc32c(as_bytes("6789"), crc32c(as_bytes("12345"))), 0xe3069283U);
}

TEST(Snappy, CopiesAndLiterals) {
  const std::string literal = varint(5) + char(4 << 2) + "hello";
  EXPECT_EQ(unsnappy(as_bytes(literal), 100).value(), "hello");
  // "ab", then six bytes from two back: they repeat what they write.
  const std::string copy = varint(8) + char(1 << 2) + "ab" + char(2 << 2 | 1) + char(2);
  EXPECT_EQ(unsnappy(as_bytes(copy), 100).value(), "abababab");
  const std::string two = varint(4) + char(1 << 2) + "ab" + char(1 << 2 | 2) + u16(2);
  EXPECT_EQ(unsnappy(as_bytes(two), 100).value(), "abab");
  const std::string four = varint(4) + char(1 << 2) + "ab" + char(1 << 2 | 3) + u32(2);
  EXPECT_EQ(unsnappy(as_bytes(four), 100).value(), "abab");
}

TEST(Snappy, NamesFaults) {
  const auto error = [](const std::string& bytes) {
    return unsnappy(as_bytes(bytes), 1000).error().message();
  };
  EXPECT_EQ(error(""), "snappy: cut short");
  EXPECT_EQ(error(varint(5) + char(4 << 2) + "hel"), "snappy: cut short");
  EXPECT_EQ(error(varint(2000) + std::string(100, 'x')),
            "snappy: 2000 bytes promised, by 102 compressed");
  EXPECT_EQ(error(varint(900) + "x"), "snappy: 900 bytes promised, by 3 compressed");
  EXPECT_EQ(error(varint(3) + char(4 << 2) + "hello"), "snappy: more than the 3 bytes it promises");
  EXPECT_EQ(error(varint(8) + char(0) + "a" + char(2 << 2 | 1) + char(2)),
            "snappy: a copy from before the start");
  EXPECT_EQ(error(varint(4) + char(1 << 2) + "ab" + char(2 << 2 | 1) + char(2)),
            "snappy: more than the 4 bytes it promises");
  EXPECT_EQ(error(varint(9) + char(4 << 2) + "hello"), "snappy: 9 bytes promised, 5 found");
}

TEST(Table, ReadsKeysThatShareTheirStart) {
  const std::string block = block_of(entry(0, "weight", "1") + entry(2, "ll", "22"));
  const std::string packed = varint(block.size()) + char((block.size() - 1) << 2) + block;
  for (const std::string& file : {table(block), table(packed, 1)}) {
    const std::vector<TableEntry> entries = read_table(bytes_of(file), Limits()).value();
    ASSERT_EQ(entries.size(), 2U);
    EXPECT_EQ(entries[0].key, "weight");
    EXPECT_EQ(entries[1].key, "well");
    EXPECT_EQ(as_text(entries[1].value.view), "22");
  }
}

TEST(Table, NamesFaults) {
  EXPECT_EQ(fault("short"), "no table: its last bytes are not a table's");
  std::string spoiled = table(block_of(entry(0, "a", "1")));
  spoiled[3] ^= 1;
  EXPECT_EQ(fault(spoiled), "block at 0: its checksum does not match");
  EXPECT_EQ(fault(table(block_of(entry(3, "a", "1")))), "block at 0: malformed");
  EXPECT_EQ(fault(table(block_of(varint(0) + varint(99) + varint(1) + "a"))),
            "block at 0: malformed");
  EXPECT_EQ(fault(table("xyz")), "block at 0: too short");
  EXPECT_EQ(fault(table("abcd" + u32(99))), "block at 0: malformed");
  EXPECT_EQ(fault(table(block_of(entry(0, "a", "1")), 7)),
            "block at 0: its compression 7 is not known");
  std::string footer = varint(0) + varint(0) + varint(5) + varint(1000);
  footer.resize(40);
  EXPECT_EQ(fault(footer + u64(0xdb4775248b80fb57)),
            "index: block at 5: 1000 bytes at 5 lie outside the table");
}

}  // namespace
}  // namespace tensordiff
