// Every type of element through the whole tool: dumps and models of it that differ are compared,
// explained and analysed. What comes out is tested elsewhere; here nothing may break on the way.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "analyze/analysis.h"
#include "pipeline.h"

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
}

class EveryDType : public testing::TestWithParam<int> {};

TEST_P(EveryDType, IsComparedAndExplained) {
  const auto dtype = static_cast<DType>(GetParam());
  SCOPED_TRACE(name_of(dtype));
  expect_report(dump_of(dtype, 1), dump_of(dtype, 2));
  expect_report(model_of(dtype, 3), model_of(dtype, 4));
}

TEST_P(EveryDType, IsComparedWithFloats) {
  const auto dtype = static_cast<DType>(GetParam());
  SCOPED_TRACE(name_of(dtype));
  expect_report(dump_of(dtype, 1), dump_of(DType::f32, 2));
  expect_report(dump_of(DType::c64, 1), dump_of(dtype, 2));
}

INSTANTIATE_TEST_SUITE_P(All, EveryDType, testing::Range(0, static_cast<int>(DType::iq3_s) + 1));

}  // namespace
}  // namespace tensordiff
