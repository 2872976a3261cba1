#include <gtest/gtest.h>

#include "formats/test_files.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

using namespace test_files;

// "name: values" of each tensor.
std::vector<std::string> read(std::string_view text) {
  const Result<Catalog> catalog = formats::log_probs.open(input(std::string(text)));
  if (!catalog.ok()) return {catalog.error().message()};
  std::vector<std::string> lines;
  for (const Tensor& tensor : catalog.value().tensors) {
    std::vector<double> values(tensor.elements());
    Reader::open(tensor.view).value().values(0, values.size(), values.data());
    std::string line = tensor.name + ":";
    for (const double value : values) line += fmt::format(" {}", value);
    lines.push_back(std::move(line));
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(LogProbs, ReadsCompletions) {
  EXPECT_EQ(read(R"({"choices": [{"logprobs": {"token_logprobs": [null, -1.5, -2, -9999.0],
      "tokens": ["a", "token_id:7", "token_id:9", "x"],
      "top_logprobs": [null, {"token_id:7": -1.5, "token_id:3": -3}, {"token_id:9": -2},
      null]}}]})"),
            (Lines{"sequence_0/log_probs: -1.5 -2", "sequence_0/token_ids: 7 9",
                   "sequence_0/top_ids: 7 3 9 0", "sequence_0/top_log_probs: -1.5 -3 -2 nan"}));
}

TEST(LogProbs, ReadsChatAndPrompts) {
  const Lines chat = read(
      R"({"choices": [{"logprobs": {"content": [{"token": "token_id:4", "logprob": -0.5}]}}]})");
  EXPECT_EQ(chat, (Lines{"sequence_0/log_probs: -0.5", "sequence_0/token_ids: 4"}));
  EXPECT_EQ(read(R"({"prompt_token_ids": [5, 8], "prompt_logprobs":
                     [null, {"2": {"logprob": -1}, "8": {"logprob": -3}}]})"),
            (Lines{"sequence_0/log_probs: -3", "sequence_0/token_ids: 8", "sequence_0/top_ids: 2 8",
                   "sequence_0/top_log_probs: -1 -3"}));
}

TEST(LogProbs, ReadsTrainersAndLeavesOutWhatTheyMask) {
  EXPECT_EQ(read("{\"old_log_probs\": [-1, -2, 0], \"response_ids\": [3, 4, 0],"
                 " \"response_mask\": [1, 1, 0]}\n\n"
                 "{\"rollout_log_probs\": [-3], \"old_log_probs\": [-4]}\n"),
            (Lines{"sequence_0/log_probs: -1 -2", "sequence_0/token_ids: 3 4",
                   "sequence_1/rollout_log_probs: -3", "sequence_1/old_log_probs: -4"}));
}

TEST(LogProbs, KnowsTokensByTheirTextWhereNoIdIsTold) {
  const Lines lines = read(R"([{"logprobs": {"token_logprobs": [-1, -1], "tokens": ["a", "b"]}},
                               {"logprobs": {"token_logprobs": [-2], "tokens": ["a"]}}])");
  ASSERT_EQ(lines.size(), 4U);
  const std::string first = lines[1].substr(lines[1].find(':'));
  EXPECT_EQ(first.substr(0, 3), ": -");  // No id is negative.
  EXPECT_EQ(first.find(lines[3].substr(lines[3].find(':'))), 0U);
}

TEST(LogProbs, SaysWhatIsWrong) {
  EXPECT_EQ(read("{\"weights\": 1}"), (Lines{"no JSON with log-probabilities"}));
  EXPECT_EQ(read("{\"log_probs\": \"none\"}"), (Lines{"no log-probabilities in it"}));
  EXPECT_EQ(read("{\"log_probs\": [-1]}\n[3]"), (Lines{"line 2: not an object"}));
  EXPECT_EQ(read("{\"log_probs\": [-1]}\n{\"log_probs\": [-1").front().substr(0, 7), "line 2:");
}

}  // namespace
}  // namespace tensordiff
