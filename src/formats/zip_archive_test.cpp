#include "formats/zip_archive.h"

#include <gtest/gtest.h>

#include "formats/test_files.h"

namespace tensordiff {
namespace {

using test_files::deflated;
using test_files::input;
using test_files::stored;
using test_files::u32;
using test_files::u64;
using test_files::zip;
using test_files::ZipFile;

Result<ZipArchive> read(std::string bytes, const Limits& limits = {}) {
  return read_zip(bytes_of(std::move(bytes)), limits);
}

std::string error_of(std::string bytes, const Limits& limits = {}) {
  const Result<ZipArchive> archive = read(std::move(bytes), limits);
  return archive.ok() ? "" : archive.error().message();
}

// What a member holds, or why it cannot be read.
std::string text_of(const ZipMember& member) {
  const Result<Bytes> bytes = member.source.open();
  return bytes.ok() ? std::string(as_text(bytes.value().view)) : "! " + bytes.error().message();
}

// The one member of an archive: what it holds, or why it cannot be read.
std::string only_member(ZipFile file) {
  const Result<ZipArchive> archive = read(zip({std::move(file)}));
  if (!archive.ok()) return "!! " + archive.error().message();
  if (archive.value().members.size() != 1) return "!! not one member";
  return text_of(archive.value().members[0]);
}

std::string only_problem(ZipFile file) {
  const Result<ZipArchive> archive = read(zip({std::move(file)}));
  if (!archive.ok() || archive.value().problems.size() != 1) return "not one problem";
  return archive.value().problems[0].message;
}

TEST(ZipArchive, ListsFilesInTheOrderOfTheDirectory) {
  const Result<ZipArchive> archive =
      read(zip({stored("b/two", "22"), stored("b/", ""), deflated("a/one", "1111111111")}));
  ASSERT_TRUE(archive.ok()) << archive.error().message();
  ASSERT_EQ(archive.value().members.size(), 2U);
  EXPECT_EQ(archive.value().members[0].name, "b/two");
  EXPECT_TRUE(archive.value().members[0].stored);
  EXPECT_FALSE(archive.value().members[1].stored);
  EXPECT_EQ(text_of(*archive.value().find("b/two")), "22");
  EXPECT_EQ(text_of(*archive.value().find("a/one")), "1111111111");
  EXPECT_EQ(archive.value().find("a"), nullptr);
  EXPECT_TRUE(archive.value().problems.empty());
}

std::string audited(const std::string& file) {
  std::string out;
  for (const Problem& found : audit_zip(bytes_of(file), Limits()))
    out += found.where + ": " + found.message + ";";
  return out;
}

TEST(ZipArchive, AuditsChecksumsOfStoredMembers) {
  EXPECT_EQ(audited(zip({stored("a", "one"), deflated("b", "two")})), "");
  ZipFile wrong = stored("a", "one");
  wrong.crc32 = 1;
  EXPECT_EQ(audited(zip({wrong})), "a: its checksum is 7a6c86f1, but 00000001 was recorded;");
}

TEST(ZipArchive, AuditsBytesOfNoMember) {
  std::string file = zip({stored("a", "one"), stored("b", "two")});
  const std::size_t directory = file.find("PK\1\2");
  std::string hidden = file;
  hidden.insert(directory, "secret");
  // The end record says where the directory is.
  hidden.replace(hidden.size() - 6, 4, u32(static_cast<uint32_t>(directory + 6)));
  EXPECT_EQ(audited(hidden), "zip: 6 bytes before the directory belong to no member;");
  ZipFile described = stored("a", "one");
  described.flags = 8;
  described.data += "PK\7\b" + u32(0x7a6c86f1) + u32(3) + u32(3);
  described.bytes = described.data.size();
  const std::string with_descriptor = zip({described});
  EXPECT_EQ(audited(with_descriptor), "");
}

TEST(ZipArchive, StoredMembersLieInTheFile) {
  const Bytes file = bytes_of(zip({stored("x", "abcd")}));
  const Result<ZipArchive> archive = read_zip(file, {});
  ASSERT_TRUE(archive.ok());
  EXPECT_TRUE(archive.value().members[0].source.ready());
  const ByteView inside = archive.value().members[0].source.open().value().view;
  EXPECT_EQ(inside.data(), file.view.data() + as_text(file.view).find("abcd"));
}

TEST(ZipArchive, LargeMembersInflateThroughTheWindow) {
  std::string plain;
  for (uint32_t i = 0; i < 5'000'000; ++i) plain += u32(i * 2654435761U >> 24);
  const Result<ZipArchive> archive = read(zip({deflated("big", plain)}));
  ASSERT_TRUE(archive.ok());
  const Result<Bytes> bytes = archive.value().members[0].source.open();
  ASSERT_TRUE(bytes.ok()) << bytes.error().message();
  EXPECT_TRUE(as_text(bytes.value().view) == plain);
}

TEST(ZipArchive, ReadsTheCommentAndReportsWhatFollowsIt) {
  EXPECT_TRUE(read(zip({stored("x", "1")}, "PK says hello")).value().problems.empty());
  const Result<ZipArchive> archive = read(zip({stored("x", "1")}) + "tail");
  ASSERT_TRUE(archive.ok());
  ASSERT_EQ(archive.value().problems.size(), 1U);
  EXPECT_EQ(archive.value().problems[0].message, "4 bytes follow its end");
}

// As torch writes it: a 64-bit end record, and 64-bit numbers in the extra field of the entry.
TEST(ZipArchive, ReadsThe64BitRecords) {
  const auto widen = [](std::string& entry) {
    entry.replace(20, 8, std::string(8, '\xff'));  // Both sizes.
    entry.replace(30, 2, test_files::u16(20));
    entry += test_files::u16(1) + test_files::u16(16) + u64(3) + u64(3);
  };
  ZipFile file = stored("x", "abc");
  file.spoil = widen;
  std::string bytes = zip({file});
  const std::string end = bytes.substr(bytes.size() - 22);
  bytes.resize(bytes.size() - 22);
  const uint64_t directory = bytes.find("PK\1\2");
  const uint64_t record = bytes.size();
  bytes += "PK\6\6" + u64(44) + u32(0) + u32(0) + u32(0) + u64(1) + u64(1) +
           u64(record - directory) + u64(directory);
  bytes += "PK\6\7" + u32(0) + u64(record) + u32(1);
  bytes += end.substr(0, 8) + std::string(12, '\xff') + end.substr(20);
  const Result<ZipArchive> archive = read(bytes);
  ASSERT_TRUE(archive.ok()) << archive.error().message();
  EXPECT_EQ(text_of(archive.value().members[0]), "abc");
}

TEST(ZipArchive, RefusesABrokenStructure) {
  const std::string good = zip({stored("x", "abc")});
  const std::size_t end = good.size() - 22;
  std::string bytes = good;
  EXPECT_EQ(error_of(""), "zip: no end record: cut short, or not a zip file");
  EXPECT_EQ(error_of(good.substr(0, end)), "zip: no end record: cut short, or not a zip file");

  bytes.replace(end + 16, 4, u32(5000));
  EXPECT_EQ(error_of(bytes), "zip: the central directory, 47 bytes at 5000, lies outside the file");
  bytes = good;
  bytes[end + 10] = 2;
  EXPECT_EQ(error_of(bytes), "zip: 1 entries in the central directory, but 2 announced");
  bytes = good;
  bytes[end + 4] = 1;
  EXPECT_EQ(error_of(bytes), "zip: this is one volume of several, which are not read");
  bytes = good;
  bytes[end - 47] = 'X';
  EXPECT_EQ(error_of(bytes), "zip: the central directory is damaged 4 bytes in");
  bytes = good;
  bytes[end - 47 + 28] = 99;
  EXPECT_EQ(error_of(bytes), "zip: the central directory is cut short");
}

TEST(ZipArchive, HoldsTheLimits) {
  Limits limits;
  limits.members_max = 1;
  EXPECT_EQ(error_of(zip({stored("x", ""), stored("y", "")}), limits),
            "zip: more than 1 members, the limit; --limit members=N raises it");
  limits = {};
  limits.expanded_bytes_max = 1000;
  EXPECT_EQ(
      error_of(zip({deflated("x", std::string(600, 'x')), deflated("y", std::string(600, 'y'))}),
               limits),
      "zip: its members expand to more than 1000 B, the limit; --limit expanded=N raises it");
}

TEST(ZipArchive, AMemberThatCannotBeReadSaysWhy) {
  ZipFile file = stored("x", "abc");
  file.method = 9;
  EXPECT_EQ(only_member(file), "! compressed with method 9 (deflate64), which is not read");
  file = stored("x", "abc");
  file.method = 200;
  EXPECT_EQ(only_member(file), "! compressed with method 200, which is not read");
  file = stored("data.pkl", "abc");
  file.local_name = "datap.kl";
  EXPECT_EQ(only_member(file), "! its local header calls it 'datap.kl'");
  file = stored("x", "abc");
  file.bytes = 4;
  EXPECT_EQ(only_member(file), "! stored in 3 bytes, but 4 recorded");
  file = stored("x", "abc");
  file.spoil = [](std::string& entry) { entry[10] = 8; };
  EXPECT_EQ(only_member(file), "! its local header says method 0, the directory method 8");
  file = stored("x", "abc");
  file.spoil = [](std::string& entry) { entry[42] = 1; };
  EXPECT_EQ(only_member(file), "! no local header where the directory points");
  file = stored("x", "abc");
  file.spoil = [](std::string& entry) { entry[20] = 4; };
  EXPECT_EQ(only_member(file), "! its data reaches past the end of the members");
  file = deflated("x", "abcabcabcabc");
  file.bytes = 1 << 20;
  EXPECT_EQ(only_member(file),
            "! it claims to expand from 17 to 1048576 bytes, more than deflate can");
}

TEST(ZipArchive, DeflatedMembersAreCheckedWhenInflated) {
  ZipFile file = deflated("x", "abcabcabcabc");
  file.crc32 = 1;
  EXPECT_EQ(only_member(file), "! its checksum is 5a6e2a34, but 00000001 was recorded");
  file = deflated("x", "abcabcabcabc");
  file.bytes = 11;
  EXPECT_EQ(only_member(file), "! it inflates to more than the 11 bytes recorded");
  file.bytes = 13;
  EXPECT_EQ(only_member(file), "! it inflates to 12 bytes, but 13 were recorded");
  file = deflated("x", "abcabcabcabc");
  file.data[0] = '\x07';  // A block of the reserved type.
  EXPECT_EQ(only_member(file), "! the compressed data is damaged");
}

TEST(ZipArchive, StoredMembersAreCheckedOnRequest) {
  ZipFile file = stored("x", "abc");
  EXPECT_TRUE(verify_checksum(read(zip({file})).value().members[0]).ok());
  file.crc32 = 7;
  const Result<ZipArchive> archive = read(zip({file}));
  EXPECT_EQ(text_of(archive.value().members[0]), "abc");
  EXPECT_EQ(verify_checksum(archive.value().members[0]).error().message(),
            "its checksum is 352441c2, but 00000007 was recorded");
}

TEST(ZipArchive, SaysWhatItLeavesOut) {
  ZipFile file = stored("link", "/etc/passwd");
  file.attributes = 0120777U << 16;
  EXPECT_EQ(only_problem(file), "a symbolic link: not followed");
  EXPECT_EQ(only_problem(stored("../x", "")), "its name climbs out of the archive with '..'");
  EXPECT_EQ(only_problem(stored("a/../x", "")), "its name climbs out of the archive with '..'");
  EXPECT_EQ(only_problem(stored("/x", "")), "its name is an absolute path");
  EXPECT_EQ(only_problem(stored("//x.npy", "")), "its name is an absolute path");
  EXPECT_EQ(only_problem(stored("C:x", "")), "its name starts with a drive letter");
  EXPECT_EQ(only_problem(stored("a\\x", "")), "its name contains a backslash");
  EXPECT_EQ(only_problem(stored(std::string("a\0b", 3), "")), "its name contains a NUL");
  EXPECT_EQ(only_problem(stored("", "")), "its name is empty");
}

// torch ignores these flags, so a scanner that skips such members misses what torch would load.
TEST(ZipArchive, ReadsMembersThatOnlyClaimToBeEncrypted) {
  for (const uint16_t flag : {0x1, 0x40, 0x2000}) {
    ZipFile file = stored("x", "abc");
    file.flags = flag;
    EXPECT_EQ(only_member(file), "abc");
    EXPECT_EQ(only_problem(file),
              "its flags say that it is encrypted; it is read as if it were not");
  }
}

TEST(ZipArchive, MembersThatShareBytesOrANameAreRefusedAndTheRestIsRead) {
  // The second entry points at the first member, whose name it also takes at its place.
  ZipFile thief = stored("x", "1");
  thief.spoil = [](std::string& entry) { entry.replace(42, 4, u32(0)); };
  const Result<ZipArchive> twice = read(zip({stored("x", "1"), thief, stored("z", "3")}));
  ASSERT_TRUE(twice.ok());
  EXPECT_EQ(text_of(twice.value().members[0]), "! two members have this name");
  EXPECT_EQ(text_of(twice.value().members[1]), "! two members have this name");
  EXPECT_EQ(text_of(twice.value().members[2]), "3");

  // The data of the first reaches over the header of the second.
  ZipFile greedy = stored("x", "1");
  greedy.bytes = 5;
  greedy.spoil = [](std::string& entry) { entry[20] = 5; };
  const Result<ZipArchive> overlap = read(zip({greedy, stored("y", "2"), stored("z", "3")}));
  ASSERT_TRUE(overlap.ok());
  EXPECT_EQ(text_of(overlap.value().members[0]), "! it shares bytes with 'y'");
  EXPECT_EQ(text_of(overlap.value().members[1]), "! it shares bytes with 'x'");
  EXPECT_EQ(text_of(overlap.value().members[2]), "3");
}

// Zeros shrink a thousandfold. The limit holds for one member, and for all of them together.
TEST(ZipArchive, HoldsTheLimitOnGrowth) {
  const std::string zeros(std::size_t{65} << 20, '\0');
  const std::string one = zip({deflated("zeros", zeros)});
  Limits limits;
  EXPECT_TRUE(read_zip(bytes_of(one), limits).value().members[0].source.open().ok());
  limits.growth_max = 500;
  const ZipArchive archive = read_zip(bytes_of(one), limits).value();
  EXPECT_EQ(archive.members[0].source.open().error().message(),
            "it unpacks to more than 500 times its size, the limit; --limit growth=N raises it");
  const std::string half(std::size_t{40} << 20, '\0');
  const std::string two = zip({deflated("a", half), deflated("b", half)});
  EXPECT_EQ(read_zip(bytes_of(two), limits).error().message(),
            "zip: its members unpack to more than 500 times its size, the limit; --limit growth=N "
            "raises it");
}

// Archives in archives do not multiply the growth: a zip of zips of zeros.
TEST(ZipArchive, HoldsTheLimitOnGrowthThroughArchives) {
  const std::string inner = zip({deflated("zeros.npy", std::string(std::size_t{65} << 20, '\0'))});
  const std::string outer = zip({deflated("inner.zip", inner)});
  EXPECT_LT(outer.size(), 2000U) << "a zip of zeros is nearly all zeros";
  const Result<Catalog> catalog = formats::zip.open(input(outer));
  ASSERT_TRUE(catalog.ok()) << catalog.error().message();
  ASSERT_EQ(catalog.value().tensors.size(), 1U);
  EXPECT_NE(catalog.value().tensors[0].fault.find("--limit growth=N raises it"), std::string::npos)
      << catalog.value().tensors[0].fault;
}

}  // namespace
}  // namespace tensordiff
