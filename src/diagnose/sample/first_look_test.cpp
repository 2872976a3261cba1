// A first look saves work and changes no answer: what is found with it is what is found without.

#include "diagnose/sample/first_look.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "compare/beyond.h"
#include "diagnose/diagnose.h"
#include "diagnose/toys/toy_values.h"

namespace tensordiff {
namespace {

// Large enough for a first look.
const Shape kShape = {640, 256};
constexpr uint64_t kRows = 640, kFeatures = 256;

Site site_of(std::size_t index, const Values& a, const Values& b, DType dtype) {
  Site site;
  site.index = index;
  site.a.name = site.b.name = fmt::format("model.layers.{}.mlp.up_proj.weight", index);
  site.a.place = site.b.place = read_place(site.a.name);
  site.views.a = view_of(kShape, a, DType::f32);
  site.views.b = view_of(kShape, b, dtype);
  Beyond beyond;
  site.comparison = compare(site.views, {}, beyond).value();
  site.beyond = std::make_shared<const Beyond>(std::move(beyond));
  return site;
}

std::string told(const Insight& insight) {
  std::string text;
  for (const Finding& finding : insight.findings)
    text += fmt::format("{}: {}\n", finding.pair, finding.explanation);
  return text;
}

struct Change {
  std::string_view code;  // That must be found; empty: none.
  std::function<void(const Values& a, Values& b)> make;
  DType dtype = DType::f32;
};

template <class Value>
std::function<void(const Values&, Values&)> each(const Value& value) {
  return [value](const Values& a, Values& b) {
    for (uint64_t i = 0; i < b.size(); ++i) b[i] = value(a[i], i / kFeatures, i % kFeatures);
  };
}

std::vector<Change> changes() {
  const Values trained = random_values(kRows * kFeatures, 77, 0.01);
  const Values shift = random_values(kFeatures, 78);
  const auto quantized = [](const Values& a, Values& b) {
    for (std::size_t at = 0; at < b.size(); at += 32) {
      double most = 0;
      for (std::size_t i = at; i < at + 32; ++i) most = std::max(most, std::abs(a[i]));
      for (std::size_t i = at; i < at + 32; ++i) b[i] = std::nearbyint(a[i] / most * 7) * most / 7;
    }
  };
  const auto trains = [trained](const Values& a, Values& b) {
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = a[i] + trained[i];
  };
  return {
      {"", trains},
      {"", trains, DType::bf16},
      {"scale", each([](double x, uint64_t, uint64_t) { return x / 8; })},
      {"scale",
       each([](double x, uint64_t row, uint64_t) { return x * (1 + 0.01 * double(row)); })},
      {"offset", each([shift](double x, uint64_t, uint64_t i) { return x + shift[i]; })},
      {"", each([](double x, uint64_t, uint64_t) { return x; }),
       DType::bf16},  // Close to its type.
      {"quantization", quantized},
      {"region", each([](double x, uint64_t row, uint64_t) { return row == 333 ? 0 : x; })},
      {"offset", each([](double x, uint64_t row, uint64_t) { return row >= 600 ? x + 1 : x; })},
      {"offset", each([](double x, uint64_t, uint64_t i) { return i == 9 ? x + 1 : x; })},
      {"row_permutation",
       [](const Values& a, Values& b) {
         for (uint64_t i = 0; i < b.size(); ++i) b[i] = a[(i + 7 * kFeatures) % b.size()];
       }},
  };
}

TEST(FirstLook, ChangesNoAnswer) {
  unsigned seed = 0;
  for (const Change& change : changes()) {
    const Values a = random_values(kRows * kFeatures, ++seed);
    Values b = a;
    change.make(a, b);
    const std::vector<Site> sites = {site_of(0, a, b, change.dtype)};
    DiagnoseOptions all;
    all.explain = true;  // Tries everything on all that it can hold.
    const Insight with = diagnose(sites, {}), without = diagnose(sites, all);
    SCOPED_TRACE(fmt::format("{}, seed {}: {}", change.code, seed, told(with)));
    EXPECT_EQ(told(with), told(without));
    EXPECT_EQ(with.findings.empty() ? "" : with.findings[0].code, change.code);
  }
}

TEST(FirstLook, KnowsTensorsThatWereSwapped) {
  const Values x = random_values(kRows * kFeatures, 5), y = random_values(kRows * kFeatures, 6);
  const Insight insight =
      diagnose({site_of(0, x, y, DType::f32), site_of(1, y, x, DType::f32)}, {});
  ASSERT_EQ(insight.findings.size(), 2U);
  for (const Finding& finding : insight.findings) EXPECT_EQ(finding.code, "other_tensor");
}

TEST(FirstLook, RulesOutWhatTrainingIsNot) {
  const Values a = random_values(kRows * kFeatures, 3);
  Values b = a;
  changes()[0].make(a, b);
  const tensordiff::Run run = make_run({site_of(0, a, b, DType::f32)}, {});
  const FirstLook look(run, run.sites[0]);
  for (const Diagnosis* diagnosis : diagnoses::kAll) {
    if (diagnosis->replays || diagnosis == &diagnoses::precision_noise ||
        diagnosis == &diagnoses::operator_step)
      continue;
    EXPECT_TRUE(look.rules_out(*diagnosis)) << diagnosis->code;
  }
  EXPECT_FALSE(FirstLook().rules_out(diagnoses::scale));
}

}  // namespace
}  // namespace tensordiff
