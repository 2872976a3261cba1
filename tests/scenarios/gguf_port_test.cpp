// A checkpoint of Hugging Face against its conversions to GGUF: the same model, quantised.

#include <gtest/gtest.h>

#include <filesystem>

#include "formats/test_files.h"
#include "pipeline.h"

namespace tensordiff {
namespace {

Report compare_with(std::string_view conversion) {
  const std::filesystem::path folder = test_files::data_path("../gguf");
  Request request;
  request.a = (folder / "port_hf.safetensors").string();
  request.b = (folder / conversion).string();
  Result<Report> report = compare_models(request);
  EXPECT_TRUE(report.ok()) << report.error().message();
  return report.ok() ? std::move(report).value() : Report();
}

struct Conversion {
  std::string_view file;
  double error_max;  // What the type may leave, as rel_l2.
};

TEST(GgufPort, PairsFullyAndDiffersByQuantisationOnly) {
  for (const auto& [file, error_max] :
       {Conversion{"port_f16.gguf", 0}, {"port_q8_0.gguf", 0.008}, {"port_q4_k.gguf", 0.12}}) {
    SCOPED_TRACE(file);
    const Report report = compare_with(file);
    EXPECT_EQ(report.pairs.size(), 12U);
    EXPECT_TRUE(report.only_a.empty());
    EXPECT_TRUE(report.only_b.empty());
    for (const PairRow& row : report.pairs) {
      SCOPED_TRACE(row.a.name);
      EXPECT_LE(row.comparison.status, Status::close);
      EXPECT_LE(row.comparison.diff.rel_l2.value_or(1), error_max);
    }
    ASSERT_FALSE(report.notes.empty());
    EXPECT_EQ(report.notes.back(),
              "conversion: rows in the other RoPE order (heads of 16, halves in A): 2 tensors "
              "(such as blk.#.attn_k.weight)");
    EXPECT_NE(report.summary.verdict, Conclusion::different);
  }
}

TEST(GgufPort, ToleranceIsAStepOfTheLargestValue) {
  const Report report = compare_with("port_q4_k.gguf");
  for (const PairRow& row : report.pairs)
    if (row.b.dtype == DType::q4_k) {
      EXPECT_GT(row.comparison.diff.tolerance.atol, 0);
      EXPECT_LT(row.comparison.diff.tolerance.atol, 0.02);
    }
}

}  // namespace
}  // namespace tensordiff
