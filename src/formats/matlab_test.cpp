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
  EXPECT_EQ(fault_of(mat5(14, array(15, kSizes, element(5, u32(1) + u32(0xffffffff))))),
            "an array of u64 stored as i32");
  EXPECT_EQ(fault_of(mat5(14, array(8 | 0x800, kSizes, element(1, "ab") + element(1, "cd")))),
            "complex integers are not read");
  const std::string sparse = element(5, u32(0)) + element(5, u32(0) + u32(9) + u32(9)) + kTwo;
  EXPECT_EQ(fault_of(mat5(14, array(5, kSizes, sparse))),
            "fewer values stored than the 9 that its columns hold");
}

// Sizes may be unsigned and names UTF-8, as long as they mean the same.
TEST(Matlab, TakesWhatOthersWrite) {
  const auto with = [](uint32_t sizes_type, const std::string& sizes, uint32_t name_type,
                       const std::string& name) {
    return fault_of(mat5(14, element(6, u32(7) + u32(0)) + element(sizes_type, sizes) +
                                 element(name_type, name) + kTwo));
  };
  EXPECT_EQ(with(6, kSizes, 1, "w"), "");
  EXPECT_EQ(with(6, u32(1) + u32(0x80000000), 1, "w"), "! variable 1: negative size -2147483648");
  EXPECT_EQ(with(3, kSizes, 1, "w"), "! variable 1: element of type 3 where its sizes belong");
  EXPECT_EQ(with(5, kSizes, 16, "w"), "");
  EXPECT_EQ(with(5, kSizes, 16, "w\xc3\xa9"),
            "! variable 1: element of type 16 where its name belongs");
}

// Logical values of a sparse matrix that are said to be float64 and are single bytes.
TEST(Matlab, ReadsLogicalSparseMatrices) {
  const std::string parts =
      element(5, u32(0)) + element(5, u32(0) + u32(0) + u32(1)) + element(9, "\1");
  const Result<Catalog> catalog =
      formats::matlab.open(input(mat5(14, array(5 | 0x200, kSizes, parts))));
  ASSERT_TRUE(catalog.ok()) << catalog.error().message();
  const Tensor& tensor = catalog.value().tensors.at(0);
  ASSERT_EQ(tensor.fault, "");
  std::vector<double> values(2);
  Reader::open(tensor.view).value().values(0, 2, values.data());
  EXPECT_EQ(values, (std::vector<double>{0, 1}));
}

// Version 4 has a sparse matrix as a table: row, column and value, then the shape.
TEST(Matlab, ReadsSparseMatricesOfVersion4) {
  const auto table = [](const std::vector<double>& columns, uint32_t width) {
    std::string numbers;
    for (const double value : columns) numbers += le(value);
    const auto rows = static_cast<uint32_t>(columns.size()) / width;
    return u32(2) + u32(rows) + u32(width) + u32(0) + u32(2) + std::string("w\0", 2) + numbers;
  };
  const auto told_of = [](const std::string& file) -> std::string {
    const Result<Catalog> catalog = formats::matlab.open(input(file));
    if (!catalog.ok()) return "! " + catalog.error().message();
    const Tensor& tensor = catalog.value().tensors.at(0);
    if (!tensor.fault.empty()) return tensor.fault;
    const Result<Reader> reader = Reader::open(tensor.view);
    if (!reader.ok()) return reader.error().message();
    std::vector<double> values(tensor.elements() * (is_complex(tensor.view.dtype) ? 2 : 1));
    reader.value().components(0, tensor.elements(), values.data());
    std::string out;
    for (const double value : values) out += fmt::format("{:g} ", value);
    return out;
  };
  EXPECT_EQ(told_of(table({1, 2, 2, 1, 3, 3, 5, 6, 0}, 3)), "5 0 0 0 0 6 ");
  EXPECT_EQ(told_of(table({1, 1, 1, 2, 5, 0, 6, 0}, 4)), "5 6 0 0 ");
  EXPECT_EQ(told_of(table({1, 2, 1.5, -1, 5, 0}, 3)), "an index that is not a whole number");
  EXPECT_NE(told_of(table({9, 2, 1, 2, 5, 0}, 3)), "5 0 0 0 ");
  EXPECT_EQ(told_of(table({1, 2}, 2)), "a sparse matrix as a table of shape [1, 2]");
  std::string complex = table({1, 2, 2, 1, 3, 3, 5, 6, 0, 1, 2, 2, 1, 3, 3, 5, 6, 0}, 6);
  complex.replace(4, 12, u32(3) + u32(3) + u32(1));
  EXPECT_EQ(told_of(complex), "a sparse matrix as a table of complex numbers");
}

TEST(Matlab, NeedsMoreThanZerosToBeVersion4) {
  EXPECT_FALSE(formats::matlab.recognises(bytes_of(std::string(4096, '\0'))));
  EXPECT_EQ(error_of(formats::matlab, std::string(64, '\0')),
            "variable 1: not the header of a variable");
}

}  // namespace
}  // namespace tensordiff
