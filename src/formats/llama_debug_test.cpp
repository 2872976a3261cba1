// What llama-debug leaves in a folder, and what is said of broken files.

#include <gtest/gtest.h>

#include "formats/test_folders.h"

namespace tensordiff {
namespace {

using namespace test_folders;

const std::string kFour("\0\0\x80?\0\0\0@\0\0@@\0\0\x80@", 16);  // 1, 2, 3, 4 as float32.
const std::string kTokens("\x05\0\0\0\x07\0\0\0", 8);

TEST(LlamaDebug, ReadsLogitsAndTokens) {
  EXPECT_EQ(told_folder({{"llamacpp-tiny.bin", kFour},
                         {"llamacpp-tiny-tokens.bin", kTokens},
                         {"llamacpp-tiny.txt", "0: 1.0"},
                         {"llamacpp-tiny-prompt.txt", "Hello"}}),
            "logits 1 2 3 4; prompt_tokens 5 7");
}

TEST(LlamaDebug, ReadsEmbeddings) {
  EXPECT_EQ(
      told_folder({{"llamacpp-tiny-embeddings.bin", kFour}, {"llamacpp-tiny-tokens.bin", kTokens}}),
      "embeddings 1 2 3 4; prompt_tokens 5 7");
}

TEST(LlamaDebug, SaysWhatIsCutOff) {
  for (std::size_t size = 0; size < kFour.size(); ++size) {
    const std::string told = told_folder({{"llamacpp-tiny.bin", kFour.substr(0, size)},
                                          {"llamacpp-tiny-tokens.bin", kTokens},
                                          {"other.npy", test_files::npy_f32({1})}});
    EXPECT_EQ(told.find("bytes are not an array of f32") == std::string::npos,
              size % 4 == 0 && size > 0)
        << told;
  }
}

}  // namespace
}  // namespace tensordiff
