#include "logits/compare_logits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "logits/line_up.h"
#include "naming/naming.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

constexpr uint64_t kPositions = 24, kWords = 96;

using Values = std::vector<float>;

Values logits(unsigned seed) {
  Values values = noise(kPositions * kWords, seed);
  for (float& value : values) value *= 3;
  return values;
}

Catalog run_of(const Values& values, const Shape& shape = {kPositions, kWords}) {
  Catalog catalog;
  catalog.path = "run";
  catalog.tensors.push_back({"logits", f32_view(shape, values), ""});
  read_places(catalog);
  return catalog;
}

LogitsComparison compared(const Catalog& a, const Catalog& b) {
  Result<LogitsComparison> result = compare_logits(a, b);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message());
  return std::move(result).value();
}

std::string codes_of(const LogitsComparison& comparison) {
  std::string codes;
  for (const Finding& finding : comparison.findings)
    codes += (codes.empty() ? "" : " ") + finding.code;
  return codes;
}

template <class Change>
LogitsComparison changed(const Change& change) {
  const Values a = logits(1);
  Values b = a;
  for (uint64_t t = 0; t < kPositions; ++t)
    for (uint64_t w = 0; w < kWords; ++w) b[t * kWords + w] = change(a, t, w);
  return compared(run_of(a), run_of(b));
}

float at(const Values& values, uint64_t t, uint64_t w) { return values[t * kWords + w]; }

TEST(Row, DivergesAsTheFormulaSays) {
  std::vector<double> p = {std::log(0.5), std::log(0.5)}, q = {std::log(0.25), std::log(0.75)};
  EXPECT_NEAR(divergence(p, q), 0.5 * std::log(2) + 0.5 * std::log(2.0 / 3), 1e-12);
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  std::vector<double> nothing = {kNever, kNever}, bad = {std::nan(""), 1};
  EXPECT_FALSE(to_log_probs(nothing));
  EXPECT_FALSE(to_log_probs(bad));
  // A word that A rules out costs nothing, one that B rules out costs all.
  const std::vector<double> certain = {0, kNever};
  EXPECT_EQ(divergence(certain, p), -std::log(0.5));
  EXPECT_TRUE(std::isinf(divergence(p, certain)));
}

TEST(Row, TellsTheMostLikelyWordOfEachSideAndByHowMuch) {
  const std::vector<double> a = {std::log(0.2), std::log(0.7), std::log(0.1)};
  const std::vector<double> b = {std::log(0.6), std::log(0.1), std::log(0.3)};
  const PositionDiff diff = compare_position(a, b, std::nullopt);
  EXPECT_EQ(diff.top_a, 1);
  EXPECT_EQ(diff.top_b, 0);
  EXPECT_FALSE(diff.same_top);
  EXPECT_NEAR(diff.margin_a, std::log(0.7 / 0.2), 1e-12);
  EXPECT_NEAR(diff.margin_b, std::log(0.6 / 0.3), 1e-12);
}

TEST(Logits, AreTheSameWhereTheyAre) {
  const LogitsComparison same = changed(at);
  EXPECT_EQ(same.verdict, LogitsVerdict::same);
  EXPECT_EQ(same.diff.positions, kPositions);
  EXPECT_EQ(same.diff.kl->mean, 0);
  EXPECT_EQ(same.diff.same_top->mean, 1);
  EXPECT_EQ(codes_of(same), "");
}

TEST(Logits, AreCloseWithinRounding) {
  const Values rest = noise(kPositions * kWords, 7);
  const LogitsComparison close = changed([&](const Values& a, uint64_t t, uint64_t w) {
    return at(a, t, w) + 1e-3F * at(rest, t, w);
  });
  EXPECT_EQ(close.verdict, LogitsVerdict::close);
  EXPECT_GT(close.diff.kl->mean, 0);
  EXPECT_LT(close.diff.kl->mean, 1e-5);
  EXPECT_EQ(codes_of(close), "");
}

struct CauseCase {
  std::string_view codes, verdict;
  std::function<float(const Values&, uint64_t, uint64_t)> change;
};

TEST(Logits, NameTheirCauses) {
  const CauseCase cases[] = {
      {"softmax_shift", "close",
       [](const Values& a, uint64_t t, uint64_t w) {
         return at(a, t, w) + static_cast<float>(t % 5) + 1;
       }},
      {"temperature", "different",
       [](const Values& a, uint64_t t, uint64_t w) { return at(a, t, w) / 0.7F; }},
      {"token_shift", "different",
       [](const Values& a, uint64_t t, uint64_t w) { return at(a, t == 0 ? 0 : t - 1, w); }},
      {"final_norm_missing", "different",
       [](const Values& a, uint64_t t, uint64_t w) {
         return at(a, t, w) * (0.5F + 0.1F * static_cast<float>(t));
       }},
      {"vocabulary_permuted", "different",
       [](const Values& a, uint64_t t, uint64_t w) { return at(a, t, (w * 5 + 3) % kWords); }},
      {"masked_prompt", "different",
       [](const Values& a, uint64_t t, uint64_t w) { return t < 6 ? 0 : at(a, t, w); }},
      {"", "different",
       [](const Values&, uint64_t t, uint64_t w) {
         static const Values other = logits(2);
         return at(other, t, w);
       }},
  };
  for (const CauseCase& each : cases) {
    const LogitsComparison found = changed(each.change);
    EXPECT_EQ(codes_of(found), each.codes);
    EXPECT_EQ(name_of(found.verdict), each.verdict) << each.codes;
  }
}

TEST(Logits, TellTheTemperatureAndTheFirstOtherToken) {
  const LogitsComparison hot =
      changed([](const Values& a, uint64_t t, uint64_t w) { return at(a, t, w) / 2; });
  EXPECT_NEAR(std::get<double>(hot.findings[0].parameters[0].value), 2, 1e-4);
  EXPECT_FALSE(hot.diff.first_other);
  const LogitsComparison other = changed([](const Values& a, uint64_t t, uint64_t w) {
    return t == 9 && w == 11 ? 50.0F : at(a, t, w);
  });
  ASSERT_TRUE(other.diff.first_other);
  EXPECT_EQ(other.diff.first_other->position, 9U);
  EXPECT_EQ(other.diff.first_other->b, 11);
  EXPECT_GT(other.diff.first_other->margin_b, 30);
}

TEST(Logits, OfTheLastTokenAreComparedWithTheLast) {
  const Values a = logits(1);
  const LogitsComparison last =
      compared(run_of(a), run_of(Values(a.end() - kWords, a.end()), {1, kWords}));
  EXPECT_EQ(last.verdict, LogitsVerdict::same);
  ASSERT_EQ(last.notes.size(), 1U);
  EXPECT_NE(last.notes[0].find("last_token_only"), std::string::npos);
}

Values with_words(const Values& a, uint64_t front, uint64_t back, float padding) {
  Values b;
  for (uint64_t t = 0; t < kPositions; ++t) {
    b.insert(b.end(), front, padding);
    b.insert(b.end(), a.begin() + static_cast<ptrdiff_t>(t * kWords),
             a.begin() + static_cast<ptrdiff_t>((t + 1) * kWords));
    b.insert(b.end(), back, padding);
  }
  return b;
}

TEST(Logits, KnowPaddedVocabularies) {
  const Values a = logits(1);
  const Shape shape = {kPositions, kWords + 4};
  EXPECT_EQ(compared(run_of(a), run_of(with_words(a, 0, 4, -100), shape)).verdict,
            LogitsVerdict::same);
  const LogitsComparison open = compared(run_of(a), run_of(with_words(a, 0, 4, 5), shape));
  EXPECT_EQ(codes_of(open), "vocabulary_padded");
  EXPECT_EQ(open.verdict, LogitsVerdict::different);
  const LogitsComparison front = compared(run_of(a), run_of(with_words(a, 4, 0, -100), shape));
  EXPECT_EQ(codes_of(front).substr(0, 18), "vocabulary_shifted");
  EXPECT_EQ(front.verdict, LogitsVerdict::different);
}

TEST(Logits, HavePerplexityWhereTheNextTokensAreTold) {
  const Values a = logits(1);
  Catalog run = run_of(a);
  std::string ids;
  for (uint32_t i = 0; i < kPositions; ++i) ids += std::string({static_cast<char>(i * 3), 0, 0, 0});
  run.tensors.push_back(
      {"input_ids", contiguous_view(DType::i32, {kPositions}, ByteSource(bytes_of(ids))).value(),
       ""});
  const LogitsComparison comparison = compared(run, run);
  ASSERT_TRUE(comparison.diff.perplexity_ratio);
  EXPECT_EQ(comparison.diff.perplexity_ratio->mean, 1);
  EXPECT_TRUE(holds_only_sequences(run));
  EXPECT_FALSE(compared(run_of(a), run_of(a)).diff.perplexity_ratio);
}

TEST(Logits, ThatAreNotFiniteAreDifferent) {
  const LogitsComparison bad =
      changed([](const Values& a, uint64_t t, uint64_t w) { return t == 3 ? NAN : at(a, t, w); });
  EXPECT_EQ(bad.diff.unusable, 1U);
  EXPECT_EQ(bad.verdict, LogitsVerdict::different);
}

Catalog lists(const std::vector<std::vector<double>>& log_probs,
              const std::vector<std::vector<int64_t>>& ids) {
  Catalog catalog;
  catalog.path = "rollout";
  const auto add = [&](std::string name, DType dtype, std::size_t count, const void* data) {
    std::string bytes(static_cast<const char*>(data), count * 8);
    catalog.tensors.push_back({std::move(name),
                               contiguous_view(dtype, {count}, ByteSource(bytes_of(bytes))).value(),
                               ""});
  };
  for (std::size_t i = 0; i < log_probs.size(); ++i) {
    const std::string at = fmt::format("sequence_{}/", i);
    add(at + "log_probs", DType::f64, log_probs[i].size(), log_probs[i].data());
    add(at + "token_ids", DType::i64, ids[i].size(), ids[i].data());
    catalog.tensors.back().auxiliary = "ids";
  }
  read_places(catalog);
  return catalog;
}

TEST(LogProbs, ArePairedByTheirTokens) {
  const Catalog a = lists({{-1, -2, -3}, {-4, -5}}, {{1, 2, 3}, {7, 8}});
  const Catalog b = lists({{-4, -5}, {-9, -1, -2, -3}}, {{7, 8}, {6, 1, 2, 3}});
  const LogitsComparison found = compared(a, b);
  EXPECT_EQ(found.verdict, LogitsVerdict::same);
  EXPECT_EQ(found.diff.positions, 5U);
  EXPECT_FALSE(found.notes.empty());
}

TEST(LogProbs, ThatAreOffByOneAreTold) {
  std::vector<double> values;
  std::vector<int64_t> ids;
  for (int i = 0; i < 40; ++i) values.push_back(-1 - (i * 7919) % 13), ids.push_back(i);
  std::vector<double> late = values;
  std::rotate(late.begin(), late.end() - 1, late.end());
  const LogitsComparison found = compared(lists({values}, {ids}), lists({late}, {ids}));
  EXPECT_EQ(found.verdict, LogitsVerdict::different);
  EXPECT_EQ(codes_of(found), "token_shift");
  EXPECT_EQ(std::get<double>(found.findings[0].parameters[0].value), 1);
}

TEST(LogitsGates, DecideInPlaceOfTheBound) {
  const Result<ToleranceRules> strict = ToleranceRules::parse("logits:\n  kl_mean: 1e-12\n");
  const Result<ToleranceRules> loose =
      ToleranceRules::parse("logits:\n  kl_mean: 5\n  perplexity_ratio: [0.5, 2]\n");
  ASSERT_TRUE(strict.ok() && loose.ok());
  const Values a = logits(1);
  Values b = a;
  for (float& value : b) value /= 1.2F;
  const Result<LogitsComparison> failed = compare_logits(run_of(a), run_of(b), &strict.value());
  ASSERT_TRUE(failed.ok());
  EXPECT_EQ(failed.value().verdict, LogitsVerdict::different);
  ASSERT_EQ(failed.value().failed.size(), 1U);
  EXPECT_EQ(failed.value().failed[0].substr(0, 10), "kl_mean is");
  // No next tokens are told: what is undefined passes no gate.
  const Result<LogitsComparison> undefined = compare_logits(run_of(a), run_of(b), &loose.value());
  EXPECT_EQ(undefined.value().failed,
            std::vector<std::string>{"perplexity_ratio is undefined here"});
}

TEST(Logits, SayWhatIsMissing) {
  Catalog weights;
  weights.path = "model";
  weights.tensors.push_back({"w", f32_view({2, 2}, {1, 2, 3, 4}), ""});
  const Result<LogitsComparison> none = compare_logits(weights, weights);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message(),
            "model: no logits and no log-probabilities: neither a tensor named 'logits' of "
            "[positions, words] nor lists of log-probabilities");
}

TEST(Logits, OfTheLastTokenMayHaveOneAxis) {
  const Values a = logits(1);
  const Values last(a.end() - kWords, a.end());
  EXPECT_EQ(compared(run_of(last, {kWords}), run_of(last, {kWords})).verdict, LogitsVerdict::same);
  const LogitsComparison comparison = compared(run_of(a), run_of(last, {kWords}));
  EXPECT_EQ(comparison.verdict, LogitsVerdict::same);
  EXPECT_EQ(comparison.diff.positions, 1U);
}

// No norm makes nothing of a position.
TEST(Logits, AMaskedPromptIsNoMissingNorm) {
  EXPECT_EQ(codes_of(changed([](const Values& a, uint64_t t, uint64_t w) {
              return t < 4 ? 0 : at(a, t, w) * (1 + 1e-5F * static_cast<float>(w % 3));
            })),
            "masked_prompt");
}

// A dump tells its tokens apart from its tensors.
TEST(Logits, TokensOfADumpGiveThePerplexity) {
  Catalog a = run_of(logits(1)), b = run_of(logits(2));
  EXPECT_FALSE(compared(a, b).diff.perplexity_ratio.has_value());
  for (Catalog* side : {&a, &b})
    for (uint64_t t = 0; t < kPositions; ++t)
      side->tokens.push_back({0, static_cast<int32_t>(t), static_cast<int64_t>(t)});
  EXPECT_TRUE(compared(a, b).diff.perplexity_ratio.has_value());
}

}  // namespace
}  // namespace tensordiff
