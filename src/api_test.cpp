#include "tensordiff/tensordiff.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <deque>
#include <thread>

#include "base/build_info.h"
#include "base/json.h"
#include "diagnose/toys/toy_mistakes.h"

namespace tensordiff {
namespace {

const std::string kReference = TENSORDIFF_SOURCE_DIR "/demo/reference.zip";
const std::string kBroken = TENSORDIFF_SOURCE_DIR "/demo/constant_scale.tgz";

// [4, 16] values that no transform but a factor explains.
std::vector<float> some_values(float factor) {
  std::vector<float> values(64);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = factor * (static_cast<float>(i * 2654435761U % 1000) / 500.0F - 1.0F);
  return values;
}

api::Tensor tensor_of(const std::vector<float>& values) {
  return {"layers.0.mlp", "f32", {4, 16}, values.data()};
}

std::string error_of(api::Tensor tensor) {
  const std::vector<float> values = some_values(1);
  return api::compare(std::vector{tensor_of(values)}, std::vector{std::move(tensor)}).error;
}

TEST(Api, FindsTheBugOfTheDemo) {
  api::Options options;
  options.json = true;
  const api::Outcome outcome = api::compare(kReference, kBroken, options);
  EXPECT_EQ(outcome.error, "");
  const api::Report& report = outcome.report;
  EXPECT_EQ(report.verdict, api::Verdict::different);
  ASSERT_TRUE(report.first_divergence);
  const api::Pair& first = report.pairs[report.first_divergence->pair];
  EXPECT_EQ(first.name_a, "1_post_attn");
  EXPECT_EQ(first.layer, 1);
  EXPECT_EQ(first.status, api::Status::different);
  EXPECT_GT(first.diff.exceeding, 0U);
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings[0].code, "scale");
  EXPECT_EQ(report.findings[0].pair, report.first_divergence->pair);

  // Both forms of the report say the same.
  const Result<Json> json = Json::parse(outcome.report_json);
  ASSERT_TRUE(json.ok()) << json.error().message();
  EXPECT_EQ(json.value()["first_divergence"]["name_a"].string(), first.name_a);
  EXPECT_EQ(json.value()["pairs"].array().size(), report.pairs.size());
}

TEST(Api, ToleranceDecides) {
  api::Options generous;
  generous.atol = 1e9;
  generous.rtol = 0;
  EXPECT_EQ(api::compare(kReference, kBroken, generous).report.verdict, api::Verdict::close);
}

TEST(Api, AFileIsTheSameAsItself) {
  const api::Outcome outcome = api::compare(kReference, kReference);
  EXPECT_EQ(outcome.report.verdict, api::Verdict::same);
  for (const api::Pair& pair : outcome.report.pairs)
    EXPECT_EQ(pair.status, api::Status::identical) << pair.name_a;
}

TEST(Api, SaysWhyThereIsNoReport) {
  const api::Outcome outcome = api::compare(kReference, kReference + ".nothing");
  EXPECT_EQ(outcome.report.verdict, api::Verdict::trouble);
  EXPECT_NE(outcome.error.find("reference.zip.nothing"), std::string::npos) << outcome.error;
}

TEST(Api, ComparesTensorsInMemory) {
  const std::vector<float> a = some_values(1), b = some_values(0.5F);
  const api::Outcome outcome = api::compare(std::vector{tensor_of(a)}, std::vector{tensor_of(b)});
  ASSERT_EQ(outcome.error, "");
  ASSERT_EQ(outcome.report.pairs.size(), 1U);
  EXPECT_EQ(outcome.report.pairs[0].diff.norm_ratio, 0.5);
  ASSERT_EQ(outcome.report.findings.size(), 1U);
  EXPECT_EQ(outcome.report.findings[0].code, "scale");
}

TEST(Api, FollowsStrides) {
  const std::vector<float> a = some_values(1);
  std::vector<float> turned(64);  // The same tensor, stored column by column.
  for (std::size_t row = 0; row < 4; ++row)
    for (std::size_t column = 0; column < 16; ++column)
      turned[column * 4 + row] = a[row * 16 + column];
  api::Tensor b = tensor_of(turned);
  b.strides = {1, 4};
  EXPECT_EQ(api::compare(std::vector{tensor_of(a)}, std::vector{b}).report.verdict,
            api::Verdict::same);
}

TEST(Api, RefusesTensorsThatMakeNoSense) {
  const std::vector<float> values = some_values(1);
  api::Tensor good = tensor_of(values);
  const auto with = [&](auto change) {
    api::Tensor tensor = good;
    change(tensor);
    return error_of(std::move(tensor));
  };
  EXPECT_EQ(error_of(good), "");
  EXPECT_EQ(with([](api::Tensor& it) { it.dtype = "float33"; }),
            "tensor 'layers.0.mlp': unknown dtype 'float33'");
  EXPECT_EQ(with([](api::Tensor& it) { it.data = nullptr; }), "tensor 'layers.0.mlp': no data");
  EXPECT_EQ(with([](api::Tensor& it) { it.strides = {16}; }),
            "tensor 'layers.0.mlp': 2 axes but 1 strides");
  EXPECT_EQ(with([](api::Tensor& it) {
              it.strides = {16, -1};
            }),
            "tensor 'layers.0.mlp': negative stride -1");
  EXPECT_EQ(with([](api::Tensor& it) {
              it.strides = {INT64_MAX, 1};
            }),
            "tensor 'layers.0.mlp': stride 9223372036854775807 is too large");
}

TEST(Api, TakesTheNoiseFromASecondRunInMemory) {
  // 1 % apart: a mistake, unless two good runs are as far apart.
  std::vector<float> a = some_values(1), b = a, second = a;
  for (std::size_t i = 0; i < a.size(); ++i) {
    b[i] *= 1 + (i % 3 == 0 ? 0.01F : -0.01F);
    second[i] *= 1 + (i % 5 < 2 ? 0.01F : -0.01F);
  }
  api::Options options;
  EXPECT_EQ(
      api::compare(std::vector{tensor_of(a)}, std::vector{tensor_of(b)}, options).report.verdict,
      api::Verdict::different);
  options.noise = std::vector{tensor_of(second)};
  EXPECT_EQ(
      api::compare(std::vector{tensor_of(a)}, std::vector{tensor_of(b)}, options).report.verdict,
      api::Verdict::close);
  options.noise = "no such run";
  EXPECT_NE(api::compare(kReference, kBroken, options).error, "");
  options.noise.reset();
  options.weights = "no such model";
  EXPECT_NE(api::compare(kReference, kBroken, options).error, "");
}

// A factor that the noise of bf16 hides, unless the step can be computed again.
TEST(Api, TakesTheWeightsFromMemory) {
  ToyShape shape;
  shape.layers = 2;
  ToyModel model(shape, 7);
  ToyMistakes wrong;
  wrong.after["post_attn_pre_resid"] = each(shape.width(), [](double x, uint64_t row, uint64_t i) {
    return x * (1 + 0.11 * std::sin(double(31 * row + 17 * i)));
  });
  std::deque<std::vector<float>> kept;
  const auto add = [&](std::vector<api::Tensor>& to, const std::string& name, const View& view) {
    std::vector<double> values(view.elements());
    Reader::open(view).value().values(0, values.size(), values.data());
    const float* data = kept.emplace_back(values.begin(), values.end()).data();
    to.push_back({name, "f32", view.shape, data});
  };
  std::vector<api::Tensor> a, b, weights;
  const auto sites = sites_of(model.run(DType::f32, false, {}), DType::f32,
                              model.run(DType::bf16, true, {wrong}), DType::bf16);
  for (const Site& site : sites) {
    add(a, site.a.name, site.views.a);
    add(b, site.b.name, site.views.b);
  }
  for (const Tensor& tensor : model.weights().tensors) add(weights, tensor.name, tensor.view);
  const auto divergence = [&](const api::Options& options) -> std::string {
    const api::Outcome outcome = api::compare(a, b, options);
    EXPECT_EQ(outcome.error, "");
    const auto& first = outcome.report.first_divergence;
    return first ? outcome.report.pairs[first->pair].name_a : "";
  };
  api::Options options;
  EXPECT_NE(divergence(options), "1_post_attn_pre_resid");
  options.weights = weights;
  EXPECT_EQ(divergence(options), "1_post_attn_pre_resid");
}

TEST(Api, TellsProgressOneCallAtATimeAndOnlyForward) {
  api::Options options;
  std::atomic<int> inside = 0;
  uint64_t last = 0, all = 0;
  options.progress = [&](uint64_t done, uint64_t total) {
    EXPECT_EQ(inside.fetch_add(1), 0);
    EXPECT_GE(done, last);
    last = done;
    all = total;
    inside.fetch_sub(1);
  };
  EXPECT_EQ(api::compare(kReference, kBroken, options).error, "");
  EXPECT_GT(all, 0U);
  EXPECT_EQ(last, all);
}

TEST(Api, CanBeCalledOff) {
  std::stop_source stop;
  api::Options options;
  options.stop = stop.get_token();
  options.progress = [&](uint64_t, uint64_t) { stop.request_stop(); };
  const api::Outcome outcome = api::compare(kReference, kBroken, options);
  EXPECT_TRUE(outcome.cancelled);
  EXPECT_EQ(outcome.error, "cancelled");
  EXPECT_TRUE(outcome.report.pairs.empty());

  EXPECT_TRUE(api::compare(kReference, kBroken, options).cancelled) << "called off before it began";
}

// Also under ./dev tsan: one call knows nothing of another, whatever number of threads each takes.
TEST(Api, ComparesFromSeveralThreadsAtOnce) {
  api::Options options;
  options.json = true;
  const std::string expected = api::compare(kReference, kBroken, options).report_json;
  const std::vector<float> memory = some_values(1);
  std::vector<std::string> got(6);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < got.size(); ++i)
    threads.emplace_back([&, i] {
      api::Options mine = options;
      mine.threads = i % 3;
      got[i] = api::compare(kReference, kBroken, mine).report_json;
      mine.stop = std::stop_token();
      EXPECT_EQ(api::compare(std::vector{tensor_of(memory)}, std::vector{tensor_of(memory)}, mine)
                    .report.verdict,
                api::Verdict::same);
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& each : got) EXPECT_EQ(each, expected);
}

TEST(Api, AnEmptyNameIsNotTheOtherInputAgain) {
  EXPECT_EQ(api::compare(kReference, "").report.verdict, api::Verdict::trouble);
}

TEST(Api, ExitStatusIsThatOfDiff) {
  EXPECT_EQ(api::exit_status(api::Verdict::same), 0);
  EXPECT_EQ(api::exit_status(api::Verdict::close), 0);
  EXPECT_EQ(api::exit_status(api::Verdict::different), 1);
  EXPECT_EQ(api::exit_status(api::Verdict::trouble), 2);
  EXPECT_EQ(std::string(api::version()), kVersion);
}

}  // namespace
}  // namespace tensordiff
