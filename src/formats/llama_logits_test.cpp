#include <gtest/gtest.h>

#include "formats/test_files.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

using namespace test_files;

// One chunk of 6 tokens, 3 words: rows for positions 3 and 4, of 8 u16 each.
std::string base_file(uint32_t context = 6, uint32_t words = 3, uint32_t chunks = 1) {
  std::string file = "_logits_" + u32(context) + u32(words) + u32(chunks);
  for (uint32_t token = 0; token < 6; ++token) file += u32(token);
  file += f32(0.5F) + f32(-8) + u16(0) + u16(2) + u16(16) + u16(0);
  file += f32(0.25F) + f32(-4) + u16(4) + u16(8) + u16(12) + u16(0);
  return file;
}

std::string error_for(const std::string& file) { return error_of(formats::llama_logits, file); }

std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values(tensor.elements());
  Reader::open(tensor.view).value().values(0, values.size(), values.data());
  return values;
}

TEST(LlamaLogits, DecodesLogProbabilities) {
  const Result<Catalog> catalog = formats::llama_logits.open(input(base_file()));
  ASSERT_TRUE(catalog.ok()) << catalog.error().message();
  const std::vector<Tensor>& tensors = catalog.value().tensors;
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(tensors[0].name, "tokens");
  EXPECT_EQ(values_of(tensors[0]), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(tensors[1].name, "log_probs");
  EXPECT_EQ(tensors[1].view.shape, (Shape{1, 2, 3}));
  EXPECT_EQ(values_of(tensors[1]), (std::vector<double>{-8, -7, 0, -3, -2, -1}));
}

TEST(LlamaLogits, SaysWhatIsWrong) {
  EXPECT_EQ(error_for("_logits_" + u32(6)), "the header is cut short: 12 bytes");
  EXPECT_EQ(error_for(base_file(2)),
            "not a file of logits: contexts of 2 tokens, 3 words, 1 chunks");
  EXPECT_EQ(error_for(base_file(6, 0)),
            "not a file of logits: contexts of 6 tokens, 0 words, 1 chunks");
  EXPECT_EQ(error_for(base_file(6, 3, 2)),
            "76 bytes, but 2 chunks of 2 rows with 3 words need 132");
  EXPECT_EQ(error_for(base_file(0x7fffffff, 0x7fffffff, 0x7fffffff)),
            "76 bytes, but 2147483647 chunks of 1073741823 rows with 2147483647 words need more "
            "than 2^40");
  EXPECT_EQ(error_for("_logit__"), "it does not start with '_logits_'");
}

}  // namespace
}  // namespace tensordiff
