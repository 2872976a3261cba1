#include "runs/runs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "formats/test_writers.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

using test_writers::Arrays;
using test_writers::NamedArray;

// Three steps of a run of one prompt.
Arrays steps(unsigned seed) {
  return {{"layers.0.attn", {1, 6, 8}, noise(48, seed)},
          {"layers.0.mlp", {1, 6, 8}, noise(48, seed + 1)},
          {"layers.1.attn", {1, 6, 8}, noise(48, seed + 2)}};
}

class Runs : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              fmt::format("tensordiff_runs_{}_{}", getpid(),
                          testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const Arrays& arrays) {
    const std::string path = (folder_ / (name + ".safetensors")).string();
    std::ofstream(path, std::ios::binary) << test_writers::as_safetensors(arrays);
    return path;
  }

  static RunsComparison compared(const std::vector<std::string>& paths) {
    Result<RunsComparison> result = compare_runs(paths, {});
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message());
    return std::move(result).value();
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(Runs, ThatAreTheSameAreOneClass) {
  const std::string a = write("a", steps(1)), b = write("b", steps(1));
  const RunsComparison runs = compared({a, b});
  EXPECT_EQ(runs.classes, 1U);
  EXPECT_FALSE(runs.first_split);
  EXPECT_EQ(runs.floor().at("layers.0.mlp"), 0);
}

TEST_F(Runs, AreGroupedByTheirBits) {
  Arrays other = steps(1);
  other[1].values[5] *= 1.001F;
  other[2].values[0] *= 1.5F;
  const std::string a = write("a", steps(1)), b = write("b", other), c = write("c", steps(1)),
                    d = write("d", other);
  const RunsComparison runs = compared({a, b, c, d});
  EXPECT_EQ(runs.class_of, (std::vector<std::size_t>{0, 1, 0, 1}));
  ASSERT_TRUE(runs.first_split);
  EXPECT_EQ(runs.tensors[*runs.first_split].name, "layers.0.mlp");
  EXPECT_EQ(runs.tensors[2].distinct, 2U);
  EXPECT_GT(runs.floor().at("layers.1.attn"), runs.floor().at("layers.0.mlp"));
  EXPECT_EQ(runs.floor().at("layers.0.attn"), 0);
}

// A prompt alone and in a batch is the same question.
TEST_F(Runs, FindThePromptInABatch) {
  Arrays batch = steps(1);
  for (NamedArray& array : batch) {
    const std::vector<float> before = noise(48, 91), after = noise(48, 92);
    array.shape[0] = 3;
    array.values.insert(array.values.begin(), before.begin(), before.end());
    array.values.insert(array.values.end(), after.begin(), after.end());
  }
  batch[2].values[50] += 0.25F;  // In the prompt, which is the second sequence.
  const RunsComparison runs = compared({write("alone", steps(1)), write("batch", batch)});
  ASSERT_EQ(runs.notes.size(), 1U);
  EXPECT_NE(runs.notes[0].find("a batch of 3; sequence 1 is the prompt"), std::string::npos);
  ASSERT_TRUE(runs.first_split);
  EXPECT_EQ(runs.tensors[*runs.first_split].name, "layers.1.attn");
  EXPECT_EQ(runs.tensors[0].distinct, 1U);
}

TEST_F(Runs, TellWhatIsMissing) {
  Arrays less = steps(1);
  less.pop_back();
  const RunsComparison runs = compared({write("a", steps(1)), write("b", less)});
  EXPECT_EQ(runs.missing, std::vector<std::string>{"run 2: no layers.1.attn"});
}

TEST_F(Runs, NeedTwo) {
  const Result<RunsComparison> one = compare_runs({write("a", steps(1))}, {});
  ASSERT_FALSE(one.ok());
  EXPECT_EQ(one.error().message(), "runs needs two runs or more");
}

}  // namespace
}  // namespace tensordiff
