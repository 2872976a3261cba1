// Which names of a pickle are told as code.

#include "formats/pickle/code.h"

#include <gtest/gtest.h>

#include "formats/pickle/test_pickles.h"

namespace tensordiff::pickle {
namespace {

using namespace test_pickles;

TEST(Code, IsToldByName) {
  EXPECT_EQ(told_pickle(kProto2 + call(global("os", "system"), {text("id")}) + "."),
            " | holds a reference to 'os.system', which was not run");
  EXPECT_EQ(told_pickle(kProto2 + kNoHooks + "."), "");
}

TEST(Code, IsCountedWhereThereIsMuch) {
  std::string list = "](";
  for (int i = 0; i < 103; ++i) list += global("m", "f" + std::to_string(i));
  const std::string all = told_pickle(kProto2 + list + "e.");
  EXPECT_TRUE(all.ends_with("'m.f99', which was not run | and references to 3 more names")) << all;
}

// The classes of a TorchScript archive are in the archive; elsewhere the same name is code.
TEST(Code, OfAScriptIsItsOwn) {
  const std::string object = global("__torch__.Net", "Net") + ")\x81}b";
  EXPECT_EQ(told_pickle(kProto2 + object + "."),
            " | holds a reference to '__torch__.Net.Net', which was not run");
  const std::string root = kProto2 + object + ".";
  EXPECT_EQ(told(formats::torch_zip,
                 test_files::zip({test_files::stored("m/data.pkl", root),
                                  test_files::stored("m/constants.pkl", kProto2 + ").")})),
            "");
}

}  // namespace
}  // namespace tensordiff::pickle
