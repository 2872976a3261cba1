#include "formats/trace_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "formats/limits.h"

namespace tensordiff {
namespace {

// Three tensors in the order of their file; what a trace makes of them.
std::string told(std::string_view json, const Limits& limits = {}) {
  Catalog catalog;
  for (const char* name : {"head", "layers.0", "layers.0.mlp"})
    catalog.tensors.push_back({name, {}, ""});
  catalog.beside = [json](std::string_view name) -> Result<Bytes> {
    EXPECT_EQ(name, "trace.json");
    return Bytes{as_bytes(json), {}};
  };
  add_traces(limits, catalog);
  std::string out;
  for (const Tensor& tensor : catalog.tensors) out += tensor.name + " ";
  for (const Metadata& each : catalog.metadata) out += each.key + "=" + each.value + " ";
  for (const Problem& each : catalog.problems) out += "| " + each.where + ": " + each.message;
  return out;
}

constexpr std::string_view kTrace = R"({"schema": "tensordiff.trace/1", "complete": true,
  "model": {"config": {"hidden_size": 8}},
  "tensors": [{"name": "layers.0.mlp"}, {"dtype": "f32"}, {"name": "layers.0"}, {"name": "head"}],
  "calls": [
    {"end": 9, "out": {"t": 3}},
    {"end": 2, "out": {"d": {"x": {"l": [{"t": 2}, {"t": 1}, null, {"t": 77}]}}, "class": "Out"}},
    {"end": 1, "out": {"t": 0}}, {"raised": true}]})";

TEST(TraceFile, PutsTensorsInTheOrderOfTheirEnds) {
  EXPECT_EQ(told(kTrace), "layers.0.mlp layers.0 head config.json: hidden_size=8 ");
}

TEST(TraceFile, LeavesWhatIsNotATraceAlone) {
  EXPECT_EQ(told(R"({"traceEvents": []})"), "head layers.0 layers.0.mlp ");
  EXPECT_EQ(told("[]"), "head layers.0 layers.0.mlp ");
}

TEST(TraceFile, RefusesAnotherVersion) {
  EXPECT_EQ(told(R"({"schema": "tensordiff.trace/2", "tensors": [], "calls": []})"),
            "head layers.0 layers.0.mlp | trace.json: schema 'tensordiff.trace/2' is not read; "
            "this version reads 'tensordiff.trace/1'");
  EXPECT_EQ(told(R"({"schema": "tensordiff.trace/1.4"})"), "head layers.0 layers.0.mlp ");
}

TEST(TraceFile, SaysThatACaptureIsNotComplete) {
  EXPECT_EQ(told(R"({"schema": "tensordiff.trace/1", "complete": false,
                     "errors": [{"error": "No space left"}]})"),
            "head layers.0 layers.0.mlp | trace.json: the capture is not complete: No space left");
}

TEST(TraceFile, KeepsTheOrderOfTheFileWhereTheTraceIsBroken) {
  EXPECT_TRUE(told(R"({"schema": "tensordiff.trace/1", )")
                  .starts_with("head layers.0 layers.0.mlp | trace.json: "));
  // Values of other kinds than they should be are as good as missing.
  EXPECT_EQ(told(R"({"schema": "tensordiff.trace/1", "tensors": {"name": 1},
                     "calls": [7, {"end": -1, "out": []}, {"end": 1, "out": {"t": 1e9}}]})"),
            "head layers.0 layers.0.mlp ");
  Limits limits;
  limits.json_bytes_max = 10;
  EXPECT_EQ(told(kTrace, limits),
            "head layers.0 layers.0.mlp | trace.json: longer than 10 B: not read");
}

// What a trace says of the tensors of a folder: their order, and what each was made from.
RecordedRun recorded(std::string_view json) {
  Catalog catalog;
  catalog.beside = [json](std::string_view name) -> Result<Bytes> {
    EXPECT_EQ(name, "trace.json");
    return Bytes{as_bytes(json), {}};
  };
  return recorded_run(catalog);
}

TEST(TraceFile, GivesTheRecordedOrder) {
  Catalog catalog;
  EXPECT_TRUE(recorded_run(catalog).order.empty());
  catalog.beside = [](std::string_view) -> Result<Bytes> { return Error("none"); };
  EXPECT_TRUE(recorded_run(catalog).order.empty());
  EXPECT_EQ(recorded(kTrace).order, (std::vector<std::string>{"layers.0.mlp", "layers.0", "head"}));
}

// x -> norm -> (unsaved mul) -> mlp; layer = x + mlp: the module that hands it on made nothing.
TEST(TraceFile, GivesTheNearestSavedInputs) {
  const RecordedRun run = recorded(R"({"schema": "tensordiff.trace/1",
    "tensors": [{"name": "x"}, {"name": "norm"}, {}, {"name": "mlp"}, {"name": "layer"}],
    "calls": [
      {"end": 0, "args": [], "out": {"t": 0}},
      {"end": 1, "args": [{"t": 0}, {"p": "norm.weight"}], "out": {"t": 1}},
      {"end": 2, "args": [{"l": [{"t": 1}]}], "kwargs": {"other": {"t": 1}}, "out": {"t": 2}},
      {"end": 3, "args": [{"t": 2}], "out": {"t": 3}},
      {"end": 4, "args": [{"t": 0}, {"t": 3}], "out": {"l": [{"t": 4}]}},
      {"end": 5, "args": [{"t": 0}], "out": {"t": 4}}]})");
  using Names = std::vector<std::string>;
  EXPECT_EQ(run.inputs.at("x"), Names());
  EXPECT_EQ(run.inputs.at("norm"), Names{"x"});
  EXPECT_EQ(run.inputs.at("mlp"), Names{"norm"});
  Names of_layer = run.inputs.at("layer");
  std::ranges::sort(of_layer);
  EXPECT_EQ(of_layer, (Names{"mlp", "x"}));
}

// A broken trace may say that a tensor was made from itself, or from one that is not there.
TEST(TraceFile, EndsInACircle) {
  const RecordedRun run = recorded(R"({"schema": "tensordiff.trace/1",
    "tensors": [{"name": "x"}, {}],
    "calls": [{"end": 0, "args": [{"t": 1}, {"t": 9}], "out": {"t": 0}},
              {"end": 1, "args": [{"t": 1}, {"t": 0}], "out": {"t": 1}}]})");
  EXPECT_EQ(run.inputs.at("x"), std::vector<std::string>());
}

// Each rank has a folder with a trace of its own.
std::string told_of_ranks(const std::map<std::string, std::string_view>& traces) {
  Catalog catalog;
  for (const char* name : {"rank_0/head", "rank_1/head", "rank_2/head", "rank_x/head", "rank_9"})
    catalog.tensors.push_back({name, {}, ""});
  catalog.beside = [traces](std::string_view name) -> Result<Bytes> {
    const auto found = traces.find(std::string(name));
    if (found == traces.end()) return Error("none");
    return Bytes{as_bytes(found->second), {}};
  };
  std::string out;
  for (const Trace& trace : add_traces({}, catalog)) out += trace.folder + " ";
  for (const Metadata& each : catalog.metadata) out += each.key + "=" + each.value + " ";
  for (const Problem& each : catalog.problems) out += "| " + each.where + ": " + each.message;
  for (const std::string& name : recorded_run(catalog).order) out += " " + name;
  return out;
}

TEST(TraceFile, ReadsTheTraceOfEachRank) {
  EXPECT_EQ(told_of_ranks({{"rank_0/trace.json", kTrace},
                           {"rank_1/trace.json", kTrace},
                           {"rank_2/trace.json", kTrace}}),
            "rank_0/ rank_1/ rank_2/ config.json: hidden_size=8  layers.0.mlp layers.0 head");
  EXPECT_EQ(told_of_ranks({}), "");
}

TEST(TraceFile, SaysWhichRankIsNotComplete) {
  EXPECT_EQ(told_of_ranks({{"rank_0/trace.json", R"({"schema": "tensordiff.trace/1"})"},
                           {"rank_1/trace.json", R"({"schema": "tensordiff.trace/1",
                             "complete": false})"}}),
            "rank_0/ rank_1/ | rank_1/trace.json: the capture is not complete"
            "| rank_2/trace.json: there is none: the capture is not finished");
  EXPECT_EQ(told_of_ranks({{"rank_2/trace.json", R"({"schema": "tensordiff.trace/2"})"}}),
            "| rank_2/trace.json: schema 'tensordiff.trace/2' is not read; this version reads "
            "'tensordiff.trace/1'"
            "| rank_0/trace.json: there is none: the capture is not finished"
            "| rank_1/trace.json: there is none: the capture is not finished");
}

}  // namespace
}  // namespace tensordiff
