#include <algorithm>
#include <chrono>
#include <set>

#include "match/matcher.h"
#include "naming/naming.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

using Names = std::vector<std::string>;

Catalog catalog_of(const Names& names) {
  Catalog catalog;
  for (const std::string& name : names) catalog.tensors.push_back({name, counting_view({2}), ""});
  read_places(catalog);
  return catalog;
}

// Pairs as "a=b (strategy)", in display order.
Names pairs_of(const Catalog& a, const Catalog& b, const Matching& matching) {
  Names result;
  for (const Pair& pair : matching.pairs)
    result.push_back(fmt::format("{}={} ({})", a.tensors[pair.a].name, b.tensors[pair.b].name,
                                 pair.matched_by->name));
  return result;
}

Matching matched(const Catalog& a, const Catalog& b, const MatchOptions& options = {}) {
  Result<Matching> matching = match(a, b, options);
  EXPECT_TRUE(matching.ok());
  return std::move(matching).value();
}

Names pairs_of(const Names& a, const Names& b) {
  const Catalog left = catalog_of(a);
  const Catalog right = catalog_of(b);
  return pairs_of(left, right, matched(left, right));
}

TEST(Match, PairsNames) {
  const struct {
    Names a, b, pairs;
  } cases[] = {
      {{}, {}, {}},
      {{"w"}, {}, {}},
      {{"w", "v"}, {"v", "w", "u"}, {"w=w (exact)", "v=v (exact)"}},
      {{"0_query"}, {"0_query"}, {"0_query=0_query (layer-stage)"}},
      {{"0_query"}, {"0_key"}, {}},
      {{"0_query"}, {"00_query.npy"}, {"0_query=00_query.npy (layer-stage)"}},
      {{"3_query_0", "3_query_1"},
       {"3_query_1", "3_query_0"},
       {"3_query_0=3_query_0 (layer-stage)", "3_query_1=3_query_1 (layer-stage)"}},
      // The folder that a whole dump lies in does not matter.
      {{"hf/0_query", "hf/1_query"},
       {"port/out/0_query", "port/out/1_query"},
       {"hf/0_query=port/out/0_query (layer-stage)", "hf/1_query=port/out/1_query (layer-stage)"}},
      {{"0_query"}, {"rank_0/0_query"}, {"0_query=rank_0/0_query (layer-stage)"}},
      {{"0_query"}, {"dump.0_query"}, {"0_query=dump.0_query (layer-stage)"}},
      // Folders that both have do.
      {{"decode/0_query", "prefill/0_query"},
       {"prefill/0_query", "decode/0_query"},
       {"decode/0_query=decode/0_query (layer-stage)",
        "prefill/0_query=prefill/0_query (layer-stage)"}},
      {{"x/decode/0_query", "x/prefill/0_query"},
       {"prefill.0_query", "decode.0_query"},
       {"x/decode/0_query=decode.0_query (layer-stage)",
        "x/prefill/0_query=prefill.0_query (layer-stage)"}},
      {{"decode/0_query", "prefill/0_key"}, {"decode/0_key", "prefill/0_query"}, {}},
      {{"decode/0_query", "prefill/0_query"},
       {"prefill/0_query"},
       {"prefill/0_query=prefill/0_query (layer-stage)"}},
      // More than one could be meant: none is paired.
      {{"0_query"}, {"rank_0/0_query", "rank_1/0_query"}, {}},
      {{"0_query", "00_query"}, {"0_query"}, {"0_query=0_query (exact)"}},
      // What is not a stage goes by its name, after what is.
      {{"norm.weight", "0_query"},
       {"0_query", "norm.weight"},
       {"0_query=0_query (layer-stage)", "norm.weight=norm.weight (exact)"}},
      // Numbers that overlap are trusted.
      {{"0_query", "1_query"}, {"1_query", "2_query"}, {"1_query=1_query (layer-stage)"}},
  };
  for (const auto& [a, b, pairs] : cases)
    EXPECT_EQ(pairs_of(a, b), pairs) << testing::PrintToString(a) << testing::PrintToString(b);
}

TEST(Match, OrdersPairsAsAModelComputesThem) {
  Names names = {"w", "1_zeta", "1_alpha", "10_query", "2_query"};
  for (const std::string_view stage : known_stages()) names.push_back(fmt::format("1_{}", stage));
  std::ranges::reverse(names);
  names.push_back("a");
  const Catalog catalog = catalog_of(names);
  const Matching matching = matched(catalog, catalog);

  Names expected;
  for (const char* stage :
       {"post_ln_pre_attn", "query", "query_final", "key", "key_final", "value", "value_final",
        "post_attn", "scaling", "sliding", "post_attn_pre_resid", "pre_mlp", "post_mlp"})
    expected.push_back(fmt::format("1_{}", stage));
  for (const char* name : {"1_alpha", "1_zeta", "2_query", "10_query", "w", "a"})
    expected.push_back(name);
  Names order;
  for (const Pair& pair : matching.pairs) order.push_back(catalog.tensors[pair.a].name);
  EXPECT_EQ(order, expected);
  EXPECT_EQ(matching.pairs[1].layer, 1);
  EXPECT_EQ(matching.pairs[1].stage, "query");
  EXPECT_FALSE(matching.pairs.back().layer.has_value());
}

TEST(Match, HasEveryTensorExactlyOnce) {
  const Names a = {"0_query", "x", "r0/1_key", "r1/1_key", "0_only", "same"};
  const Names b = {"same", "1_key", "y", "0_query", "r0/1_key"};
  const Matching matching = matched(catalog_of(a), catalog_of(b));
  std::multiset<std::size_t> seen_a;
  std::multiset<std::size_t> seen_b;
  for (const Leftover& left : matching.only_a) seen_a.insert(left.tensor);
  for (const Leftover& left : matching.only_b) seen_b.insert(left.tensor);
  for (const Pair& pair : matching.pairs) seen_a.insert(pair.a), seen_b.insert(pair.b);
  EXPECT_EQ(seen_a, (std::multiset<std::size_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(seen_b, (std::multiset<std::size_t>{0, 1, 2, 3, 4}));
  EXPECT_TRUE(std::ranges::is_sorted(matching.only_a));
  EXPECT_TRUE(std::ranges::is_sorted(matching.only_b));
}

TEST(Match, SaysWhatWasAmbiguous) {
  const Matching one =
      matched(catalog_of({"0_query"}), catalog_of({"rank_0/0_query", "rank_1/0_query"}));
  EXPECT_EQ(one.notes, Names{"both 'rank_0/0_query' and 'rank_1/0_query' of B are stage query of "
                             "layer 0: neither is paired by layer and stage"});
  const Matching two = matched(catalog_of({"0_k", "0_q"}),
                               catalog_of({"x/0_k", "y/0_k", "x/0_q", "y/0_q", "z/0_q"}));
  EXPECT_EQ(two.notes,
            Names{"both 'x/0_k' and 'y/0_k' of B are stage k of layer 0, and so on for 2 "
                  "stages: none of them is paired by layer and stage"});
}

TEST(Match, PairsTensorsThatCannotBeRead) {
  Catalog a = catalog_of({"0_query"});
  a.tensors.push_back(broken_tensor("0_key", "cut short"));
  a.tensors.push_back(broken_tensor("w", "cut short"));
  const Catalog b = catalog_of({"0_key", "0_query", "w"});
  EXPECT_EQ(matched(a, b).pairs.size(), 3U);
}

TEST(Match, RunsOnlyTheStrategiesAskedFor) {
  const Catalog a = catalog_of({"0_query", "w"});
  const Catalog b = catalog_of({"00_query", "w"});
  EXPECT_EQ(pairs_of(a, b, matched(a, b, {.strategies = {"exact"}})), Names{"w=w (exact)"});
  EXPECT_EQ(pairs_of(a, b, matched(a, b, {.strategies = {"layer-stage"}})),
            Names{"0_query=00_query (layer-stage)"});
  EXPECT_EQ(matched(a, b, {.strategies = {"exact", "layer-stage"}}).pairs.size(), 2U);

  const Result<Matching> unknown = match(a, b, {.strategies = {"exact", "psychic"}});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(
      unknown.error().message(),
      "no matching strategy is called 'psychic'; there are: manual, exec, layer-stage, exact, "
      "prefix, conventions, flat, fused, tied, fuzzy, shape, value, fused-value, "
      "module, copy");
}

TEST(Match, ReadsLayerAndStageByAPatternOfTheUsers) {
  const Catalog a = catalog_of({"L1-key.aa", "L1-query.aa", "other.aa"});
  const Catalog b = catalog_of({"b/L1-query.77", "other.77", "b/L1-key.77", "0_x"});
  MatchOptions options{.strategies = {"layer-stage"}};
  options.pattern = NamePattern::make("L(?<layer>[0-9]+)-(?<stage>[a-z]+)").value();
  const Matching matching = matched(a, b, options);
  EXPECT_EQ(pairs_of(a, b, matching), (Names{"L1-query.aa=b/L1-query.77 (layer-stage)",
                                             "L1-key.aa=b/L1-key.77 (layer-stage)"}));
  EXPECT_EQ(matching.pairs[0].layer, 1);
  EXPECT_EQ(matching.pairs[0].stage, "query");
  options.pattern = NamePattern::make("(?<key>[a-z]+)\\.[0-9a-z]+$").value();
  const Matching by_key = matched(a, b, options);
  EXPECT_EQ(by_key.pairs.size(), 3U);
  EXPECT_FALSE(by_key.pairs[0].layer.has_value());
}

TEST(Match, PairsFiftyThousandNamesAtOnce) {
  Names names;
  for (int i = 0; i < 25'000; ++i) {
    names.push_back(fmt::format("run/{}_stage_{}", i % 100, i / 100));
    names.push_back(fmt::format("model.layers.{}.weight", i));
  }
  const Catalog a = catalog_of(names);
  std::ranges::reverse(names);
  const Catalog b = catalog_of(names);
  const auto start = std::chrono::steady_clock::now();
  const Matching matching = matched(a, b);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  RecordProperty("seconds", fmt::format("{:.3f}", seconds.count()));
  EXPECT_EQ(matching.pairs.size(), 50'000U);
  for (const Pair& pair : matching.pairs) ASSERT_EQ(a.tensors[pair.a].name, b.tensors[pair.b].name);
}

TEST(MatchWithin, PairsEachWithEachUpToALimit) {
  const Matching seven = match_within(catalog_of({"a", "b", "c", "d", "e", "f", "g"}));
  EXPECT_EQ(seven.pairs.size(), 21U);
  EXPECT_TRUE(seven.notes.empty());
  EXPECT_TRUE(match_within(catalog_of({"a"})).pairs.empty());
  EXPECT_TRUE(match_within(Catalog{}).notes.empty());
  const Matching many = match_within(catalog_of(Names(201, "x")));
  EXPECT_EQ(many.pairs.size(), kPairsWithinMax);
  EXPECT_EQ(many.notes,
            Names{"201 tensors make 20,100 pairs, of which the first 20,000 are compared: --path "
                  "selects fewer tensors, --sort similarity --top N shows the most alike"});
}

TEST(Matchers, AreListedOnceWithNameAndSummary) {
  std::set<std::string_view> names;
  for (const Matcher* matcher : matchers::kAll) {
    EXPECT_TRUE(names.insert(matcher->name).second) << matcher->name;
    EXPECT_FALSE(matcher->summary.empty()) << matcher->name;
  }
}

}  // namespace
}  // namespace tensordiff
