// `-o json`: the list of changes as an array of one-key objects, for scripts written for diffai.

#include "analyze/analysis.h"
#include "base/json.h"
#include "report/analyses.h"
#include "report/changes.h"

namespace tensordiff {
namespace {

void write_tensor(JsonWriter& json, const Change::Tensor& tensor) {
  const Stats& stats = *tensor.stats;
  json.begin_object().member("mean", stats.mean).member("std", stats.std);
  json.member("min", stats.min).member("max", stats.max);
  json.member("shape", tensor.id->shape).member("dtype", name_of(tensor.id->dtype));
  json.member("total_params", element_count(tensor.id->shape).value_or(0)).end_object();
}

void write_change(JsonWriter& json, const Change& change) {
  const auto begin = [&](std::string_view kind) {
    json.begin_object().key(kind).begin_array().value(change.name);
  };
  switch (change.kind) {
    case ChangeKind::stats:
      begin("TensorStatsChanged");
      write_tensor(json, change.a);
      write_tensor(json, change.b);
      break;
    case ChangeKind::shape:
      begin("TensorShapeChanged");
      json.value(change.a.id->shape).value(change.b.id->shape);
      break;
    case ChangeKind::added:
      begin("TensorAdded");
      write_tensor(json, change.b);
      break;
    case ChangeKind::removed:
      begin("TensorRemoved");
      write_tensor(json, change.a);
      break;
    case ChangeKind::unreadable:
      begin("TensorUnreadable");
      json.value(change.message);
      break;
  }
  json.end_array().end_object();
}

std::string render(const Report& report, const RenderOptions& options) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_array();
  if (!report.summary.caveat.empty())
    json.begin_object()
        .key("NotCompared")
        .begin_array()
        .value(report.pairs.empty() ? "tensors" : "values")
        .value(report.summary.caveat)
        .end_array()
        .end_object();
  for (const Change& change : list_changes(report, options)) write_change(json, change);
  for (const Answer& answer : report.analyses) {
    json.begin_object().key(camel_case(answer.name)).begin_array().value(answer.name);
    write_answer(json, answer);
    json.end_array().end_object();
  }
  json.end_array();
  return json.take() + "\n";
}

}  // namespace

constinit const Renderer renderers::json = {
    .name = "json",
    .summary = "the list of changes as JSON",
    .unpaired_stats = true,
    .render = render,
};

}  // namespace tensordiff
