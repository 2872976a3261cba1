#include "match/auxiliary.h"

#include "match/test_catalogs.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

Tensor zeros(const std::string& name, DType dtype, const Shape& shape) {
  const std::string bytes(stored_bytes(dtype, element_count(shape).value()), '\0');
  return {name, contiguous_view(dtype, shape, ByteSource(bytes_of(bytes))).value(), ""};
}

// What a tensor is, beside a weight.
std::string kind_of(const Tensor& tensor) {
  Catalog catalog = catalog_of(Names{"model.layers.0.mlp.up_proj.weight"});
  catalog.tensors.push_back(tensor);
  Catalog other = catalog_of(Names{"up.weight", "down.weight"});
  mark_auxiliary(catalog, other);
  EXPECT_EQ(catalog.tensors[0].auxiliary, "");
  return catalog.tensors[1].auxiliary;
}

TEST(Auxiliary, IsWhatIsNoWeight) {
  const struct {
    std::string name;
    DType dtype;
    Shape shape;
    std::string kind;
  } cases[] = {
      {"optimizer.state.0.exp_avg", DType::f32, {4, 4}, "optimizer state"},
      {"layers.0.w.exp_avg_sq", DType::f32, {4, 4}, "optimizer state"},
      {"bert/pooler/dense/kernel/adam_m", DType::f32, {4, 4}, "optimizer state"},
      {"bn1.num_batches_tracked", DType::i64, {}, "counter"},
      {"/layer.0/attention/Constant_5/value", DType::f32, {1}, "graph constant"},
      {"/layer.0/attention/Constant_6/value", DType::f32, {8, 8}, "graph constant"},
      {"optimizer/target/encoder/layers_0/mlp/wi/kernel", DType::f32, {4, 4}, ""},
      {"optimizer/state/param_states/encoder/mlp/wi/kernel/m",
       DType::f32,
       {4, 4},
       "optimizer state"},
      {"logit_scale", DType::f32, {}, ""},
      {"decoder.version", DType::f32, {1}, "counter"},
      {"bert.embeddings.position_ids", DType::i64, {1, 8}, "position table"},
      {"model.layers.0.self_attn.rotary_emb.inv_freq", DType::f32, {8}, "position table"},
      {"rope.freqs", DType::f32, {8}, "position table"},
      {"rope_freqs.weight", DType::f32, {8}, "position table"},
      {"layers.0.blocks.1.attn_mask", DType::f32, {4, 4, 4}, "mask"},
      {"h.0.attn.bias", DType::f32, {1, 1, 8, 8}, "mask"},
      {"h.0.attn.bias", DType::f32, {8}, ""},
      {"x.input_scale", DType::f32, {}, "quantization parameter"},
      {"dims.n_mels", DType::i64, {}, "setting"},
      {"lr", DType::f64, {}, "setting"},
      {"logit_scale", DType::f32, {}, ""},
      {"indices", DType::i64, {4}, "integers"},
      {"x.weight", DType::i8, {4, 4}, ""},
      {"x.qweight", DType::i32, {4, 4}, ""},
      {"x.weight", DType::f32, {4, 4}, ""},
      {"masking.weight", DType::f32, {4, 4}, ""},
      {"", DType::f32, {4}, ""},
  };
  for (const auto& [name, dtype, shape, kind] : cases)
    EXPECT_EQ(kind_of(zeros(name, dtype, shape)), kind) << name;
}

// Exporters that fold weights write them as constants, too.
TEST(Auxiliary, AGraphConstantOfManyValuesIsAWeight) {
  const Tensor weight{"/layer.0/Constant_6/value", f32_view({4}, {1, 2, 3, 4}), ""};
  EXPECT_EQ(kind_of(weight), "");
  const Tensor fill{"/layer.0/Constant_6/value", f32_view({4}, {2, 2, 2, 2}), ""};
  EXPECT_EQ(kind_of(fill), "graph constant");
}

TEST(Auxiliary, IsNothingInADump) {
  Catalog catalog = catalog_of(Names{"0_query", "attention_mask"});
  catalog.tensors.push_back(zeros("input_ids", DType::i64, {4}));
  Catalog other = catalog_of(Names{"0_query"});
  mark_auxiliary(catalog, other);
  for (const Tensor& tensor : catalog.tensors) EXPECT_EQ(tensor.auxiliary, "") << tensor.name;
}

// A counter has a partner by its name only, and no weight takes its place.
TEST(Auxiliary, IsPairedByItsNameAlone) {
  Catalog a = catalog_of({{"w.weight", {4, 4}, 1}, {"old.position_ids", {4, 4}, 2}});
  Catalog b = catalog_of({{"w.weight", {4, 4}, 1}, {"x.y", {4, 4}, 2}});
  a.tensors[1].auxiliary = "position table";
  EXPECT_EQ(pairs_text(match(a, b).value(), a, b), Names{"w.weight=w.weight"});
  b.tensors[1].name = "old.position_ids";
  b.tensors[1].auxiliary = "position table";
  EXPECT_EQ(match(a, b).value().pairs.size(), 2);
}

}  // namespace
}  // namespace tensordiff
