// Which parts of a Keras configuration are told as code.

#include "formats/keras_code.h"

#include <gtest/gtest.h>

#include "formats/test_writers.h"

namespace tensordiff {
namespace {

using namespace test_writers;

std::string told(std::string_view json) {
  std::string out;
  for (const Problem& found : code_in_keras(json, ""))
    out += fmt::format("{}: {};", name_of(found.severity), found.message);
  return out;
}

TEST(KerasCode, IsNamed) {
  // As Keras 2 writes a Lambda, in model_config.
  EXPECT_EQ(told(R"({"class_name": "Sequential", "config": {"name": "s", "layers": [
      {"class_name": "Dense", "config": {"name": "dense"}},
      {"class_name": "Lambda",
       "config": {"name": "evil", "function": ["4wEAAAA=", null, null]}}]}})"),
            "dangerous: 'evil' is a Lambda of marshalled Python code, which was not run;");
  // As Keras 3 does.
  EXPECT_EQ(told(R"({"class_name": "Dense", "config": {"name": "d", "activation":
      {"class_name": "__lambda__", "config": {"code": "4wEAAAA="}}}})"),
            "dangerous: 'd' is a __lambda__ of marshalled Python code, which was not run;");
  // CVE-2025-1550: any function of any module.
  EXPECT_EQ(told(R"({"module": "os", "class_name": "function", "config": "system"})"),
            "dangerous: holds a reference to 'os.system', which was not run;");
  EXPECT_EQ(told(R"({"module": "mine.layers", "class_name": "Odd", "config": {"name": "o"}})"),
            "suspicious: 'o' holds a reference to 'mine.layers.Odd', which was not run;");
  // CVE-2025-8747: a function of Keras itself that downloads.
  EXPECT_EQ(told(R"({"module": "keras.utils", "class_name": "function", "config": "get_file"})"),
            "dangerous: holds a reference to 'keras.utils.get_file', which was not run;");
  // CVE-2025-12058: a file that a layer reads.
  EXPECT_EQ(told(R"({"class_name": "StringLookup", "module": "keras.layers",
      "config": {"name": "look", "vocabulary": "/etc/passwd"}})"),
            "dangerous: 'look' reads the file '/etc/passwd' when it is loaded;");
  EXPECT_EQ(told("{"), "suspicious: not looked at for code: a key expected at byte 1 of the JSON;");
}

TEST(KerasCode, IsNotSeenWhereThereIsNone) {
  EXPECT_EQ(told(R"({"module": "keras", "class_name": "Functional", "config": {"layers": [
      {"module": "keras.layers", "class_name": "Dense",
       "config": {"name": "d", "activation": "relu", "kernel_initializer":
        {"module": "keras.initializers", "class_name": "GlorotUniform"}}}]}})"),
            "");
}

// The configuration in an archive is looked at when the archive is opened.
TEST(KerasCode, IsToldOfArchives) {
  const std::string config = R"({"class_name": "Lambda", "config": {"name": "l"}})";
  const std::string file = zip({stored("config.json", config), stored("metadata.json", "{}"),
                                stored("w.npy", as_npy({"w", {1}, {1}}))});
  const Result<Catalog> catalog = formats::zip.open(input(file));
  ASSERT_TRUE(catalog.ok()) << catalog.error().message();
  ASSERT_EQ(catalog.value().problems.size(), 1U);
  EXPECT_EQ(catalog.value().problems[0].where, "config.json");
  EXPECT_EQ(catalog.value().problems[0].severity, Severity::dangerous);
}

}  // namespace
}  // namespace tensordiff
