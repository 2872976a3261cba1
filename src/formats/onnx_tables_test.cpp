// Tables of node outputs as ONNX Runtime creates them (tests/data/dumps/make.py), and what is said
// of broken ones.

#include "formats/onnx_tables.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "formats/pickle/test_pickles.h"
#include "formats/test_files.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

using namespace test_files;
using test_pickles::told;

std::string steps() { return read_file(data_path("../dumps/steps.db")); }

// Two runs of a session: their numbers stand before the names.
TEST(OnnxTables, ReadsValuesThatGoOverSeveralPages) {
  const Result<Catalog> catalog = formats::onnx.open(input(steps()));
  ASSERT_TRUE(catalog.ok()) << catalog.error().message();
  std::string names;
  for (const Tensor& tensor : catalog.value().tensors)
    names += tensor.name + shape_text(tensor.view.shape) + " ";
  EXPECT_EQ(names, "iteration_0/a[3] iteration_0/b[150] iteration_1/a[3] ");
  const Reader reader = Reader::open(catalog.value().tensors[1].view).value();
  double values[150];
  reader.values(0, 150, values);
  for (int i = 0; i < 150; ++i) EXPECT_EQ(values[i], i);
}

TEST(OnnxTables, ReadsAWholeRunInTheOrderOfComputing) {
  const Result<Catalog> catalog =
      formats::onnx.open(input(read_file(data_path("../dumps/onnxruntime.db"))));
  ASSERT_TRUE(catalog.ok()) << catalog.error().message();
  EXPECT_TRUE(read_all(catalog.value()));
  EXPECT_GT(catalog.value().tensors.size(), 50U);
  EXPECT_EQ(catalog.value().tensors[0].name, "/model/layers.0/input_layernorm/Cast_output_0");
}

TEST(OnnxTables, SaysWhatIsWrong) {
  const auto changed = [](std::size_t at, std::string_view by) {
    return error_of(formats::onnx, steps().replace(at, by.size(), by));
  };
  EXPECT_EQ(error_of(formats::onnx, steps().substr(0, 50)), "the header is cut short: 50 bytes");
  EXPECT_EQ(changed(16, std::string_view("\1\1", 2)),
            "pages of 257 bytes: not a size that SQLite has");
  EXPECT_EQ(changed(20, "\x40"), "pages of 448 usable bytes: too few");
  EXPECT_EQ(changed(28, std::string_view("\0\0\0\1", 4)),
            "3584 bytes, but 1 pages of 512 need 512");
  EXPECT_EQ(changed(59, "\2"), "text in encoding 2: only UTF-8 is read");
  EXPECT_EQ(changed(100, "\2"), "not a dump of ONNX Runtime: page 1 does not belong to a table");
  std::string other = steps();
  for (std::size_t at = 0; (at = other.find("Tensors", at)) != other.npos;) other[at] = 'S';
  EXPECT_EQ(error_of(formats::onnx, other),
            "not a dump of ONNX Runtime: it has no table 'Tensors'");
  other = steps();
  other.replace(other.find("Value"), 5, "Other");
  EXPECT_EQ(error_of(formats::onnx, other),
            "not a dump of ONNX Runtime: table Tensors has no columns Name and Value");
}

// A value that is no tensor spoils its own row.
TEST(OnnxTables, KeepsTheOtherTensors) {
  std::string file = steps();
  file[file.rfind("\x08\x03\x10\x01")] = '\x7f';  // Rows are filled in from the end of a page.
  const std::string text = told(formats::onnx, file);
  EXPECT_NE(text.find("iteration_0/a: "), text.npos) << text;
  EXPECT_NE(text.find("iteration_1/a f32 [3] 1 2 3"), text.npos) << text;
}

}  // namespace
}  // namespace tensordiff
