#include <gtest/gtest.h>

#include <bit>

#include "formats/audit.h"
#include "formats/pickle/test_pickles.h"
#include "formats/python_literal.h"
#include "formats/test_files.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

using namespace test_files;

std::string header(std::string_view descr, std::string_view order, std::string_view shape) {
  return fmt::format("{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}\n", descr, order, shape);
}

std::vector<double> values_of(const std::string& bytes) {
  const Result<Catalog> catalog = formats::npy.open(input(bytes));
  if (!catalog.ok()) return {};
  const Tensor& tensor = catalog.value().tensors[0];
  std::vector<double> values(tensor.elements());
  Reader::open(tensor.view).value().values(0, values.size(), values.data());
  return values;
}

std::string error_for(std::string_view header_text, std::string_view data = "") {
  return error_of(formats::npy, npy(header_text, data));
}

TEST(Npy, ReadsRowMajorAndColumnMajor) {
  const std::string data("\1\2\3\4\5\6");
  EXPECT_EQ(values_of(npy(header("'|u1'", "False", "(2, 3)"), data)),
            (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(values_of(npy(header("'|u1'", "True", "(2, 3)"), data)),
            (std::vector<double>{1, 3, 5, 2, 4, 6}));
  EXPECT_EQ(values_of(npy(header("'|u1'", "False", "()"), "\7")), (std::vector<double>{7}));
}

TEST(Npy, ReadsBothByteOrders) {
  EXPECT_EQ(values_of(npy(header("'>i2'", "False", "(2,)"), std::string("\0\1\1\0", 4))),
            (std::vector<double>{1, 256}));
  EXPECT_EQ(values_of(npy(header("'<i2'", "False", "(2L,)"), std::string("\0\1\1\0", 4))),
            (std::vector<double>{256, 1}));
}

TEST(Npy, ReadsLaterVersions) {
  const std::string text = header("'<f4'", "False", "(1,)");
  for (const char version : {'\2', '\3'})
    EXPECT_EQ(values_of("\x93NUMPY" + std::string{version, '\0'} +
                        u32(static_cast<uint32_t>(text.size())) + text + f32(2.5)),
              (std::vector<double>{2.5}));
}

TEST(Npy, SaysWhatItReadsInAnotherWay) {
  const Result<Catalog> bits =
      formats::npy.open(input(npy(header("'|V2'", "False", "(1,)"), "ab")));
  ASSERT_TRUE(bits.ok());
  ASSERT_EQ(bits.value().problems.size(), 1U);
  EXPECT_EQ(bits.value().problems[0].message,
            "its element type has no name in the file: read as u16");
  const Result<Catalog> longer =
      formats::npy.open(input(npy(header("'|u1'", "False", "(1,)"), "abc")));
  ASSERT_EQ(longer.value().problems.size(), 1U);
  EXPECT_EQ(longer.value().problems[0].message, "2 bytes follow the array");
}

TEST(Npy, RefusesByName) {
  const struct {
    std::string_view descr;
    std::string_view message;
  } cases[] = {
      {"'<U5'", "header: text array ('<U5'), which is not read"},
      {"'|S5'", "header: text array ('|S5'), which is not read"},
      {"'<M8[ns]'", "header: array of times ('<M8[ns]'), which is not read"},
      {"'<f16'", "header: array of long double ('<f16'), whose layout differs between machines"},
      {"'<c32'", "header: array of long double ('<c32'), whose layout differs between machines"},
      {"'<i3'", "header: unknown element type '<i3'"},
      {"''", "header: unknown element type ''"},
      {"[('x', '<f4'), ('y', '<i4', (3,))]",
       "header: structured array with the fields 'x', 'y', which is not read"},
      {"3", "header: its 'descr' is not an element type"},
  };
  for (const auto& [descr, message] : cases)
    EXPECT_EQ(error_for(header(descr, "False", "(1,)"), "abcdefgh"), message);
}

TEST(Npy, SaysWhatIsWrong) {
  EXPECT_EQ(error_for(header("'<f4'", "False", "(3,)"), f32(1)),
            "shape [3] of f32 needs 12 bytes, 4 are stored");
  EXPECT_EQ(error_for(header("'<f4'", "False", "(-1,)")),
            "header: its 'shape' has a size that is not a whole number");
  EXPECT_EQ(error_for(header("'<f4'", "0", "(1,)")),
            "header: its 'fortran_order' is neither True nor False");
  EXPECT_EQ(error_for(header("'<f4'", "False", "1")), "header: its 'shape' is not a tuple");
  EXPECT_EQ(error_for("{'descr': '<f4'}"), "header: not just 'descr', 'fortran_order' and 'shape'");
  EXPECT_EQ(error_for("{'descr': __import__('os')}"), "header: a value expected at byte 10");
  EXPECT_EQ(error_for(header("'<f4'", "False", "(0, 4611686018427387904, 4611686018427387904)")),
            "");
  EXPECT_EQ(error_for(header("'<f4'", "False", "(4611686018427387904, 4)")),
            "shape [4611686018427387904, 4] has more than 2^40 elements");
  EXPECT_EQ(error_of(formats::npy, "\x93NUMPY\x09\x01xx"),
            "version 9.1 of the npy format, which is not read");
  EXPECT_EQ(error_of(formats::npy, "\x93NUMPY\x01"), "the header is longer than the file");
  EXPECT_EQ(error_of(formats::npy, "\x93NUMPY" + std::string("\2\0", 2) + u32(1 << 30)),
            "a header of 1073741824 bytes is longer than 1048576, the limit; --limit "
            "npy-header=N raises it");
  EXPECT_EQ(error_of(formats::npy, "text"), "no numpy signature");
}

// An array of Python's objects: the numbers in it are read, and its code is named and not run.
TEST(Npy, ReadsObjectsAndRunsNothing) {
  using namespace test_pickles;
  const std::string head = "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }\n";
  EXPECT_EQ(told(formats::npy, npy(head, kProto2 + "](" + number(7) + number(8) + "e.")),
            "0 i64 [] 7; 1 i64 [] 8");
  const std::string code = kProto2 + call(global("os", "system"), {text("id")}) + ".";
  EXPECT_EQ(told(formats::npy, npy(head, code)),
            " | holds a reference to 'os.system', which was not run");
  EXPECT_EQ(told(formats::npy, npy(head, code + "x")),
            " | holds a reference to 'os.system', which was not run | 1 bytes follow the array");
  EXPECT_EQ(error_of(formats::npy, npy(head, code.substr(0, code.size() - 1))),
            "object array: byte 90: the pickle ends without STOP");
  const std::vector<Problem> found =
      audits::npy.audit(input(npy(head, code.substr(0, code.size() - 1))));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].message, "holds a reference to 'os.system', which was not run");
  const Result<Catalog> npz = formats::npz.open(
      input(zip({stored("a.npy", npy(head, kProto2 + "](" + number(7) + "e."))})));
  ASSERT_TRUE(npz.ok());
  EXPECT_EQ(npz.value().tensors[0].name, "a.0");
}

TEST(PythonLiteral, RefusesWhatIsNone) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "a value expected at byte 0"},
      {"(1, 2) 3", "text after the end at byte 7"},
      {"(1 2)", "',' expected at byte 3"},
      {"'abc", "string without end at byte 4"},
      {"'abc\\", "string without end at byte 5"},
      {"{1: 2}", "a key expected at byte 1"},
      {"{'a' 2}", "':' expected at byte 5"},
      {"{'a': 1, 'a': 2}", "the same key twice at byte 12"},
      {"Truth", "unknown word at byte 0"},
      {"99999999999999999999", "a value expected at byte 0"},
      {"((((((((((((((((((1))))))))))))))))))", "nested too deep at byte 17"},
  };
  for (const auto& [text, message] : cases) {
    const Result<PythonLiteral> literal = parse_python_literal(text);
    ASSERT_FALSE(literal.ok()) << text;
    EXPECT_EQ(literal.error().message(), message) << text;
  }
}

TEST(Npz, NamesArraysByTheirFiles) {
  const std::string good = npy_f32({1});
  const Result<Catalog> catalog = formats::npz.open(
      input(zip({stored("a.npy", good), deflated("b.npy", good), stored("c.npy", "junk")})));
  ASSERT_TRUE(catalog.ok()) << catalog.error().message();
  ASSERT_EQ(catalog.value().tensors.size(), 3U);
  EXPECT_EQ(catalog.value().tensors[0].name, "a");
  EXPECT_EQ(catalog.value().tensors[1].name, "b");
  EXPECT_EQ(catalog.value().tensors[1].fault, "");
  EXPECT_EQ(catalog.value().tensors[2].name, "c");
  EXPECT_EQ(catalog.value().tensors[2].fault, "no numpy signature");
}

TEST(Npz, SaysWhatItLeavesOut) {
  const Result<Catalog> catalog =
      formats::npz.open(input(zip({stored("a.npy", npy_f32({1})), stored("readme", "hello")})));
  ASSERT_TRUE(catalog.ok());
  ASSERT_EQ(catalog.value().problems.size(), 1U);
  EXPECT_EQ(catalog.value().problems[0].message, "not an npy file: left out");
  EXPECT_EQ(error_of(formats::npz, zip({stored("readme", "hello")})), "no npy file in it");
}

}  // namespace
}  // namespace tensordiff
