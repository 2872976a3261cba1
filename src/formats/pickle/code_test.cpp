// Which names of a pickle are told as code.

#include "formats/pickle/code.h"

#include <gtest/gtest.h>

#include "formats/audit.h"
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

// What is known to be harmless is not told; what is known to act is told first.
TEST(Code, IsToldByWhatItDoes) {
  const std::string names = "](" + global("torch.nn.modules.linear", "Linear") +
                            global("collections", "OrderedDict") + global("datetime", "datetime") +
                            global("m", "f") + global("__builtin__", "eval") +
                            global("torch._utils", "_rebuild_tensor_v2") + "e";
  const Catalog catalog = formats::pickle.open(input(kProto2 + names + ".")).value();
  ASSERT_EQ(catalog.problems.size(), 2U);
  EXPECT_EQ(catalog.problems[0].message,
            "holds a reference to '__builtin__.eval', which was not run");
  EXPECT_EQ(catalog.problems[0].severity, Severity::dangerous);
  EXPECT_EQ(catalog.problems[1].message, "holds a reference to 'm.f', which was not run");
  EXPECT_EQ(catalog.problems[1].severity, Severity::suspicious);
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

// What is refused may still be loaded by others: the code in it is named as far as it goes.
TEST(Code, IsToldOfFilesThatAreRefused) {
  const std::string one = kProto2 + call(global("os", "system"), {text("id")}) + ".";
  const std::string two = kProto2 + call(global("builtins", "eval"), {text("1")});
  std::string names;
  for (const Problem& found : code_in(bytes_of(one + two), 0, Limits(), "x"))
    names += found.where + ": " + found.message + ";";
  EXPECT_EQ(names,
            "x: holds a reference to 'builtins.eval', which was not run;"
            "x: holds a reference to 'os.system', which was not run;");
  EXPECT_EQ(audits::pickle.audit(input(one + two)).size(), 2U);
  EXPECT_TRUE(audits::pickle.audit(input(one)).empty());  // Opening says it.
}

// A legacy torch file is five pickles, each of which a loader runs.
TEST(Code, IsToldOfEveryPickleOfALegacyFile) {
  const std::string magic = kProto2 + "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
  const std::string machine = kProto2 + call(global("os", "system"), {text("id")}) + ".";
  const std::string file =
      magic + kProto2 + "M\xe9\x03." + machine + kProto2 + "}." + kProto2 + "].";
  EXPECT_EQ(told(formats::torch_legacy, file),
            " | holds a reference to 'os.system', which was not run");
}

}  // namespace
}  // namespace tensordiff::pickle
