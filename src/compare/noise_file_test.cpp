#include "compare/noise_file.h"

#include <gtest/gtest.h>

namespace tensordiff {
namespace {

std::string error_of(std::string_view text) {
  const Result<NoiseFloor> floor = read_noise(text);
  return floor.ok() ? "" : floor.error().message();
}

TEST(NoiseFile, ComesBackAsItWasWritten) {
  const NoiseFloor floor = {{"layers.0.mlp", 1.5e-3}, {"a \"name\"", 0}};
  const std::string text = noise_text(floor, 4);
  EXPECT_TRUE(is_noise_text(text));
  ASSERT_TRUE(read_noise(text).ok());
  EXPECT_EQ(read_noise(text).value(), floor);
}

TEST(NoiseFile, SaysWhatIsWrong) {
  EXPECT_EQ(error_of(R"({"schema": "other"})"),
            "not a noise floor: its schema is not tensordiff.noise/1");
  EXPECT_EQ(error_of(R"({"schema": "tensordiff.noise/1", "tensors": [{"name": "w"}]})"),
            "tensor 'w': rel_l2 is not a number from 0 on");
  EXPECT_EQ(
      error_of(R"({"schema": "tensordiff.noise/1", "tensors": [{"name": "w", "rel_l2": -1}]})"),
      "tensor 'w': rel_l2 is not a number from 0 on");
  EXPECT_FALSE(is_noise_text("PK\3\4"));
  EXPECT_FALSE(is_noise_text(R"({"weight_map": {}})"));
}

TEST(NoiseFile, RefusesEveryTruncation) {
  const std::string text = noise_text({{"w", 0.5}}, 2);
  for (std::size_t size = 0; size + 1 < text.size(); ++size)
    EXPECT_FALSE(read_noise(text.substr(0, size)).ok()) << size;
}

}  // namespace
}  // namespace tensordiff
