// MATLAB files: every value against what scipy wrote, and what is said of broken ones.
// tests/data/matlab/make.py made the files.

#include <gtest/gtest.h>

#include "formats/matlab_array.h"
#include "formats/test_truth.h"

namespace tensordiff {
namespace {

using namespace test_files;

TEST(Matlab, IsReadValueByValue) {
  for (const std::string file : {"v4.mat", "v5.mat", "v7.mat"})
    test_truth::expect_all(data_path("../matlab"), file);
}

// A whole file of version 5 around one element.
std::string mat5(uint32_t type, const std::string& data) {
  std::string header = "MATLAB 5.0 MAT-file";
  header.resize(124, ' ');
  return header + u16(0x0100) + "IM" + u32(type) + u32(static_cast<uint32_t>(data.size())) + data;
}
std::string element(uint32_t type, std::string data) {
  const std::string head = u32(type) + u32(static_cast<uint32_t>(data.size()));
  data.resize((data.size() + 7) / 8 * 8);
  return head + data;
}
std::string array(uint32_t flags, const std::string& sizes, const std::string& rest) {
  return element(6, u32(flags) + u32(0)) + element(5, sizes) + element(1, "w") + rest;
}
const std::string kSizes = u32(1) + u32(2);
const std::string kTwo = element(7, f32(1) + f32(2));

TEST(Matlab, SaysWhatIsWrong) {
  const auto error = [](const std::string& file) { return error_of(formats::matlab, file); };
  EXPECT_EQ(error(mat5(14, array(7, kSizes, kTwo))), "");
  EXPECT_EQ(error(mat5(14, array(7, kSizes, kTwo)).substr(0, 180)),
            "variable 1: an element of 64 bytes, but 44 are left");
  EXPECT_EQ(error(mat5(9, "12345678")), "variable 1: element of type 9, not an array");
  EXPECT_EQ(error(mat5(14, element(5, "12345678"))),
            "variable 1: element of type 5 where its flags belong");
  EXPECT_EQ(error(mat5(14, array(7, u32(1) + u32(0xffffffff), kTwo))),
            "variable 1: negative size -1");
  EXPECT_EQ(error(mat5(14, array(7, kSizes, element(99, "1234")))),
            "variable 1: w: numbers of type 99");
  EXPECT_EQ(error(mat5(15, "junk")),
            "variable 1: the compressed data is damaged: incorrect header check");
  std::string packed = read_file(data_path("../matlab/v7.mat"));
  packed[packed.size() - 1] ^= 1;  // The checksum of the last variable.
  EXPECT_NE(error(packed).find("the compressed data is damaged: incorrect data check"),
            std::string::npos)
      << error(packed);
}

std::string fault_of(const std::string& file) {
  const Result<Catalog> catalog = formats::matlab.open(input(file));
  return catalog.ok() ? catalog.value().tensors.at(0).fault : "! " + catalog.error().message();
}

TEST(Matlab, SpoilsOnlyTheArrayThatIsWrong) {
  EXPECT_EQ(fault_of(mat5(14, array(7, u32(1) + u32(3), kTwo))),
            "8 bytes stored, but its shape needs 12");
  EXPECT_EQ(fault_of(mat5(14, array(8, kSizes, kTwo))), "an array of i8 stored as f32");
  EXPECT_EQ(fault_of(mat5(14, array(8 | 0x800, kSizes, element(1, "ab") + element(1, "cd")))),
            "complex integers are not read");
  const std::string sparse = element(5, u32(0)) + element(5, u32(0) + u32(9) + u32(9)) + kTwo;
  EXPECT_EQ(fault_of(mat5(14, array(5, kSizes, sparse))),
            "fewer values stored than the 9 that its columns hold");
}

TEST(Matlab, NeedsMoreThanZerosToBeVersion4) {
  EXPECT_FALSE(formats::matlab.recognises(bytes_of(std::string(4096, '\0'))));
  EXPECT_EQ(error_of(formats::matlab, std::string(64, '\0')),
            "variable 1: not the header of a variable");
}

}  // namespace
}  // namespace tensordiff
