// The strategies for names that differ, each with what it pairs and what it leaves alone.

#include <algorithm>
#include <cmath>

#include "match/pairs_file.h"
#include "match/signature.h"
#include "match/test_catalogs.h"
#include "match/words.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

TEST(Prefix, Pairs) {
  const struct {
    Names a, b, pairs;
  } cases[] = {
      {{"norm", "x"}, {"model.norm", "y"}, {"norm=model.norm"}},
      {{"module._orig_mod.w", "x"}, {"w", "y"}, {"module._orig_mod.w=w"}},
      {{"student.w", "student.v"}, {"w", "v"}, {"student.w=w", "student.v=v"}},
      {{"norm", "x"}, {"norm2", "y"}, {}},
      {{"norm", "x"}, {"model.norm", "module.norm"}, {}},  // Ambiguous: pairs nothing.
  };
  for (const auto& [a, b, pairs] : cases)
    EXPECT_EQ(pairs_of(matchers::prefix, catalog_of(a), catalog_of(b)), pairs) << a[0];
}

TEST(Conventions, PairsWhatMeansTheSameAndLeavesWhatIsAmbiguous) {
  EXPECT_EQ(
      pairs_of(matchers::conventions, catalog_of(Names{"h.0.ln_1.weight", "h.1.ln_1.weight"}),
               catalog_of(Names{"blk.1.attn_norm.weight", "blk.0.attn_norm.weight"})),
      (Names{"h.0.ln_1.weight=blk.0.attn_norm.weight", "h.1.ln_1.weight=blk.1.attn_norm.weight"}));
  EXPECT_EQ(pairs_of(matchers::conventions, catalog_of(Names{"layers.0.wq", "wte"}),
                     catalog_of(Names{"blk.0.attn_q", "layers.0.q_proj", "embed_tokens"})),
            Names{"wte=embed_tokens"});
}

// TensorRT-LLM calls "fc" what others call the gate. The values tell, for all layers alike.
TEST(Conventions, TakesNoMatrixForTheVectorOfANorm) {
  const std::vector<Named> norm = {{"transformer.layers.0.input_layernorm.weight", {8}, 1},
                                   {"transformer.layers.0.input_layernorm.bias", {8}, 2}};
  const auto pairs = [&](const Shape& weight, const Shape& bias) {
    const std::vector<Named> other = {{"transformer_blocks.0.norm1.weight", weight, 3},
                                      {"transformer_blocks.0.norm1.bias", bias, 4}};
    return pairs_of(matchers::conventions, catalog_of(norm), catalog_of(other)).size();
  };
  EXPECT_EQ(pairs({8}, {8}), 2U);
  EXPECT_EQ(pairs({48, 4}, {48}), 0U);  // The projection of an adaptive norm.
}

TEST(Conventions, AsksTheValuesWhichHalfOfAGatedMlpIsMeant) {
  const auto ours = [](unsigned last) {
    return catalog_of({Named{"layers.0.mlp.gate_proj.weight", {8, 8}, 1},
                       Named{"layers.0.mlp.up_proj.weight", {8, 8}, 2},
                       Named{"layers.1.mlp.gate_proj.weight", {8, 8}, last},
                       Named{"layers.1.mlp.up_proj.weight", {8, 8}, 4}});
  };
  const auto theirs = [](unsigned fc, unsigned gate) {
    return catalog_of({Named{"layers.0.mlp.fc.weight", {8, 8}, fc},
                       Named{"layers.0.mlp.gate.weight", {8, 8}, gate},
                       Named{"layers.1.mlp.fc.weight", {8, 8}, 8},
                       Named{"layers.1.mlp.gate.weight", {8, 8}, 9}});
  };
  EXPECT_EQ(pairs_of(matchers::conventions, ours(3), theirs(1, 2)),
            (Names{"layers.0.mlp.gate_proj.weight=layers.0.mlp.fc.weight",
                   "layers.0.mlp.up_proj.weight=layers.0.mlp.gate.weight",
                   "layers.1.mlp.gate_proj.weight=layers.1.mlp.fc.weight",
                   "layers.1.mlp.up_proj.weight=layers.1.mlp.gate.weight"}));
  EXPECT_EQ(pairs_of(matchers::conventions, theirs(2, 1), ours(3))[0],
            "layers.0.mlp.fc.weight=layers.0.mlp.up_proj.weight");
}

// BERT's norms stand behind attention and mlp; a port may call the first that of the mlp, which
// reads it, and the second that of the attention of the next layer.
// Megatron's linear_fc1 holds gate and up, which others call gate_up_proj.
TEST(Conventions, PairsGateAndUpInOneByTheirSize) {
  const Catalog megatron = catalog_of({Named{"decoder.layers.0.mlp.linear_fc1", {4, 16}, 1}});
  EXPECT_EQ(pairs_of(matchers::conventions, megatron,
                     catalog_of({Named{"model.layers.0.mlp.gate_up_proj", {4, 16}, 2}})),
            Names{"decoder.layers.0.mlp.linear_fc1=model.layers.0.mlp.gate_up_proj"});
  EXPECT_EQ(pairs_of(matchers::conventions, megatron,
                     catalog_of({Named{"model.layers.0.mlp.gate_up_proj", {4, 32}, 2}})),
            Names{});
}

TEST(Conventions, AsksTheValuesWhichNormIsMeant) {
  const auto bert = [](unsigned first, unsigned second) {
    return catalog_of({Named{"encoder.layer.0.attention.output.LayerNorm", {8, 8}, first},
                       Named{"encoder.layer.0.output.LayerNorm", {8, 8}, second}});
  };
  const Catalog port =
      catalog_of({Named{"attn_norm-0", {8, 8}, 1}, Named{"ffn_norm-0", {8, 8}, 2}});
  const Names crossed = {"encoder.layer.0.attention.output.LayerNorm=ffn_norm-0",
                         "encoder.layer.0.output.LayerNorm=attn_norm-0"};
  const Names straight = {"encoder.layer.0.attention.output.LayerNorm=attn_norm-0",
                          "encoder.layer.0.output.LayerNorm=ffn_norm-0"};
  EXPECT_EQ(pairs_of(matchers::conventions, bert(2, 1), port), crossed);
  EXPECT_EQ(pairs_of(matchers::conventions, bert(1, 2), port), straight);
  EXPECT_EQ(pairs_of(matchers::conventions, bert(3, 4), port), straight);

  // Names that can mean one thing only are not asked: there it would be a mistake.
  const auto llama = [](unsigned first, unsigned second) {
    return catalog_of({Named{"model.layers.0.input_layernorm", {8, 8}, first},
                       Named{"model.layers.0.pre_feedforward_layernorm", {8, 8}, second}});
  };
  EXPECT_EQ(pairs_of(matchers::conventions, llama(2, 1), port)[0],
            "model.layers.0.input_layernorm=attn_norm-0");
}

// T5 and its like: the same parts in both towers.
TEST(Conventions, TellsAnEncoderFromADecoder) {
  EXPECT_EQ(pairs_of(matchers::conventions,
                     catalog_of(Names{"encoder.block.0.layer.0.SelfAttention.q.weight",
                                      "decoder.block.0.layer.0.SelfAttention.q.weight"}),
                     catalog_of(Names{"dec.blk.0.attn_q.weight", "enc.blk.0.attn_q.weight"})),
            (Names{"encoder.block.0.layer.0.SelfAttention.q.weight=enc.blk.0.attn_q.weight",
                   "decoder.block.0.layer.0.SelfAttention.q.weight=dec.blk.0.attn_q.weight"}));
  // A side that has one of them only need not say which.
  EXPECT_EQ(pairs_of(matchers::conventions, catalog_of(Names{"bert.encoder.layer.0.output.dense"}),
                     catalog_of(Names{"layers.0.mlp.fc2"})),
            Names{"bert.encoder.layer.0.output.dense=layers.0.mlp.fc2"});
}

TEST(Fused, PairsEachPart) {
  const Catalog fused =
      catalog_of({{"h.0.attn.c_attn", {4, 12}, 1}, {"h.0.mlp.gate_up", {4, 8}, 2}});
  const Catalog separate = catalog_of(
      Names{"layers.0.v", "layers.0.q", "layers.0.k", "layers.0.mlp.gate", "layers.0.mlp.up"});
  EXPECT_EQ(pairs_of(matchers::fused, fused, separate),
            (Names{"h.0.attn.c_attn[q]=layers.0.q", "h.0.attn.c_attn[k]=layers.0.k",
                   "h.0.attn.c_attn[v]=layers.0.v", "h.0.mlp.gate_up[gate]=layers.0.mlp.gate",
                   "h.0.mlp.gate_up[up]=layers.0.mlp.up"}));
  EXPECT_EQ(pairs_of(matchers::fused, separate, fused).size(), 5U);
  // Too small to hold them.
  EXPECT_EQ(pairs_of(matchers::fused, catalog_of({{"h.0.attn.c_attn", {4, 8}, 1}}), separate),
            Names{});
}

// llama.cpp has query and key behind RoPE, and value as it was projected.
TEST(Fused, PairsAPartBesideOthersThatWereChangedSince) {
  const Catalog fused = catalog_of({{"layers.0.self_attn.qkv_proj", {4, 16}, 1}});
  const Catalog separate = catalog_of({{"layers.0.self_attn.q_rope", {4, 8}, 2},
                                       {"layers.0.self_attn.k_rope", {4, 4}, 3},
                                       {"layers.0.self_attn.v_proj", {4, 4}, 4}});
  EXPECT_EQ(pairs_of(matchers::fused, fused, separate),
            Names{"layers.0.self_attn.qkv_proj[v]=layers.0.self_attn.v_proj"});
}

// Few heads of keys, each on two of four ranks: as large as one copy of each.
TEST(Fused, CountsWhatSeveralRanksHoldOnce) {
  Catalog separate;
  const auto add = [&](std::string name, const std::vector<unsigned>& seeds) {
    Tensor tensor{std::move(name), noise_view({4, 8}, seeds[0]), ""};
    for (const unsigned seed : seeds) tensor.shards.push_back(noise_view({4, 8}, seed));
    separate.tensors.push_back(std::move(tensor));
  };
  add("layers.0.wq", {1, 2, 3, 4});
  add("layers.0.wk", {5, 5, 6, 6});
  add("layers.0.wv", {7, 7, 8, 8});
  read_places(separate);
  const Catalog fused = catalog_of({Named{"h.0.attn.c_attn", {32, 8}, 9}});
  MatchOptions options;
  options.strategies = {"fused"};
  const Result<Matching> matching = match(fused, separate, options);
  ASSERT_EQ(matching.value().pairs.size(), 3U);
  EXPECT_EQ(matching.value().pairs[0].section_a->elements, (std::vector<uint64_t>{128, 64, 64}));
}

TEST(Fused, PairsStackedExpertsWithGateAndUpInOne) {
  const Catalog stacked = catalog_of({{"layers.0.mlp.experts.gate_up_proj.weight", {2, 12, 4}, 1}});
  const Catalog single = catalog_of({{"layers.0.mlp.experts.0.gate_proj.weight", {6, 4}, 2},
                                     {"layers.0.mlp.experts.0.up_proj.weight", {6, 4}, 3},
                                     {"layers.0.mlp.experts.1.gate_proj.weight", {6, 4}, 4},
                                     {"layers.0.mlp.experts.1.up_proj.weight", {6, 4}, 5}});
  const std::string whole = "layers.0.mlp.experts.gate_up_proj.weight";
  const std::string part = "layers.0.mlp.experts.";
  EXPECT_EQ(pairs_of(matchers::fused, stacked, single),
            (Names{whole + "[0.gate]=" + part + "0.gate_proj.weight",
                   whole + "[0.up]=" + part + "0.up_proj.weight",
                   whole + "[1.gate]=" + part + "1.gate_proj.weight",
                   whole + "[1.up]=" + part + "1.up_proj.weight"}));
}

TEST(Fused, PairsStackedLayers) {
  EXPECT_EQ(pairs_of(matchers::fused, catalog_of({{"decoder.layers.mlp.wo.kernel", {5, 2, 4}, 1}}),
                     catalog_of({{"layers.0.mlp.down_proj.weight", {4, 5}, 2},
                                 {"layers.1.mlp.down_proj.weight", {4, 5}, 3}})),
            (Names{"decoder.layers.mlp.wo.kernel[0]=layers.0.mlp.down_proj.weight",
                   "decoder.layers.mlp.wo.kernel[1]=layers.1.mlp.down_proj.weight"}));
}

TEST(Fused, PairsStackedExperts) {
  const Catalog stacked = catalog_of({{"layers.0.mlp.experts.down_proj.weight", {2, 4, 4}, 1}});
  const Catalog single = catalog_of(
      Names{"layers.0.mlp.experts.0.down_proj.weight", "layers.0.mlp.experts.1.down_proj.weight"});
  EXPECT_EQ(
      pairs_of(matchers::fused, stacked, single),
      (Names{"layers.0.mlp.experts.down_proj.weight[0]=layers.0.mlp.experts.0.down_proj.weight",
             "layers.0.mlp.experts.down_proj.weight[1]=layers.0.mlp.experts.1.down_proj.weight"}));
}

TEST(Similarity, CountsCommonWordsAndShortForms) {
  const auto alike = [](std::string_view a, std::string_view b) {
    return similarity(name_words(a), name_words(b));
  };
  EXPECT_DOUBLE_EQ(alike("a.proj", "proj_a"), 1);
  EXPECT_DOUBLE_EQ(alike("attention", "attn"), 0.8);
  EXPECT_DOUBLE_EQ(alike("LayerNorm", "layer.norm"), 1);
  EXPECT_DOUBLE_EQ(alike("query", "key"), 0);
  EXPECT_DOUBLE_EQ(alike("", "key"), 0);
  EXPECT_DOUBLE_EQ(alike("proj.proj", "proj"), 2.0 / 3);  // A word answers to one word only.
}

TEST(Fuzzy, PairsOneClearBestOrNone) {
  const struct {
    Names a, b, pairs;
  } cases[] = {
      {{"stem.conv.weight"},
       {"stem_convolution_weight"},
       {"stem.conv.weight=stem_convolution_weight"}},
      {{"conv.1.weight"}, {"convolution.2.weight"}, {}},                     // Other numbers.
      {{"stem.conv.weight"}, {"conv.stem.weight", "stem.weight.conv"}, {}},  // Ambiguous.
      {{"alpha"}, {"omega"}, {}},
  };
  for (const auto& [a, b, pairs] : cases)
    EXPECT_EQ(pairs_of(matchers::fuzzy, catalog_of(a), catalog_of(b)), pairs) << a[0];
  const Catalog a = catalog_of(Names{"conv.weight"}), b = catalog_of(Names{"conv.kernel"});
  EXPECT_EQ(pairs_of(matchers::fuzzy, a, b), Names{});
  EXPECT_EQ(
      pairs_of(matchers::fuzzy, a, b, {.strategies = {}, .pairs = {}, .fuzzy_threshold = 0.5}),
      Names{"conv.weight=conv.kernel"});
}

TEST(ShapeStrategy, PairsUniqueShapesThatNothingSpeaksAgainst) {
  const auto pairs = [](const std::vector<Named>& a, const std::vector<Named>& b) {
    return pairs_of(matchers::shape, catalog_of(a), catalog_of(b));
  };
  EXPECT_EQ(pairs({{"arr_0", {4, 4}, 1}}, {{"1", {4, 4}, 2}}), Names{"arr_0=1"});
  EXPECT_EQ(pairs({{"foo", {4, 4}, 1}}, {{"bar", {4, 4}, 1}}), Names{"foo=bar"});
  EXPECT_EQ(pairs({{"foo", {4, 4}, 1}}, {{"bar", {4, 4}, 2}}), Names{});
  EXPECT_EQ(pairs({{"0", {4}, 1}}, {{"1", {4}, 1}, {"2", {4}, 2}}), Names{});
}

TEST(Signature, SurvivesRoundingAndOrderAndTellsOthersApart) {
  const View view = noise_view({40, 50}, 1);
  std::vector<float> rounded = values_of(view);
  for (float& value : rounded) value = std::nearbyint(value * 256) / 256;
  std::shuffle(rounded.begin(), rounded.end(), std::mt19937(7));
  const auto signature = [](const View& v) { return signature_of({"", v, ""}, 1 << 20); };
  EXPECT_LT(distance(signature(view), signature(f32_view({2000}, rounded))), 0.02);
  for (unsigned seed = 2; seed < 50; ++seed)
    EXPECT_GT(distance(signature(view), signature(noise_view({40, 50}, seed))), 0.15) << seed;
  EXPECT_EQ(signature_of({"", view, ""}, 100).elements, 0U);
  EXPECT_TRUE(std::isinf(
      distance(signature(f32_view({3}, {1, 1, 1})), signature(f32_view({3}, {1, 1, 1})))));
}

TEST(Value, PairsByValuesAndReadsThemAsARule) {
  // Layer 1 of b holds other values: only the rule can pair it.
  const Catalog a =
      catalog_of({{"h.0.foo", {20, 30}, 1}, {"h.1.foo", {20, 30}, 2}, {"z", {20, 30}, 3}});
  const Catalog b =
      catalog_of({{"L.1.bar", {20, 30}, 9}, {"q", {20, 30}, 3}, {"L.0.bar", {20, 30}, 1}});
  EXPECT_EQ(pairs_of(matchers::value, a, b), (Names{"h.0.foo=L.0.bar", "h.1.foo=L.1.bar", "z=q"}));
}

// Of one distribution, but other values: chance brings the signatures of some of them near.
TEST(Value, PairsNothingByChance) {
  for (unsigned seed = 0; seed < 300; ++seed)
    EXPECT_EQ(pairs_of(matchers::value, catalog_of({Named{"first", {100}, 2 * seed}}),
                       catalog_of({Named{"second", {10, 10}, 2 * seed + 1}})),
              Names{})
        << seed;
}

TEST(Value, PairsNothingWhereTwoHoldTheSame) {
  const Catalog a = catalog_of({{"x", {20, 30}, 1}});
  EXPECT_EQ(pairs_of(matchers::value, a, catalog_of({{"p", {20, 30}, 1}, {"q", {20, 30}, 1}})),
            Names{});
}

TEST(Manual, PairsWhatTheUserSaid) {
  const Catalog a = catalog_of(Names{"x", "y"}), b = catalog_of(Names{"p", "q"});
  EXPECT_EQ(pairs_of(matchers::manual, a, b, {.strategies = {}, .pairs = {{"x", "q"}}}),
            Names{"x=q"});
  const Result<Matching> missing = match(a, b, {.strategies = {"manual"}, .pairs = {{"x", "z"}}});
  EXPECT_EQ(missing.value().notes, Names{"the pair 'x' and 'z' was not made: B has no such tensor, "
                                         "or it is in another pair"});
}

// As the report calls the parts of fused tensors, so that what was saved can be read.
TEST(Manual, PairsPartsAndTiedTensors) {
  const Catalog whole = catalog_of({{"qkv", {12, 4}, 1}, {"embed", {4, 4}, 2}});
  const Catalog apart = catalog_of({{"v", {4, 4}, 3},
                                    {"q", {4, 4}, 4},
                                    {"k", {4, 4}, 5},
                                    {"embed", {4, 4}, 6},
                                    {"head", {4, 4}, 7}});
  const MatchOptions options{.strategies = {"manual"},
                             .pairs = {{"qkv[v]", "v"},
                                       {"qkv[q]", "q"},
                                       {"qkv[k]", "k"},
                                       {"embed", "embed"},
                                       {"embed", "head"}}};
  const Result<Matching> matching = match(whole, apart, options);
  EXPECT_EQ(pairs_text(matching.value(), whole, apart),
            (Names{"qkv[q]=q", "qkv[k]=k", "qkv[v]=v", "embed=embed", "embed=head"}));
  EXPECT_EQ(matching.value().pairs[2].section_a->elements, (std::vector<uint64_t>{16, 16, 16}));
  EXPECT_TRUE(matching.value().notes.empty());
}

TEST(Tied, PairsAnEmbeddingThatOneSideStoresOnce) {
  const Catalog both =
      catalog_of({{"model.embed_tokens.weight", {40, 8}, 1}, {"lm_head.weight", {40, 8}, 1}});
  const Catalog once = catalog_of({{"token_embd.weight", {40, 8}, 1}});
  const Catalog head = catalog_of({{"output.weight", {40, 8}, 1}});
  const auto paired = [](const Catalog& a, const Catalog& b) {
    return pairs_text(match(a, b).value(), a, b);
  };
  EXPECT_EQ(paired(both, once), (Names{"model.embed_tokens.weight=token_embd.weight",
                                       "lm_head.weight=token_embd.weight"}));
  EXPECT_EQ(paired(once, both), (Names{"token_embd.weight=model.embed_tokens.weight",
                                       "token_embd.weight=lm_head.weight"}));
  EXPECT_EQ(paired(both, head),
            (Names{"model.embed_tokens.weight=output.weight", "lm_head.weight=output.weight"}));
  EXPECT_EQ(paired(once, head), Names{"token_embd.weight=output.weight"});
}

TEST(Tied, LeavesAHeadThatWasLostAlone) {
  const Catalog both =
      catalog_of({{"model.embed_tokens.weight", {40, 8}, 1}, {"lm_head.weight", {40, 8}, 2}});
  const Catalog once = catalog_of({{"token_embd.weight", {40, 8}, 1}});
  EXPECT_EQ(pairs_of(matchers::tied, both, once), Names{"model.embed_tokens.weight=token_embd."
                                                        "weight"});
  EXPECT_EQ(match(both, once).value().only_a.size(), 1U);
  EXPECT_EQ(match(both, both).value().pairs.size(), 2U);
}

// An encoder and a decoder with a table each, of which one has other values than it should.
TEST(Tied, PairsBothTablesWithTheOnlyOne) {
  const Catalog once = catalog_of({{"model.shared.weight", {40, 8}, 1}});
  const Catalog both = catalog_of(
      {{"encoder.embed_tokens.weight", {40, 8}, 2}, {"decoder.embed_tokens.weight", {40, 8}, 1}});
  Names pairs = pairs_text(match(once, both).value(), once, both);
  std::ranges::sort(pairs);
  EXPECT_EQ(pairs, (Names{"model.shared.weight=decoder.embed_tokens.weight",
                          "model.shared.weight=encoder.embed_tokens.weight"}));
}

TEST(PairsFile, ReadsJsonAndSimpleYaml) {
  const std::vector<NamePair> pairs = {{"a.b", "c"}, {"d: e", "f"}};
  for (const char* text :
       {R"({"a.b": "c", "d: e": "f"})", R"([["a.b", "c"], {"a": "d: e", "b": "f"}])",
        "# comment\na.b: c  # why\n\n\"d: e\": 'f'\n", "- a.b: c\n- \"d: e\": f\r\n"}) {
    const Result<std::vector<NamePair>> read = parse_pairs(text);
    ASSERT_TRUE(read.ok()) << text << read.error().message();
    EXPECT_EQ(read.value(), pairs) << text;
  }
  EXPECT_EQ(parse_pairs(pairs_text(pairs)).value(), pairs);
  EXPECT_EQ(parse_pairs("\na b\n").error().message(),
            "line 2: not of the form 'name in A: name in B'");
  EXPECT_EQ(parse_pairs("\"a: b").error().message(), "line 1: a quote is not closed");
  EXPECT_EQ(parse_pairs("a: 'b' c").error().message(), "line 1: something follows the second name");
  EXPECT_EQ(parse_pairs("[[\"a\"]]").error().message(), "a pair is not of two names");
}

}  // namespace
}  // namespace tensordiff
