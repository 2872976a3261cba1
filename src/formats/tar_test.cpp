#include <gtest/gtest.h>

#include "formats/test_files.h"

namespace tensordiff {
namespace {

using namespace test_files;

const std::string kArray = npy_f32({1, 2});

Result<Catalog> open(std::string bytes) { return formats::tar.open(input(std::move(bytes))); }

// Names and problems of an archive in one line, to compare at a glance.
std::string summary(const Result<Catalog>& catalog) {
  if (!catalog.ok()) return "! " + catalog.error().message();
  std::string text;
  for (const Tensor& tensor : catalog.value().tensors) text += tensor.name + " ";
  for (const Problem& problem : catalog.value().problems)
    text += "(" + problem.where + ": " + problem.message + ") ";
  return text;
}

// Pads the data of an extended header as its member.
TarFile extended(char type, std::string data) { return {"extended", std::move(data), type}; }

std::string with_size_field(std::string_view field) {
  std::string bytes = tar({{"a.npy", kArray}});
  bytes.replace(124, field.size(), field);
  unsigned sum = 8 * ' ';
  for (std::size_t i = 0; i < 512; ++i)
    if (i < 148 || i >= 156) sum += static_cast<unsigned char>(bytes[i]);
  bytes.replace(148, 6, fmt::format("{:06o}", sum));
  return bytes;
}

TEST(Tar, ListsItsFiles) {
  EXPECT_EQ(summary(open(tar({{"d/", "", '5'}, {"./d/a.npy", kArray}, {"./d/b.npy", kArray}}))),
            "a b ");
}

TEST(Tar, ReadsLongNames) {
  const std::string folder(120, 'x');
  const std::string path = folder + "/a.npy";
  EXPECT_EQ(summary(open(tar({extended('L', path + '\0'), {"short", kArray}, {"b.npy", kArray}}))),
            folder + "/a b ");
  const std::string record = fmt::format("{} path={}\n", path.size() + 10, path);
  EXPECT_EQ(summary(open(tar({extended('x', record), {"short", kArray}, {"b.npy", kArray}}))),
            folder + "/a b ");
  EXPECT_EQ(summary(open(tar({extended('g', "18 comment=hello!\n"), {"b.npy", kArray}}))), "b ");
}

TEST(Tar, ReadsSizesOfEveryKind) {
  const auto size = static_cast<char>(kArray.size());
  const std::string binary = '\x80' + std::string(10, '\0') + size;
  EXPECT_EQ(summary(open(with_size_field(binary))), "a ");
  EXPECT_EQ(summary(open(with_size_field(fmt::format("{:>10o} ", kArray.size())))), "a ");
  const std::string record = fmt::format("11 size={}\n", kArray.size());
  const TarFile longer{"a.npy", kArray};
  EXPECT_EQ(summary(open(tar({extended('x', record), longer}))), "a ");
}

TEST(Tar, NeverFollowsLinks) {
  EXPECT_EQ(summary(open(tar({{"l", "", '2', "/etc/passwd"},
                              {"h", "", '1', "x"},
                              {"null", "", '3'},
                              {"p", "", '6'},
                              {"s", "", 'S'},
                              {"q", "", 'q'},
                              {"../x", kArray},
                              {"a.npy", kArray}}))),
            "a (l: a symbolic link: not followed) (h: a hard link: not followed) "
            "(null: a device: not opened) (p: a pipe: not opened) "
            "(s: a sparse file, which is not read) "
            "(q: a member of an unknown type, which is not read) "
            "(../x: its name climbs out of the archive with '..') ");
}

TEST(Tar, RefusesSparseFilesOfPax) {
  EXPECT_EQ(summary(open(tar(
                {extended('x', "22 GNU.sparse.major=1\n"), {"s.npy", kArray}, {"a.npy", kArray}}))),
            "a (s.npy: a sparse file, which is not read) ");
}

// The map of an old sparse member may go on after its header; what follows it is still found.
TEST(Tar, StepsOverSparseFiles) {
  std::string bytes = tar({{"s", "", 'S'}, {"a.npy", kArray}});
  bytes[482] = 1;
  bytes.replace(148, 6, fmt::format("{:06o}", std::stoul(bytes.substr(148, 6), nullptr, 8) + 1));
  bytes.insert(512, std::string(504, '\0') + '\1' + std::string(7 + 512, '\0'));
  EXPECT_EQ(summary(open(bytes)), "a (s: a sparse file, which is not read) ");
}

TEST(Tar, SaysWhatIsWrong) {
  std::string bytes = tar({{"a.npy", kArray}});
  bytes[0] = 'b';
  EXPECT_EQ(summary(open(bytes)), "! tar: damaged at byte 0: the header's checksum does not match");
  EXPECT_EQ(summary(open(with_size_field('\xff' + std::string(11, '\xff')))),
            "! tar: at byte 0: the size of the member is not a number");
  EXPECT_EQ(summary(open(with_size_field("00000077777"))),
            "! tar: at byte 0: 'a.npy' has 32767 bytes, but 1536 are left in the file");
  EXPECT_EQ(summary(open(with_size_field("\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))),
            "! tar: at byte 0: the size of the member is not a number");
  EXPECT_EQ(summary(open(tar({extended('x', "9 pathx\n"), {"a.npy", kArray}}))),
            "! tar: at byte 0: a pax record is malformed");
  EXPECT_EQ(summary(open("")), "! tar: no end marker: it may be cut short");
}

// What was read before the damage stays.
TEST(Tar, KeepsWhatComesBeforeTheDamage) {
  const std::string whole = tar({{"a.npy", kArray}, {"b.npy", kArray}});
  std::string bytes = whole;
  bytes[1024] = 'x';
  EXPECT_EQ(summary(open(bytes)),
            "a (tar: damaged at byte 1024: the header's checksum does not match) ");
  EXPECT_EQ(summary(open(whole.substr(0, 2048))), "a b (tar: no end marker: it may be cut short) ");
  EXPECT_EQ(summary(open(whole + "x")), "a b (tar: bytes that are not zero follow its end) ");
}

TEST(Gzip, OpensWhatIsInside) {
  EXPECT_EQ(summary(formats::gzip.open(input(gzip(tar({{"a.npy", kArray}, {"b.npy", kArray}}))))),
            "a b ");
  const Result<Catalog> alone = formats::gzip.open(input(gzip(kArray)));
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(alone.value().format, "npy.gz");
  // Two members of gzip are one file, and zeros may follow.
  const std::string halves =
      gzip(kArray.substr(0, 50)) + gzip(kArray.substr(50)) + std::string(9, '\0');
  EXPECT_TRUE(formats::gzip.open(input(halves)).ok());
}

TEST(Gzip, SaysWhatIsWrong) {
  const std::string good = gzip(kArray);
  std::string bytes = good;
  EXPECT_EQ(error_of(formats::gzip, good.substr(0, 40)), "the compressed data ends in the middle");
  bytes[bytes.size() - 5] ^= 1;
  EXPECT_EQ(error_of(formats::gzip, bytes), "the compressed data is damaged: incorrect data check");
  EXPECT_EQ(error_of(formats::gzip, good + "junk"),
            "4 bytes follow the end of the compressed data");
  EXPECT_EQ(error_of(formats::gzip, gzip(good)), "compressed more than once");

  Input small = input(good);
  small.limits.expanded_bytes_max = 10;
  EXPECT_EQ(formats::gzip.open(small).error().message(),
            "it unpacks to more than 10 B, the limit; --limit expanded=N raises it");
}

}  // namespace
}  // namespace tensordiff
