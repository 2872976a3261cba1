// Every type of element through the whole tool: dumps and models of it that differ are compared,
// explained and analysed. Counts are checked against a plain walk over the values.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analyze/analysis.h"
#include "pipeline.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr const char* kSteps[] = {"hidden_states", "query",       "key",       "value",
                                  "query_final",   "key_final",   "post_attn", "attn_out",
                                  "attn_weights",  "post_mlp_in", "mlp_out"};
constexpr const char* kWeights[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                                    "self_attn.o_proj", "mlp.gate_proj",    "mlp.up_proj",
                                    "mlp.down_proj"};

// Any bits: numbers of all sizes, and among floats such as are none.
View random_view(DType dtype, const Shape& shape, std::mt19937& generator) {
  if (is_made(dtype)) {
    const View levels = random_view(DType::i8, shape, generator);
    Packed packed{{levels},
                  [](std::span<const Reader> in, uint64_t first, int64_t step, std::size_t count,
                     float* out) {
                    for (std::size_t i = 0; i < count; ++i)
                      out[i] =
                          static_cast<float>(in[0].value(first + i * static_cast<uint64_t>(step)));
                  }};
    return packed_view(dtype, shape, std::move(packed)).value();
  }
  std::string bytes(stored_bytes(dtype, element_count(shape).value()), '\0');
  for (char& byte : bytes) byte = static_cast<char>(generator());
  if (dtype == DType::boolean)
    for (char& byte : bytes) byte &= 1;
  Result<View> view = contiguous_view(dtype, shape, ByteSource(bytes_of(bytes)));
  EXPECT_TRUE(view.ok()) << view.error().message();
  return std::move(view).value();
}

Catalog dump_of(DType dtype, unsigned seed) {
  std::mt19937 generator(seed);
  Catalog catalog;
  for (int layer = 0; layer < 2; ++layer)
    for (const std::string_view step : kSteps)
      catalog.tensors.push_back(
          {fmt::format("{}_{}", layer, step), random_view(dtype, {2, 8, 256}, generator), ""});
  return catalog;
}

Catalog model_of(DType dtype, unsigned seed) {
  std::mt19937 generator(seed);
  Catalog catalog;
  for (int layer = 0; layer < 2; ++layer)
    for (const std::string_view name : kWeights)
      catalog.tensors.push_back({fmt::format("model.layers.{}.{}.weight", layer, name),
                                 random_view(dtype, {16, 256}, generator), ""});
  catalog.tensors.push_back(
      {"model.embed_tokens.weight", random_view(dtype, {32, 256}, generator), ""});
  return catalog;
}

std::vector<double> values_of(const View& view) {
  std::vector<double> values(view.elements());
  Reader::open(view).value().values(0, values.size(), values.data());
  return values;
}

// The counts of a pair of real numbers, one element at a time.
void expect_counts(const Tensor& a, const Tensor& b, const Comparison& found) {
  const std::vector<double> x = values_of(a.view), y = values_of(b.view);
  uint64_t compared = 0, equal = 0, mismatch = 0;
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool both = std::isfinite(x[i]) && std::isfinite(y[i]);
    const bool alike = x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]));
    compared += both;
    equal += both && alike;
    mismatch += !both && !alike;
    if (std::isfinite(x[i])) squares += x[i] * x[i];
  }
  EXPECT_EQ(found.diff.compared, compared);
  EXPECT_EQ(found.diff.equal, equal);
  EXPECT_EQ(found.diff.nonfinite_mismatch, mismatch);
  if (std::isfinite(squares) && squares > 0 && found.a.norm) {
    EXPECT_NEAR(*found.a.norm / std::sqrt(squares), 1, 1e-5);
  }
}

bool is_real(const Tensor& tensor) {
  return !is_complex(tensor.view.dtype) && !is_undecoded(tensor.view.dtype);
}

void expect_pairs(const Pairing& pairing, const Report& report) {
  for (std::size_t i = 0; i < report.pairs.size(); ++i) {
    const PairRow& row = report.pairs[i];
    SCOPED_TRACE(row.a.name);
    EXPECT_EQ(row.a.name, row.b.name);
    const Pair& pair = pairing.matching.pairs[i];
    const Tensor &a = pairing.a.tensors[pair.a], &b = pairing.b.tensors[pair.b];
    if (is_undecoded(a.view.dtype) != is_undecoded(b.view.dtype)) continue;
    // Random bits of 4,096 elements are not the same by chance. The tolerance of types that share a
    // scale is a step of the largest value, and scales are random as well.
    const bool scaled = info(a.view.dtype).block > 1 || info(b.view.dtype).block > 1;
    EXPECT_GE(row.comparison.status, scaled ? Status::close : Status::different) << row.message;
    EXPECT_LT(row.comparison.status, Status::incomparable) << row.message;
    if (is_real(a) && is_real(b)) expect_counts(a, b, row.comparison);
  }
}

void expect_report(Catalog a, Catalog b) {
  const std::size_t count = a.tensors.size();
  Request request;
  request.analyze.wanted.assign(std::begin(analyses::kAll), std::end(analyses::kAll));
  request.diagnose.explain = true;
  const Result<Pairing> pairing = pair_up(std::move(a), std::move(b), request);
  ASSERT_TRUE(pairing.ok()) << pairing.error().message();
  const Result<Report> report = compare_pairs(pairing.value(), pairing.value().report, request);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report.value().pairs.size(), count);
  EXPECT_EQ(report.value().analyses.size(), std::size(analyses::kAll));
  expect_pairs(pairing.value(), report.value());
}

// The same bits on both sides are the same, whatever numbers they make.
void expect_identical(const Catalog& catalog) {
  const Result<Pairing> pairing = pair_up(catalog, catalog, Request());
  ASSERT_TRUE(pairing.ok()) << pairing.error().message();
  const Result<Report> report = compare_pairs(pairing.value(), pairing.value().report, Request());
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report.value().pairs.size(), catalog.tensors.size());
  for (const PairRow& row : report.value().pairs)
    EXPECT_LE(row.comparison.status, Status::equal) << row.a.name;
  EXPECT_FALSE(report.value().first_divergence);
}

class EveryDType : public testing::TestWithParam<int> {};

TEST_P(EveryDType, IsComparedAndExplained) {
  const auto dtype = static_cast<DType>(GetParam());
  SCOPED_TRACE(name_of(dtype));
  expect_report(dump_of(dtype, 1), dump_of(dtype, 2));
  expect_report(model_of(dtype, 3), model_of(dtype, 4));
}

TEST_P(EveryDType, IsTheSameAsItself) {
  const auto dtype = static_cast<DType>(GetParam());
  SCOPED_TRACE(name_of(dtype));
  expect_identical(dump_of(dtype, 1));
}

TEST_P(EveryDType, IsComparedWithFloats) {
  const auto dtype = static_cast<DType>(GetParam());
  SCOPED_TRACE(name_of(dtype));
  expect_report(dump_of(dtype, 1), dump_of(DType::f32, 2));
  expect_report(dump_of(DType::c64, 1), dump_of(dtype, 2));
}

INSTANTIATE_TEST_SUITE_P(All, EveryDType, testing::Range(0, static_cast<int>(DType::fp4) + 1));

}  // namespace
}  // namespace tensordiff
