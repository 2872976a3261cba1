// One test for each packing, with values that were worked out by hand, and for what does not fit.

#include "packed/packed.h"

#include <cmath>

#include "packed/test_packed.h"

namespace tensordiff {
namespace {

using namespace test_packed;

TEST(Unpack, GivesTheWeightItsNameAndSetsItsPartsAside) {
  const Catalog catalog = unpacked({words("x.qweight", {1, 8}, std::vector<uint32_t>(8)),
                                    words("x.qzeros", {1, 1}, {0x77777777}),
                                    floats("x.scales", {1, 8}, std::vector<float>(8, 1)),
                                    floats("x.bias", {8}, std::vector<float>(8))});
  EXPECT_EQ(catalog.tensors[0].name, "x.qweight");
  EXPECT_EQ(catalog.tensors[0].pairing_name(), "x.weight");
  EXPECT_EQ(catalog.tensors[0].made_from, "int4 (GPTQ, groups of 8)");
  EXPECT_EQ(catalog.tensors[0].view.dtype, DType::int4_scaled);
  EXPECT_EQ(catalog.tensors[1].auxiliary, "part of packed weights");
  EXPECT_EQ(catalog.tensors[2].auxiliary, "part of packed weights");
  EXPECT_EQ(catalog.tensors[3].auxiliary, "");
}

TEST(Unpack, LeavesTheNameToAWeightThatIsThereToo) {
  const Catalog catalog = unpacked({words("x.qweight", {1, 8}, std::vector<uint32_t>(8)),
                                    words("x.qzeros", {1, 1}, {0x77777777}),
                                    floats("x.scales", {1, 8}, std::vector<float>(8, 1)),
                                    floats("x.weight", {8, 8}, std::vector<float>(64))});
  EXPECT_EQ(catalog.tensors[0].pairing_name(), "x.qweight");
}

TEST(Unpack, LeavesPlainTensorsAlone) {
  const Catalog catalog =
      unpacked({floats("x.weight", {2}, {1, 2}), floats("x.weight_scale", {1}, {2}),
                bytes("mask", {2}, {1, 0}), bytes("y.weight", {2}, {1, 0}, DType::i8)});
  for (const Tensor& tensor : catalog.tensors) {
    EXPECT_EQ(tensor.made_from, "") << tensor.name;
    EXPECT_EQ(tensor.auxiliary, "") << tensor.name;
  }
  EXPECT_TRUE(catalog.problems.empty());
}

TEST(Scaled, MultipliesWithOneScale) {
  // 0x38 is 1, 0x40 is 2, 0xb8 is -1 in e4m3.
  for (const char* scale : {"x.weight_scale", "x.weight_scale_inv", "x.scale", "x.scale_weight"}) {
    const Catalog catalog = unpacked(
        {bytes("x.weight", {1, 3}, {0x38, 0x40, 0xb8}, DType::f8_e4m3), floats(scale, {1}, {0.5})});
    EXPECT_EQ(values_in(catalog.tensors[0]), (Values{0.5, 1, -0.5})) << scale;
    EXPECT_EQ(catalog.tensors[0].made_from, "f8_e4m3 with one scale");
    EXPECT_EQ(catalog.tensors[1].auxiliary, "part of packed weights") << scale;
  }
}

TEST(Scaled, KnowsScalesOfRowsAndBlocks) {
  const std::vector<uint8_t> ones(15, 1);
  const Catalog rows =
      unpacked({bytes("w", {3, 5}, ones, DType::i8), floats("w_scale", {3, 1}, {1, 2, 3})});
  EXPECT_EQ(values_in(rows.tensors[0]), (Values{1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3}));
  EXPECT_EQ(rows.tensors[0].made_from, "i8 with a scale for each row");
  const Catalog blocks = unpacked(
      {bytes("w", {3, 5}, ones, DType::i8), floats("w_scale_inv", {2, 3}, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(values_in(blocks.tensors[0]), (Values{1, 1, 2, 2, 3, 1, 1, 2, 2, 3, 4, 4, 5, 5, 6}));
}

// 300 rows and 3 scales could also be blocks of 100; those that exist have 128.
TEST(Scaled, TakesBlocksOfTheUsualSizeOrOfTheConfig) {
  const std::vector<uint8_t> ones(300, 1);
  Values values = values_in(
      unpacked({bytes("w", {300, 1}, ones, DType::i8), floats("w_scale_inv", {3, 1}, {1, 2, 3})})
          .tensors[0]);
  EXPECT_EQ(values[127], 1);
  EXPECT_EQ(values[128], 2);
  values = values_in(
      unpacked({bytes("w", {300, 1}, ones, DType::i8), floats("w_scale_inv", {3, 1}, {1, 2, 3})},
               {{"config.json: quantization_config.weight_block_size", "[110, 1]"}})
          .tensors[0]);
  EXPECT_EQ(values[109], 1);
  EXPECT_EQ(values[110], 2);
}

TEST(Scaled, KnowsTheRowsOfBitsandbytesAndTheZerosOfOnnx) {
  const Catalog rows =
      unpacked({bytes("x.weight", {2, 1}, {127, 0x81}, DType::i8), floats("x.SCB", {2}, {0.5, 2})});
  EXPECT_EQ(values_in(rows.tensors[0]), (Values{0.5, -2}));
  const Catalog zeros = unpacked({bytes("w_quantized", {2}, {130, 126}),
                                  floats("w_scale", {}, {0.5}), bytes("w_zero_point", {}, {128})});
  EXPECT_EQ(values_in(zeros.tensors[0]), (Values{1, -1}));
  EXPECT_EQ(zeros.tensors[0].pairing_name(), "w");
  EXPECT_EQ(zeros.tensors[2].auxiliary, "part of packed weights");
}

TEST(Gptq, DecodesGroupsOfInputs) {
  // Two groups of 4 inputs, 8 outputs. Levels of output o: o in input 0, else 8.
  std::vector<uint32_t> levels;
  for (uint32_t output = 0; output < 8; ++output) levels.push_back(0x88888880U | output);
  std::vector<float> scales(16, 1);
  for (std::size_t i = 8; i < 16; ++i) scales[i] = 2;
  const auto tensors = [&](uint32_t zeros, const std::vector<uint32_t>& order) {
    std::vector<Tensor> list = {words("x.qweight", {1, 8}, levels),
                                words("x.qzeros", {2, 1}, {zeros, zeros}),
                                floats("x.scales", {2, 8}, scales)};
    if (!order.empty()) list.push_back(words("x.g_idx", {8}, order));
    return list;
  };
  // Stored zeros of 7 mean 8; those of 8 are of v2, and mean 8 as well.
  for (const uint32_t zeros : {0x77777777U, 0x88888888U}) {
    const Tensor weight = unpacked(tensors(zeros, {})).tensors[0];
    EXPECT_EQ(weight.view.shape, (Shape{8, 8}));
    const Values values = values_in(weight);
    EXPECT_EQ(values[0], -8);     // Output 0, input 0.
    EXPECT_EQ(values[8], -7);     // Output 1, input 0.
    EXPECT_EQ(values[8 + 4], 0);  // Output 1, input 4.
  }
  const Values shifted = values_in(unpacked(tensors(0x66666666, {})).tensors[0]);
  EXPECT_EQ(shifted[1], 1);  // Level 8, zero 7.
  EXPECT_EQ(shifted[5], 2);  // In the second group.
  const Values v2 =
      values_in(unpacked(tensors(0x66666666, {}),
                         {{"config.json: quantization_config.checkpoint_format", "gptq_v2"}})
                    .tensors[0]);
  EXPECT_EQ(v2[1], 2);
  const Values ordered =
      values_in(unpacked(tensors(0x66666666, {1, 1, 1, 1, 0, 0, 9, 0})).tensors[0]);
  EXPECT_EQ(ordered[1], 2);
  EXPECT_EQ(ordered[5], 1);
  EXPECT_TRUE(std::isnan(ordered[6]));  // There is no group 9.
}

TEST(Gptq, DecodesLevelsOfThreeBitsAcrossWords) {
  // 32 inputs of one output in three words: input i has level i % 8.
  uint32_t row[3] = {};
  for (uint32_t i = 0; i < 32; ++i)
    for (uint32_t bit = 0; bit < 3; ++bit)
      if (i % 8 >> bit & 1) row[(3 * i + bit) / 32] |= 1U << (3 * i + bit) % 32;
  std::vector<uint32_t> levels;
  for (const uint32_t word : row) levels.insert(levels.end(), 32, word);
  const Tensor weight =
      unpacked({words("x.qweight", {3, 32}, levels), words("x.qzeros", {1, 3}, {0, 0, 0}),
                floats("x.scales", {1, 32}, std::vector<float>(32, 1))})
          .tensors[0];
  EXPECT_EQ(weight.view.dtype, DType::int3_scaled);
  const Values values = values_in(weight);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], i % 8 - 1.0) << i;
}

TEST(Awq, KnowsTheOrderInAWord) {
  // Output o has level o: even ones in the low half of the word, odd ones in the high.
  const Tensor weight = unpacked({words("x.qweight", {2, 1}, {0x75316420, 0x75316420}),
                                  words("x.qzeros", {1, 1}, {0x11111111}),
                                  floats("x.scales", {1, 8}, {1, 1, 1, 1, 1, 1, 1, 2})})
                            .tensors[0];
  EXPECT_EQ(weight.view.shape, (Shape{8, 2}));
  EXPECT_EQ(values_in(weight), (Values{-1, -1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 12, 12}));
  EXPECT_EQ(weight.made_from, "int4 (AWQ, groups of 2)");
}

std::vector<Tensor> nf4(const std::string& state) {
  std::vector<float> table(16);
  for (std::size_t i = 0; i < 16; ++i) table[i] = static_cast<float>(i) - 8;
  const std::vector<uint8_t> text(state.begin(), state.end());
  return {bytes("x.weight", {2, 1}, {0x9a, 0x70}), floats("x.weight.quant_map", {16}, table),
          bytes("x.weight.quant_state.bitsandbytes__nf4", {text.size()}, text)};
}

TEST(Bitsandbytes, DecodesBlocksWithPlainAndWithPackedScales) {
  std::vector<Tensor> plain = nf4(R"({"shape":[2,2],"blocksize":2})");
  plain.push_back(floats("x.weight.absmax", {2}, {1, 2}));
  const Catalog catalog = unpacked(plain);
  EXPECT_EQ(values_in(catalog.tensors[0]), (Values{1, 2, -2, -16}));
  EXPECT_EQ(catalog.tensors[0].view.shape, (Shape{2, 2}));
  EXPECT_EQ(catalog.tensors[2].auxiliary, "part of packed weights");

  std::vector<Tensor> nested =
      nf4(R"({"shape":[3],"blocksize":2,"nested_blocksize":256,"nested_offset":1})");
  nested.push_back(bytes("x.weight.absmax", {2}, {0, 1}));
  nested.push_back(floats("x.weight.nested_absmax", {1}, {2}));
  nested.push_back(floats("x.weight.nested_quant_map", {2}, {0.5, 1}));
  EXPECT_EQ(values_in(unpacked(nested).tensors[0]), (Values{2, 4, -3}));
}

TEST(CompressedTensors, DecodesGroupsWithAndWithoutZeros) {
  const std::vector<int64_t> shape{2, 8};
  std::vector<Tensor> tensors = {words("x.weight_packed", {2, 1}, {0x76543210, 0x88888888}),
                                 stored("x.weight_shape", DType::i64, {2}, shape),
                                 floats("x.weight_scale", {2, 2}, {1, 2, 1, 1})};
  const Catalog plain = unpacked(tensors);
  EXPECT_EQ(values_in(plain.tensors[0]),
            (Values{-8, -7, -6, -5, -8, -6, -4, -2, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(plain.tensors[0].pairing_name(), "x.weight");
  // Zeros of 1 for the first output and 8 for the second, in both groups.
  tensors.push_back(words("x.weight_zero_point", {1, 2}, {0x81, 0x81}));
  EXPECT_EQ(values_in(unpacked(tensors).tensors[0]),
            (Values{-1, 0, 1, 2, 6, 8, 10, 12, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(SmallFloats, DecodesMxfp4AndNvfp4) {
  // Levels 1 and 2 are 0.5 and 1, 9 and 10 the same below zero.
  const std::vector<uint8_t> row(16, 0x21);
  const Catalog blocks = unpacked(
      {bytes("x.proj_blocks", {1, 1, 1, 16}, row), bytes("x.proj_scales", {1, 1, 1}, {128})});
  EXPECT_EQ(blocks.tensors[0].pairing_name(), "x.proj");
  EXPECT_EQ(blocks.tensors[0].view.shape, (Shape{1, 32, 1}));
  EXPECT_EQ(values_in(blocks.tensors[0])[0], 1);
  EXPECT_EQ(values_in(blocks.tensors[0])[1], 2);
  const std::vector<uint8_t> half(8, 0xa9);
  const Catalog times = unpacked({bytes("x.weight", {1, 8}, half),
                                  bytes("x.weight_scale", {1, 1}, {0x40}, DType::f8_e4m3),
                                  floats("x.weight_scale_2", {}, {0.5})});
  EXPECT_EQ(values_in(times.tensors[0])[1], -1);
  EXPECT_EQ(times.tensors[0].view.shape, (Shape{1, 16}));
  const Catalog over = unpacked({bytes("x.weight_packed", {1, 8}, half),
                                 bytes("x.weight_scale", {1, 1}, {0x40}, DType::f8_e4m3),
                                 floats("x.weight_global_scale", {1}, {4})});
  EXPECT_EQ(values_in(over.tensors[0])[0], -0.25);
  EXPECT_EQ(over.tensors[0].pairing_name(), "x.weight");
}

// What does not fit stays as it is stored, and a problem says why.
TEST(Unpack, SaysWhatDoesNotFit) {
  const std::vector<float> eight(8, 1);
  const std::vector<int64_t> huge{int64_t{1} << 62, 8}, negative{-1, 8};
  const struct {
    std::vector<Tensor> tensors;
    std::string problem;
  } cases[] = {
      {{bytes("w", {2, 2}, {1, 2, 3, 4}, DType::i8), floats("w_scale", {3}, {1, 2, 3})},
       "not dequantized: scaled: scales of [3] do not fit levels of [2, 2]"},
      {{bytes("w", {2, 2}, {1, 2, 3, 4}, DType::i8), floats("w_scale", {0}, {})},
       "not dequantized: scaled: scales of [0] do not fit levels of [2, 2]"},
      {{words("x.qweight", {1, 8}, std::vector<uint32_t>(8)),
        words("x.qzeros", {1, 5}, {0, 0, 0, 0, 0}), floats("x.scales", {1, 8}, eight)},
       "not dequantized: gptq: levels of [1, 8] do not fit zeros of [1, 5] and scales of [1, 8]"},
      {{words("x.qweight", {1, 8}, std::vector<uint32_t>(8)), words("x.qzeros", {1, 1}, {0}),
        floats("x.scales", {1, 8}, eight), words("x.g_idx", {2}, {0, 0})},
       "not dequantized: gptq: g_idx of 2 for 8 inputs"},
      {{words("x.qweight", {2, 1}, {0, 0}), words("x.qzeros", {2, 1}, {0, 0}),
        floats("x.scales", {1, 8}, eight)},
       "not dequantized: awq: levels of [2, 1] do not fit zeros of [2, 1] and scales of [1, 8]"},
      {{words("x.weight_packed", {2, 1}, {0, 0}), stored("x.weight_shape", DType::i64, {2}, huge),
        floats("x.weight_scale", {2, 1}, {1, 1})},
       "not dequantized: compressed-tensors: a weight_shape that is not a shape"},
      {{words("x.weight_packed", {2, 1}, {0, 0}),
        stored("x.weight_shape", DType::i64, {2}, negative),
        floats("x.weight_scale", {2, 1}, {1, 1})},
       "not dequantized: compressed-tensors: a weight_shape that is not a shape"},
      {{bytes("x_blocks", {1, 1, 16}, std::vector<uint8_t>(16)),
        bytes("x_scales", {1, 3}, {1, 2, 3})},
       "not dequantized: small-floats: levels of [1, 1, 16] do not fit scales of [1, 3]"},
      {nf4(R"({"shape":[9,9],"blocksize":2})"),
       "not dequantized: bitsandbytes: 2 bytes for a shape of [9, 9]"},
      {nf4(R"({"shape":[4],"blocksize":0})"),
       "not dequantized: bitsandbytes: its quant_state has no blocksize or no possible shape"},
      {nf4(R"({"shape":[4],"blocksize":2})"),
       "not dequantized: bitsandbytes: 0 largest values for 2 blocks"},
      {nf4("{"), ""},
  };
  for (const auto& [tensors, problem] : cases) {
    const Catalog catalog = unpacked(tensors);
    ASSERT_EQ(catalog.problems.size(), 1) << problem;
    EXPECT_TRUE(problem.empty() || catalog.problems[0].message == problem)
        << catalog.problems[0].message;
    EXPECT_EQ(catalog.tensors[0].made_from, "");
    EXPECT_EQ(catalog.tensors[1].auxiliary, "");
  }
}

TEST(Unpack, SaysThatManyDoNotFitInAFewLines) {
  std::vector<Tensor> tensors;
  for (int i = 0; i < 100; ++i) {
    const std::string name = "w" + std::to_string(i);
    tensors.push_back(bytes(name, {2}, {1, 2}, DType::i8));
    tensors.push_back(floats(name + "_scale", {3}, {1, 2, 3}));
  }
  const Catalog catalog = unpacked(tensors);
  ASSERT_EQ(catalog.problems.size(), 9);
  EXPECT_EQ(catalog.problems[8].message, "and 92 more packed weights that were not dequantized");
}

}  // namespace
}  // namespace tensordiff
