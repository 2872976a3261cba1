// What is read of llama.cpp's printed tensors, and what is said of broken logs.

#include <gtest/gtest.h>

#include "formats/pickle/test_pickles.h"
#include "formats/test_files.h"

namespace tensordiff {
namespace {

using namespace test_files;
using test_pickles::told;

std::string tensor(const std::string& sizes, const std::string& rows,
                   const std::string& name = "l_out-0") {
  return "common_debug_cb_eval:  " + name + " = (f32)  ADD(x{" + sizes + "}, }) = {" + sizes +
         "}\n    [\n        [\n" + rows + "        ],\n    ]\n    sum = 1.000000\n";
}

// Said of every log.
const std::string kNote =
    " | a printed log: of long axes it has the first and the last three elements";

TEST(EvalCallback, ReadsWhatIsPrinted) {
  const auto told_file = [](const std::string& file) { return told(formats::eval_callback, file); };
  EXPECT_EQ(told_file(tensor("2, 1, 1, 1", "[  0.5000,  -1.0000  ],\n")),
            "l_out-0 f16 [2] 0.5 -1" + kNote);
  EXPECT_EQ(told_file(tensor("9, 1, 1, 1", "[ 1.0, 2.0, 3.0,   ..., 4.0, 5.0, nan  ],\n")),
            "l_out-0 f16 [9] 1 2 3 nan nan nan 4 5 nan" + kNote);
  EXPECT_EQ(told_file(tensor("1, 1, 1, 1", "[ 70000.0000  ],\n")), "l_out-0 f32 [1] 70000" + kNote);
  EXPECT_EQ(told_file("ggml_debug:  x = (f32)  ADD(, }) = {1, 2, 1, 1}\n[\n[ 1.0 ],\n"
                      "..., \n[ 2.0 ],\nsum = 3\n"),
            "x f16 [2,1] 1 2" + kNote);
}

TEST(EvalCallback, NumbersTensorsOfOneName) {
  const std::string one = tensor("1, 1, 1, 1", "[ 1.0 ],\n", "Qcur-0");
  const Result<Catalog> catalog = formats::eval_callback.open(input(one + one));
  ASSERT_TRUE(catalog.ok());
  ASSERT_EQ(catalog.value().tensors.size(), 2u);
  EXPECT_EQ(catalog.value().tensors[0].name, "Qcur-0");
  EXPECT_EQ(catalog.value().tensors[1].name, "Qcur-0@1");
}

TEST(EvalCallback, SaysWhatIsWrong) {
  const auto error = [](const std::string& file) { return error_of(formats::eval_callback, file); };
  EXPECT_EQ(error(tensor("2, 1, 1, 1", "[ 1.0 ],\n")),
            "'l_out-0': 1 numbers are printed, but its sizes give 2");
  EXPECT_EQ(error(tensor("2, 1, 1, 1", "[ 1.0, x ],\n")), "'l_out-0': 'x' is not a number");
  EXPECT_EQ(error(tensor("2, 1", "[ 1.0, 2.0 ],\n")), "2 sizes instead of 4");
  EXPECT_EQ(error(tensor("-1, 1, 1, 1", "")), "'-1' is not a size");
  const std::string whole = tensor("1, 1, 1, 1", "[ 1.0 ],\n");
  EXPECT_EQ(error(whole.substr(0, whole.find("sum"))), "'l_out-0': it ends before its sum");
  EXPECT_EQ(error("nothing"), "no tensor is announced near its start");
}

}  // namespace
}  // namespace tensordiff
