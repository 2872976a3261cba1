// What Polygraphy itself wrote (tests/data/dumps/make.py), and what is said of broken files.

#include <gtest/gtest.h>

#include "base/base64.h"
#include "formats/pickle/test_pickles.h"
#include "formats/test_files.h"

namespace tensordiff {
namespace {

using namespace test_files;
using test_pickles::told;

std::string results(const std::string& runners) {
  return R"({"lst": [)" + runners + R"(], "polygraphy_class": "RunResults"})";
}

std::string runner(const std::string& iterations) {
  return R"(["trt-runner-N0", [)" + iterations + "]]";
}

std::string iteration(const std::string& array) { return R"({"outputs": {"y": )" + array + "}}"; }

std::string coded(const std::vector<float>& values) {
  return R"({"array": ")" + base64(npy_f32(values)) + R"("})";
}

TEST(Polygraphy, IsReadAsItWritesIt) {
  const Result<Catalog> catalog =
      formats::polygraphy.open(input(read_file(data_path("../dumps/polygraphy.json"))));
  ASSERT_TRUE(catalog.ok()) << catalog.error().message();
  EXPECT_TRUE(read_all(catalog.value()));
  EXPECT_EQ(catalog.value().tensors[0].name, "/model/embed_tokens/Gather_output_0");
  EXPECT_EQ(catalog.value().tensors.back().name, "logits");
}

TEST(Polygraphy, NumbersRunnersAndIterationsWhereThereAreSeveral) {
  const auto names = [](const std::string& file) {
    std::string text;
    const Result<Catalog> catalog = formats::polygraphy.open(input(file));
    EXPECT_TRUE(catalog.ok());
    for (const Tensor& tensor : catalog.value().tensors) text += tensor.name + " ";
    return text;
  };
  const std::string one = iteration(coded({1}));
  EXPECT_EQ(names(results(runner(one))), "y ");
  EXPECT_EQ(names(results(runner(one + "," + one))), "iteration_0/y iteration_1/y ");
  EXPECT_EQ(names(results(runner(one) + "," + runner(one))), "runner_0/y runner_1/y ");
}

TEST(Polygraphy, SaysWhatIsWrong) {
  const auto told_file = [](const std::string& file) { return told(formats::polygraphy, file); };
  EXPECT_EQ(told_file(results(runner(iteration(coded({1, 2}))))), "y f32 [2] 1 2");
  EXPECT_EQ(told_file(results(runner(iteration(R"({"array": "A"})")))), "y: not base64");
  EXPECT_EQ(told_file(results(runner(iteration(R"({"other": 1})")))),
            "y: no 'array' and no 'tensor' in it");
  EXPECT_EQ(error_of(formats::polygraphy, R"({"polygraphy_class": "RunResults"})"),
            "no list of runners ('lst'): not results of a run");
  EXPECT_EQ(error_of(formats::polygraphy, results("1")),
            "runner 0: not a pair of a name and iterations");
  EXPECT_EQ(error_of(formats::polygraphy, results("")), "no outputs in it");
  EXPECT_EQ(error_of(formats::polygraphy, "{}"), "no mark of Polygraphy at its start or end");
}

}  // namespace
}  // namespace tensordiff
