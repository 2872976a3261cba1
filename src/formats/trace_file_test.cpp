#include "formats/trace_file.h"

#include <gtest/gtest.h>

#include "formats/limits.h"

namespace tensordiff {
namespace {

// Three tensors in the order of their file; what a trace makes of them.
std::string told(std::string_view json, const Limits& limits = {}) {
  Catalog catalog;
  for (const char* name : {"head", "layers.0", "layers.0.mlp"})
    catalog.tensors.push_back({name, {}, ""});
  const std::string text(json);
  add_trace(ByteSource(Bytes{as_bytes(text), {}}), limits, catalog);
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

TEST(TraceFile, GivesTheRecordedOrder) {
  Catalog catalog;
  EXPECT_TRUE(recorded_order(catalog).empty());
  catalog.beside = [](std::string_view) -> Result<Bytes> { return Error("none"); };
  EXPECT_TRUE(recorded_order(catalog).empty());
  catalog.beside = [](std::string_view name) -> Result<Bytes> {
    EXPECT_EQ(name, "trace.json");
    return Bytes{as_bytes(kTrace), {}};
  };
  EXPECT_EQ(recorded_order(catalog),
            (std::vector<std::string>{"layers.0.mlp", "layers.0", "head"}));
}

}  // namespace
}  // namespace tensordiff
