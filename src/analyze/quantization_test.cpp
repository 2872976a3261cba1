// How weights are quantized, told by planted cases, and what it costs.

#include "analyze/quantization.h"

#include <gtest/gtest.h>

#include <cmath>

#include "analyze/analysis.h"
#include "analyze/quantization_damage.h"
#include "analyze/test_models.h"
#include "packed/packed.h"

namespace tensordiff {
namespace {

constexpr std::size_t kRows = 48, kColumns = 256;
const Shape kShape = {kRows, kColumns};

// Weights as they are found: rows of different sizes, with tails.
std::vector<float> weights(unsigned seed) {
  std::vector<float> values = noise(kRows * kColumns, seed);
  const std::vector<float> sizes = noise(kRows, seed + 1);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] *= 0.02F * (1 + 0.2F * std::abs(values[i])) * std::exp(0.3F * sizes[i / kColumns]);
  return values;
}

// Values of groups of `size` that lie `apart`, put on the levels nearest to them.
std::vector<float> on_book(std::vector<float> values, std::size_t size,
                           const std::vector<double>& levels, bool power_of_two = false) {
  for (std::size_t first = 0; first < values.size(); first += size) {
    double largest = 0;
    for (std::size_t i = first; i < first + size; ++i)
      largest = std::max<double>(largest, std::abs(values[i]));
    const double exact = largest / levels.back();
    const double scale = power_of_two ? std::exp2(std::ceil(std::log2(exact))) : exact;
    for (std::size_t i = first; i < first + size; ++i) {
      double best = levels[0];
      for (const double level : levels)
        if (std::abs(values[i] / scale - level) < std::abs(values[i] / scale - best)) best = level;
      values[i] = static_cast<float>(static_cast<float>(best) * static_cast<float>(scale));
    }
  }
  return values;
}

std::vector<float> with_offset(std::vector<float> values, std::size_t size, int steps) {
  for (std::size_t first = 0; first < values.size(); first += size) {
    const auto [least, most] =
        std::minmax_element(values.begin() + static_cast<std::ptrdiff_t>(first),
                            values.begin() + static_cast<std::ptrdiff_t>(first + size));
    const float low = *least, step = (*most - low) / static_cast<float>(steps);
    for (std::size_t i = first; i < first + size; ++i)
      values[i] = std::round((values[i] - low) / step) * step + low;
  }
  return values;
}

std::vector<float> transposed(const std::vector<float>& values, std::size_t rows) {
  const std::size_t columns = values.size() / rows;
  std::vector<float> out(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) out[i % columns * rows + i / columns] = values[i];
  return out;
}

std::string grid_of(const View& view) {
  const std::optional<Grid> found = find_grid(view).value();
  return found ? found->text() : "none";
}

const std::vector<double>& levels_of(std::string_view name) {
  for (const CodeBook& book : code_books())
    if (book.name == name) return book.levels;
  ADD_FAILURE() << name;
  return code_books()[0].levels;
}

struct Planted {
  const char* what;
  std::vector<float> values;
};

std::vector<Planted> planted(unsigned seed) {
  const std::vector<float> w = weights(seed);
  std::vector<Planted> all;
  for (const int bits : {2, 3, 4, 5, 6, 7, 8}) {
    static const char* const kRow[] = {"",
                                       "",
                                       "int2, a scale for each row",
                                       "int3, a scale for each row",
                                       "int4, a scale for each row",
                                       "int5, a scale for each row",
                                       "int6, a scale for each row",
                                       "int7, a scale for each row",
                                       "int8, a scale for each row"};
    all.push_back({kRow[bits], rounded(w, kColumns, (1 << (bits - 1)) - 1)});
  }
  all.push_back({"int8, one scale", rounded(w, w.size(), 127)});
  all.push_back({"int4, one scale", rounded(w, w.size(), 7)});
  all.push_back({"int8, a scale for each column",
                 transposed(rounded(transposed(w, kRows), kRows, 127), kColumns)});
  all.push_back({"int8, blocks of 32", rounded(w, 32, 127)});
  all.push_back({"int6, blocks of 16", rounded(w, 16, 31)});
  all.push_back({"int4, blocks of 64", rounded(w, 64, 7)});
  all.push_back({"int4 with an offset, blocks of 32", with_offset(w, 32, 15)});
  all.push_back({"nf4, blocks of 64", on_book(w, 64, levels_of("nf4"))});
  all.push_back({"fp4, blocks of 64", on_book(w, 64, levels_of("fp4"))});
  all.push_back({"f4_e2m1, blocks of 32", on_book(w, 32, levels_of("f4_e2m1"))});
  all.push_back({"f4_e2m1, blocks of 32", on_book(w, 32, levels_of("f4_e2m1"), true)});
  all.push_back({"f8_e4m3, a scale for each row", on_book(w, kColumns, levels_of("f8_e4m3"))});
  return all;
}

// planted: grids of 2 to 8 bits per tensor, row, column and block, NF4, FP4, e2m1, fp8
TEST(QuantizationAnalysis, FindsEachScheme) {
  for (const Planted& each : planted(11))
    EXPECT_EQ(grid_of(f32_view(kShape, each.values)), each.what);
}

// planted: the same values stored as f16 and bf16 keep their number of bits
// edge: after rounding to bf16, fine steps fit what lies on coarse ones in smaller groups
TEST(QuantizationAnalysis, SeesTheGridThroughStorage) {
  for (const Planted& each : planted(12)) {
    EXPECT_EQ(grid_of(stored_in(DType::f16, each.values, kShape)), each.what) << "f16";
    EXPECT_EQ(grid_of(stored_in(DType::bf16, each.values, kShape)), each.what) << "bf16";
  }
}

// edge: weights that were never quantized, half of them pruned, or only cast: no grid
TEST(QuantizationAnalysis, FindsNoGridWhereThereIsNone) {
  for (const unsigned seed : {1U, 2U, 3U, 4U}) {
    std::vector<float> w = weights(seed), half = w, most = w;
    for (std::size_t i = 0; i < w.size(); ++i) {
      if (std::abs(w[i]) < 0.015F) half[i] = 0;
      if (std::abs(w[i]) < 0.06F) most[i] = 0;
    }
    EXPECT_EQ(grid_of(f32_view(kShape, w)), "none");
    EXPECT_EQ(grid_of(as_bf16(w, kShape)), "none");
    EXPECT_EQ(grid_of(stored_in(DType::f16, w, kShape)), "none");
    EXPECT_EQ(grid_of(f32_view(kShape, half)), "none");
    EXPECT_EQ(grid_of(f32_view(kShape, most)), "none");
    EXPECT_EQ(grid_of(as_bf16(half, kShape)), "none");
  }
}

TEST(QuantizationAnalysis, SaysSchemeBitsAndNoise) {
  const std::vector<float> w = weights(1);
  const Model a = Model().add("w", kShape, w);
  const Answer half =
      answer_to(analyses::quantization_analysis, a, Model().add("w", as_bf16(w, kShape)));
  EXPECT_EQ(text_of(half, "scheme"), "bf16");
  EXPECT_EQ(text_of(half, "bits_per_weight_b"), "16");
  EXPECT_NEAR(number_of(half, "sqnr_db"), 55.5, 1.5);
  const Answer four = answer_to(analyses::quantization_analysis, a,
                                Model().add("w", stored_in(DType::f16, rounded(w, 32, 7), kShape)));
  EXPECT_EQ(text_of(four, "scheme"), "int4, blocks of 32");
  EXPECT_EQ(text_of(four, "bits_per_weight_b"), "4");
  EXPECT_NEAR(number_of(four, "sqnr_db"), 20, 2);
  const Answer same = answer_to(analyses::quantization_analysis, a, a);
  EXPECT_EQ(text_of(same, "scheme"), "none");
}

// unknown: a change as large as rounding that fits no code book: fine-tuning, or another basis
TEST(QuantizationAnalysis, DoesNotKnowWhatFitsNoBook) {
  const std::vector<float> w = weights(1);
  const Model a = Model().add("w", kShape, w);
  const Model tuned = Model().add("w", kShape, plus(w, times(weights(2), 0.1F)));
  const Answer answer = answer_to(analyses::quantization_analysis, a, tuned);
  EXPECT_EQ(text_of(answer, "scheme"), "unknown");
  EXPECT_EQ(text_of(answer, "not_told"), "1");
  // Less than one bit is left of A, or more than nine are: that is no rounding.
  const Model other = Model().add("w", kShape, weights(3));
  EXPECT_EQ(text_of(answer_to(analyses::quantization_analysis, a, other), "scheme"), "none");
  const Model near = Model().add("w", kShape, plus(w, times(weights(2), 1e-4F)));
  EXPECT_EQ(text_of(answer_to(analyses::quantization_analysis, a, near), "scheme"), "none");
}

// unknown: weights that were tuned and stored in 16 bits: the bits of the type are no rounding of A
TEST(QuantizationAnalysis, DoesNotCallTuningACast) {
  const std::vector<float> w = weights(1);
  const Model a = Model().add("w", kShape, w);
  const Model tuned = Model().add("w", as_bf16(plus(w, times(weights(2), 0.1F)), kShape));
  EXPECT_EQ(text_of(answer_to(analyses::quantization_analysis, a, tuned), "scheme"), "unknown");
}

// edge: matrices that fit no book beside norms that were cast, and values that were only cast
TEST(QuantizationAnalysis, KeepsCastsApart) {
  const std::vector<float> w = weights(1),
                           norm = plus(times(noise(192, 5), 0.1F), std::vector<float>(192, 1.0F));
  const Model a = Model().add("w", kShape, w).add("norm", {192}, norm);
  const auto scheme = [&](const Model& b) {
    return text_of(answer_to(analyses::quantization_analysis, a, b), "scheme");
  };
  EXPECT_EQ(scheme(Model()
                       .add("w", stored_in(DType::f16, plus(w, times(weights(2), 0.1F)), kShape))
                       .add("norm", stored_in(DType::f16, norm, {192}))),
            "unknown");
  EXPECT_EQ(scheme(Model()
                       .add("w", kShape, values_of(as_bf16(w, kShape)))
                       .add("norm", {192}, values_of(as_bf16(norm, {192})))),
            "none");
  EXPECT_EQ(scheme(Model()
                       .add("w", kShape, rounded(w, kColumns, 7))
                       .add("norm", {192}, plus(norm, times(noise(192, 6), 0.01F)))),
            "int4, a scale for each row");
}

// unknown: the noise of integers without their scales; the rows are fitted instead
TEST(QuantizationAnalysis, FitsIntegersWhoseScaleIsElsewhere) {
  const std::vector<float> w = noise(64 * 64, 1);
  std::string bytes;
  for (const float value : w)
    bytes += static_cast<char>(std::lround(std::clamp(value * 30, -127.F, 127.F)));
  const View integers = contiguous_view(DType::i8, {64, 64}, ByteSource(bytes_of(bytes))).value();
  const Model a = Model().add("w", {64, 64}, w), b = Model().add("w", integers);
  const Answer answer = answer_to(analyses::quantization_analysis, a, b);
  EXPECT_EQ(text_of(answer, "scheme"), "i8");
  EXPECT_EQ(text_of(answer, "sqnr_db"), "unknown");
  EXPECT_NEAR(number_of(answer, "worst_sqnr_db"), 40, 3);
  // Levels without a scale are no explosion, and B is no worse for it.
  EXPECT_EQ(text_of(answer_to(analyses::anomaly_detection, a, b), "type"), "none");
  EXPECT_EQ(text_of(answer_to(analyses::deployment_readiness, a, b), "failed"), "0");
}

TEST(QuantizationAnalysis, TakesStoredScalesAtTheirWord) {
  const std::vector<float> w = weights(5);
  std::string levels;
  std::vector<float> scales(kRows);
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t i = 0; i < kColumns; ++i)
      scales[row] = std::max(scales[row], std::abs(w[row * kColumns + i]) / 127);
    for (std::size_t i = 0; i < kColumns; ++i)
      levels += static_cast<char>(std::lround(w[row * kColumns + i] / scales[row]));
  }
  Model b;
  b.add("w", contiguous_view(DType::i8, kShape, ByteSource(bytes_of(levels))).value());
  b.add("w_scale", {kRows, 1}, scales);
  unpack(b.catalog);
  const Model a = Model().add("w", kShape, w);
  const Answer answer = answer_to(analyses::quantization_analysis, a, b);
  EXPECT_EQ(text_of(answer, "scheme"), "i8 with a scale for each row");
  EXPECT_NEAR(number_of(answer, "bits_per_weight_b"), 8 + 32.0 / kColumns, 1e-9);
  EXPECT_NEAR(number_of(answer, "sqnr_db"), 42, 3);
  EXPECT_EQ(text_of(answer_to(analyses::anomaly_detection, a, b), "type"), "none");
}

TEST(QuantizationAnalysis, MedianAndWorstRowAreWhatTheirNamesSay) {
  std::vector<float> a = noise(5 * 64, 1), b = a;
  const float errors[] = {0.1F, 0.01F, 0.02F, 0.03F, 0.04F};
  for (std::size_t i = 0; i < a.size(); ++i) b[i] *= 1 + errors[i / 64];
  const auto all = compared(Model().add("w", {5, 64}, a), Model().add("w", {5, 64}, b));
  const RowNoise noise = row_noise(all->rows[0].views);
  EXPECT_NEAR(*noise.sqnr_min, 20, 0.1);
  EXPECT_NEAR(*noise.sqnr_median, -20 * std::log10(0.03), 0.1);
}

// Two layers in 4 bits, one of which has twice the error.
struct TwoLayers {
  Model a, b;
};
TwoLayers two_layers() {
  const std::vector<float> w = weights(7), v = weights(8);
  TwoLayers both;
  both.a.add("layers.0.mlp.up_proj.weight", kShape, w);
  both.a.add("layers.1.mlp.up_proj.weight", kShape, v);
  both.b.add("layers.0.mlp.up_proj.weight", kShape, rounded(w, kColumns, 7));
  both.b.add("layers.1.mlp.up_proj.weight", kShape, rounded(v, 32, 7));
  return both;
}

// planted: the layer with the larger error ranks first and is the first to be kept in more bits
TEST(QuantizationAnalysis, RanksLayersAndSpendsABudget) {
  const TwoLayers both = two_layers();
  AnalyzeOptions options;
  options.size_growth = 0.6;  // 4 to 8.5 bits for one of two layers of one size: 56 % more.
  const Answer answer = answer_to(analyses::quantization_analysis, both.a, both.b, options);
  EXPECT_EQ(text_of(answer, "worst_tensor"), "layers.0.mlp.up_proj.weight");
  const Listing& keep = list_of(answer, "keep");
  ASSERT_EQ(keep.rows.size(), 1U);
  EXPECT_EQ(cell(keep, 0, "tensor"), "layers.0.mlp.up_proj.weight");
  EXPECT_EQ(cell(keep, 0, "to_bits"), "8.5");
  EXPECT_NEAR(number_of(answer, "size"), 1.0 * kRows * kColumns, 1);
  EXPECT_LT(number_of(answer, "damage_left"), 0.5);
  options.size_growth = 0.1;  // Neither fits.
  EXPECT_TRUE(list_of(answer_to(analyses::quantization_analysis, both.a, both.b, options), "keep")
                  .rows.empty());
  options.size_growth.reset();
  options.size_budget = 1e9;  // Both in 16 bits.
  EXPECT_LT(
      number_of(answer_to(analyses::quantization_analysis, both.a, both.b, options), "damage_left"),
      1e-3);
  EXPECT_EQ(answer.charts.size(), 2U);
}

// planted: with inputs that only use what was rounded well, the other layer is the worse one
TEST(QuantizationAnalysis, MeasuresDamageOnInputs) {
  TwoLayers both = two_layers();
  // Columns 0 to 31 of layer 0 stay exact, and its inputs use no others.
  std::vector<float> kept = values_of(both.b.catalog.tensors[0].view);
  const std::vector<float> exact = values_of(both.a.catalog.tensors[0].view);
  std::vector<float> input = noise(16 * kColumns, 3);
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (i % kColumns < 32) kept[i] = exact[i] * 1.001F;
  for (std::size_t i = 0; i < input.size(); ++i)
    if (i % kColumns >= 32) input[i] = 0;
  both.b.catalog.tensors[0].view = f32_view(kShape, kept);
  Model dump;
  dump.add("layers.0.mlp.up_proj.input", {16, kColumns}, input);
  dump.noise("layers.1.post_attention_layernorm", {1, 16, kColumns}, 4);
  read_places(dump.catalog);
  const auto all = compared(both.a, both.b);
  all->study->set_activations(dump.catalog);
  Answer answer;
  analyses::quantization_analysis.examine(*all->study, answer);
  EXPECT_EQ(text_of(answer, "worst_tensor"), "layers.1.mlp.up_proj.weight");
}

}  // namespace
}  // namespace tensordiff
