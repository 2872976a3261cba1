#include "formats/pickle/derived.h"

#include <gtest/gtest.h>

#include "formats/pickle/test_pickles.h"

namespace tensordiff {
namespace {

using namespace test_pickles;
using namespace std::string_literals;

std::string longs(const std::vector<uint64_t>& values) {
  std::string out;
  for (const uint64_t value : values) out += u64(value);
  return out;
}
std::string floats(const std::vector<float>& values) {
  std::string out;
  for (const float value : values) out += f32(value);
  return out;
}
std::string long_tensor(std::string_view key, int32_t count, const std::vector<int32_t>& size) {
  std::vector<int32_t> stride(size.size(), 1);
  if (size.size() == 2) stride[0] = size[1];
  return tensor({storage("LongStorage", key, count), 0, size, stride});
}

std::string sparse(std::string_view layout, const std::vector<std::string>& parts) {
  return call(global("torch._utils", "_rebuild_sparse_tensor"),
              {call(global("torch.serialization", "_get_layout"), {text(layout)}), tuple(parts)});
}

std::string told_coo(const std::vector<uint64_t>& indices, const std::vector<float>& values,
                     const std::vector<int32_t>& size) {
  const auto count = static_cast<int32_t>(values.size());
  return told_zip(
      sparse("torch.sparse_coo",
             {long_tensor("i", 2 * count, {2, count}),
              tensor({storage("FloatStorage", "v", count), 0, {count}, {1}}), numbers(size)}),
      {{"i", longs(indices)}, {"v", floats(values)}});
}

TEST(SparseCoo, IsFilledOutAndAddsDuplicates) {
  EXPECT_EQ(told_coo({0, 1, 2, 0}, {5, 7}, {2, 3}), " f32 [2,3] 0 0 5 7 0 0");
  EXPECT_EQ(told_coo({1, 1, 2, 2}, {5, 7}, {2, 3}), " f32 [2,3] 0 0 0 0 0 12");
}

TEST(SparseCoo, RefusesCoordinatesOutsideTheShape) {
  EXPECT_EQ(told_coo({0, 2, 0, 0}, {5, 7}, {2, 3}),
            " f32 [2,3] unreadable: a coordinate outside the shape [2, 3]");
  EXPECT_EQ(told_coo({0, UINT64_MAX, 0, 0}, {5, 7}, {2, 3}),
            " f32 [2,3] unreadable: a coordinate outside the shape [2, 3]");
}

TEST(SparseCoo, RefusesPartsThatDoNotFit) {
  EXPECT_EQ(told_coo({0, 1, 2, 0}, {5, 7}, {6}),
            ": coordinates [2, 2] and values [2] do not fit the shape [6]");
  EXPECT_EQ(told_coo({0, 1, 2, 0}, {5, 7}, {1 << 20, 1 << 20}),
            ": sparse tensor of shape [1048576, 1048576] is larger than 1.0 GiB once filled out, "
            "the limit; "
            "--limit dense=N raises it");
}

TEST(SparseCoo, AddsHalfPrecisionWithRounding) {
  const auto told_half = [](const std::string& type, const std::string& values) {
    return told_zip(
        sparse("torch.sparse_coo", {long_tensor("i", 2, {1, 2}),
                                    tensor({storage(type, "v", 2), 0, {2}, {1}}), numbers({1})}),
        {{"i", longs({0, 0})}, {"v", values}});
  };
  EXPECT_EQ(told_half("HalfStorage", "\x00\x3c\x00\x40"s), " f16 [1] 3");
  EXPECT_EQ(told_half("HalfStorage", "\xff\x7b\xff\x7b"), " f16 [1] inf");
  EXPECT_EQ(told_half("HalfStorage", "\x01\x00\x01\x00"s), " f16 [1] 1.19209e-07");
  EXPECT_EQ(told_half("HalfStorage", "\x00\x3c\x00\xbc"s), " f16 [1] 0");
  EXPECT_EQ(told_half("BFloat16Storage", "\x80\x3f\x00\x40"s), " bf16 [1] 3");
}

std::string told_compressed(std::string_view layout, const std::vector<uint64_t>& starts,
                            const std::vector<uint64_t>& others) {
  const auto lines = static_cast<int32_t>(starts.size());
  const auto count = static_cast<int32_t>(others.size());
  return told_zip(
      sparse(layout,
             {long_tensor("s", lines, {lines}), long_tensor("o", count, {count}),
              tensor({storage("FloatStorage", "v", count), 0, {count}, {1}}), numbers({2, 3})}),
      {{"s", longs(starts)}, {"o", longs(others)}, {"v", floats({5, 7})}});
}

TEST(SparseCompressed, IsFilledOutByRowOrColumn) {
  EXPECT_EQ(told_compressed("torch.sparse_csr", {0, 1, 2}, {2, 0}), " f32 [2,3] 0 0 5 7 0 0");
  EXPECT_EQ(told_compressed("torch.sparse_csc", {0, 1, 1, 2}, {1, 0}), " f32 [2,3] 0 0 7 5 0 0");
}

TEST(SparseCompressed, SaysWhatIsWrong) {
  EXPECT_EQ(told_compressed("torch.sparse_csr", {0, 2, 1}, {2, 0}),
            " f32 [2,3] unreadable: starts of rows that do not ascend");
  EXPECT_EQ(told_compressed("torch.sparse_csr", {0, 1, 9}, {2, 0}),
            " f32 [2,3] unreadable: starts of rows that do not ascend");
  EXPECT_EQ(told_compressed("torch.sparse_csr", {0, 1, 2}, {3, 0}),
            " f32 [2,3] unreadable: a coordinate outside the shape [2, 3]");
  EXPECT_EQ(told_compressed("torch.sparse_csr", {0, 2}, {2, 0}),
            ": starts [2], coordinates [2] and values [2] do not fit the shape [2, 3]");
  EXPECT_EQ(told_compressed("torch.sparse_odd", {0, 1, 2}, {2, 0}),
            ": sparse layout 'torch.sparse_odd' is not supported");
}

TEST(SparseCompressed, ReadsBlocks) {
  const std::string blocks = tensor({storage("FloatStorage", "v", 4), 0, {1, 2, 2}, {4, 2, 1}});
  EXPECT_EQ(told_zip(sparse("torch.sparse_bsr", {long_tensor("s", 2, {2}), long_tensor("o", 1, {1}),
                                                 blocks, numbers({2, 4})}),
                     {{"s", longs({0, 1})}, {"o", longs({1})}, {"v", floats({1, 2, 3, 4})}}),
            " f32 [2,4] 0 0 1 2 0 0 3 4");
}

std::string quantized(const std::string& parameters) {
  return call(global("torch._utils", "_rebuild_qtensor"),
              {storage("QInt8Storage", "q", 4), number(0), numbers({2, 2}), numbers({2, 1}),
               parameters, "\x89", kNoHooks});
}

std::string told_quantized(const std::string& parameters) {
  return told_zip(quantized(parameters),
                  {{"q", "\x00\x02\xfe\x7f"s}, {"s", floats({0.5F, 2})}, {"z", longs({1, 0})}});
}

const std::string kHalf = "G\x3f\xe0" + std::string(6, '\0');
const std::string kScales = tensor({storage("FloatStorage", "s", 2), 0, {2}, {1}});

TEST(Quantized, IsDequantizedWithOneScaleOrOnePerChannel) {
  EXPECT_EQ(told_quantized(tuple({global("torch", "per_tensor_affine"), kHalf, number(2)})),
            " f32 [2,2] -1 0 -2 62.5");
  const auto channels = [&](int32_t axis) {
    return tuple(
        {global("torch", "per_channel_affine"), kScales, long_tensor("z", 2, {2}), number(axis)});
  };
  EXPECT_EQ(told_quantized(channels(0)), " f32 [2,2] -0.5 0.5 -4 254");
  EXPECT_EQ(told_quantized(channels(1)), " f32 [2,2] -0.5 4 -1.5 254");
  EXPECT_EQ(told_quantized(channels(2)), ": a quantization axis that the tensor does not have");
}

TEST(Quantized, SaysWhatIsWrong) {
  EXPECT_EQ(told_quantized("N"), ": a quantized tensor without scale");
  EXPECT_EQ(told_quantized(tuple({global("torch", "per_tensor_affine"), "N", "N"})),
            ": a scale that is not a number");
  EXPECT_EQ(told_quantized(tuple({"N", kHalf, number(2)})),
            ": quantization scheme '' is not supported");
  const std::string one = tensor({storage("FloatStorage", "s", 2), 0, {1}, {1}});
  EXPECT_EQ(told_quantized(tuple(
                {global("torch", "per_channel_affine"), one, long_tensor("z", 2, {2}), number(0)})),
            ": 1 scales and 2 zero points for an axis of 2");
}

}  // namespace
}  // namespace tensordiff
