#include "cli/elements.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "cli/progress.h"

namespace tensordiff {
namespace {

std::vector<uint64_t> positions(std::string_view slice, const Shape& shape) {
  const Result<Box> box = parse_slice(slice, shape);
  EXPECT_TRUE(box.ok()) << slice;
  std::vector<uint64_t> out;
  for_each_run(box.value(), shape, [&](uint64_t position, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) out.push_back(position + i);
    return true;
  });
  return out;
}

TEST(Slice, PicksElementsInRowMajorOrder) {
  using P = std::vector<uint64_t>;
  EXPECT_EQ(positions("", {2, 3}), (P{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(positions("1", {2, 3}), (P{3, 4, 5}));
  EXPECT_EQ(positions(":,1:", {2, 3}), (P{1, 2, 4, 5}));
  EXPECT_EQ(positions(" -1 , :2 ", {2, 3}), (P{3, 4}));
  EXPECT_EQ(positions("0,1:2,:", {2, 3, 2}), (P{2, 3}));
  EXPECT_EQ(positions("1:1", {2, 3}), P{});
  EXPECT_EQ(positions("", {}), P{0});
  EXPECT_EQ(positions(":", {0}), P{});
}

TEST(Slice, ReadsWhatLiesTogetherAtOnce) {
  int runs = 0;
  for_each_run(whole({4, 5, 6}), {4, 5, 6}, [&](uint64_t, uint64_t count) {
    EXPECT_EQ(count, 120U);
    return ++runs > 0;
  });
  EXPECT_EQ(runs, 1);
}

TEST(Slice, RefusesWhatDoesNotFit) {
  const std::map<std::string_view, std::string_view> cases = {
      {"2", "index 2 lies outside an axis of 2"},
      {"-3", "index -3 lies outside an axis of 2"},
      {"0,0:9", "range 0:9 does not fit an axis of 3"},
      {"0,2:1", "range 2:1 does not fit an axis of 3"},
      {"0,0,0", "slice '0,0,0' has 3 axes, but the tensor has 2"},
      {"x", "'x' is not an index"},
      {"0:1:2", "'1:2' is not an index"},
      {"99999999999999999999", "'99999999999999999999' is not an index"},
      {"-9223372036854775808", "index -9223372036854775808 lies outside an axis of 2"},
  };
  for (const auto& [text, message] : cases) {
    const Result<Box> box = parse_slice(text, {2, 3});
    ASSERT_FALSE(box.ok()) << text;
    EXPECT_EQ(box.error().message(), message);
  }
}

TEST(Condition, Holds) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(parse_condition(">1e4").value().holds(10001));
  EXPECT_FALSE(parse_condition(">1e4").value().holds(1e4));
  EXPECT_TRUE(parse_condition(">=1e4").value().holds(1e4));
  EXPECT_TRUE(parse_condition("< -3").value().holds(-3.5));
  EXPECT_TRUE(parse_condition("<=-3").value().holds(-3));
  EXPECT_TRUE(parse_condition("=0").value().holds(-0.0));
  EXPECT_TRUE(parse_condition("nan").value().holds(nan));
  EXPECT_FALSE(parse_condition(">0").value().holds(nan));
  EXPECT_TRUE(parse_condition("inf").value().holds(-std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(parse_condition("big").ok());
  EXPECT_FALSE(parse_condition(">").ok());
}

TEST(Element, KeepsAllDigitsOfIntegers) {
  const int64_t large = 9007199254740993;  // 2^53 + 1, which no float64 is.
  const auto* bytes = reinterpret_cast<const std::byte*>(&large);
  EXPECT_EQ(element_text(DType::i64, bytes), "9007199254740993");
  JsonWriter json;
  write_element(json, DType::i64, bytes);
  EXPECT_EQ(json.text(), "9007199254740993");
}

TEST(Element, OfAComplexTypeIsAPair) {
  const float parts[2] = {1.5F, -2};
  const auto* bytes = reinterpret_cast<const std::byte*>(parts);
  EXPECT_EQ(element_text(DType::c64, bytes), "1.5-2i");
  JsonWriter json;
  write_element(json, DType::c64, bytes);
  EXPECT_EQ(json.text(), "[1.5,-2]");
  EXPECT_TRUE(holds(parse_condition("<0").value(), DType::c64, bytes));
}

TEST(Progress, TellsHowMuchHowFastAndHowLong) {
  EXPECT_EQ(progress_text(1ULL << 30, 4ULL << 30, 1),
            "1.0 GiB of 4.0 GiB  25 %  1.07 GB/s  3 s left");
  EXPECT_EQ(progress_text(0, 4096, 0), "0 B of 4.0 KiB  0 %");
  EXPECT_EQ(progress_text(1, 7201, 1), "1 B of 7.0 KiB  0 %  0.00 GB/s  2:00 h left");
  EXPECT_EQ(progress_text(9, 5, 1), "5 B of 5 B  100 %  0.00 GB/s  0 s left");
}

}  // namespace
}  // namespace tensordiff
