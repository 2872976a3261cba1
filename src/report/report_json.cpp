// `-o report`: everything the Report holds, as one JSON object. docs/output.md describes each key.
//
// Every pair has every key, so that a script never has to ask whether one is there: what does not
// apply is null. Keys may be added, and are never renamed or moved.

#include <algorithm>

#include "base/parallel.h"
#include "report/analyses.h"
#include "report/json_values.h"
#include "report/renderer.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

void write_side(JsonWriter& json, const Side& side) {
  json.begin_object();
  json.member("path", side.path).member("format", side.format).member("tensors", side.tensors);
  json.member("elements", side.elements).member("bytes", side.bytes);
  json.key("problems");
  write_problems(json, side.problems);
  json.end_object();
}

void write_summary(JsonWriter& json, const Report& report) {
  const Summary& summary = report.summary;
  json.begin_object().member("pairs", uint64_t{report.pairs.size()});
  json.member("identical", summary.identical).member("equal", summary.equal);
  json.member("close", summary.close).member("same_shape", summary.same_shape);
  json.member("different", summary.different);
  json.member("incomparable", summary.incomparable).member("error", summary.error);
  json.member("only_a", uint64_t{report.only_a.size()});
  json.member("only_b", uint64_t{report.only_b.size()});
  json.member("verdict", summary.verdict);
  text_or_null(json, "caveat", summary.caveat);
  const uint64_t compared = report.pairs.size();
  json.key("coverage").begin_object().member("compared", compared);
  json.member("only_a", uint64_t{report.only_a.size()});
  json.member("only_b", uint64_t{report.only_b.size()});
  json.member("of", compared + report.only_a.size() + report.only_b.size()).end_object();
  json.end_object();
}

void write_first_divergence(JsonWriter& json, const Report& report) {
  if (!report.first_divergence) {
    json.null();
    return;
  }
  const FirstDivergence& first = *report.first_divergence;
  const PairRow& row = report.pairs[first.pair];
  json.begin_object().member("pair", uint64_t{first.pair});
  json.member("name_a", row.a.name).member("name_b", row.b.name).member("layer", row.layer);
  text_or_null(json, "stage", row.stage);
  json.member("created", first.created).member("explanation", first.explanation).end_object();
}

void write_parameter(JsonWriter& json, const Parameter& parameter) {
  std::visit([&](const auto& value) { json.member(parameter.name, value); }, parameter.value);
}

void write_evidence(JsonWriter& json, const std::optional<EvidenceSlice>& evidence) {
  if (!evidence) {
    json.null();
    return;
  }
  json.begin_object().member("at", evidence->at);
  json.member("a", evidence->a).member("b", evidence->b).key("model");
  if (evidence->model.empty())
    json.null();
  else
    json.value(evidence->model);
  json.end_object();
}

void write_findings(JsonWriter& json, const Report& report) {
  json.begin_array();
  for (const Finding& finding : report.findings) {
    json.begin_object().member("code", finding.code).member("pair", uint64_t{finding.pair});
    json.member("confidence", finding.confidence).member("explanation", finding.explanation);
    json.key("parameters").begin_object();
    for (const Parameter& parameter : finding.parameters) write_parameter(json, parameter);
    json.end_object().member("residual_before", finding.residual_before);
    json.member("residual_after", finding.residual_after);
    json.member("convention", finding.convention).key("evidence");
    write_evidence(json, finding.evidence);
    json.end_object();
  }
  json.end_array();
}

void write_next(JsonWriter& json, const Report& report) {
  json.begin_array();
  for (const Divergence& next : report.next_divergences) {
    const PairRow& row = report.pairs[next.pair];
    json.begin_object().member("pair", uint64_t{next.pair}).member("name_a", row.a.name);
    json.member("name_b", row.b.name).member("layer", row.layer);
    text_or_null(json, "stage", row.stage);
    json.member("created", next.created).member("explanation", next.explanation).end_object();
  }
  json.end_array();
}

void write_trials(JsonWriter& json, const Report& report) {
  json.begin_array();
  for (const Trial& trial : report.trials)
    json.begin_object()
        .member("pair", uint64_t{trial.pair})
        .member("code", trial.code)
        .member("outcome", trial.outcome)
        .end_object();
  json.end_array();
}

void write_steps(JsonWriter& json, const std::vector<Step>& steps) {
  json.begin_array();
  for (const Step& step : steps) {
    json.begin_object().member("side", std::string_view(&step.side, 1));
    write_step(json, step);
    json.end_object();
  }
  json.end_array();
}

void write_diff(JsonWriter& json, const Diff& diff) {
  json.begin_object().member("compared", diff.compared).member("equal", diff.equal);
  json.member("max_abs", diff.max_abs).key("max_abs_at");
  diff.max_abs || diff.nonfinite_mismatch > 0 ? json.value(diff.max_abs_at) : json.null();
  json.member("a_there", diff.a_there).member("b_there", diff.b_there);
  json.member("mean_abs", diff.mean_abs).member("mse", diff.mse).member("rmse", diff.rmse);
  json.member("max_rel", diff.max_rel).member("mean_rel", diff.mean_rel);
  json.member("rel_l2", diff.rel_l2).member("cosine", diff.cosine).member("pcc", diff.pcc);
  json.member("norm_ratio", diff.norm_ratio).member("ulp_max", diff.ulp_max);
  json.member("nonfinite_mismatch", diff.nonfinite_mismatch);
  json.member("nonfinite_agreeing", diff.nonfinite_agreeing);
  json.member("exceeding", diff.exceeding);
  json.member("atol", diff.tolerance.atol).member("rtol", diff.tolerance.rtol);
  json.member("rtol_needed", diff.rtol_needed).end_object();
}

void write_pair(JsonWriter& json, const PairRow& row) {
  const Comparison& comparison = row.comparison;
  const bool compared =
      comparison.status != Status::incomparable && comparison.status != Status::error;
  json.begin_object().member("index", uint64_t{row.index});
  json.member("name_a", row.a.name).member("name_b", row.b.name).member("layer", row.layer);
  text_or_null(json, "stage", row.stage);
  json.member("matched_by", matched_by_text(row)).member("status", name_of(comparison.status));
  json.member("dtype_a", name_of(row.a.dtype)).member("dtype_b", name_of(row.b.dtype));
  json.member("shape_a", row.a.shape).member("shape_b", row.b.shape).key("shape");
  compared ? json.value(row.shape) : json.null();
  json.key("alignment");
  write_steps(json, row.steps);
  json.key("stats_a");
  write_stats(json, comparison.a);
  json.key("stats_b");
  write_stats(json, comparison.b);
  json.key("diff");
  write_diff(json, comparison.diff);
  text_or_null(json, "message", message_of(row));
  row.verdict ? json.member("verdict", name_of(*row.verdict)) : json.key("verdict").null();
  text_or_null(json, "baseline", name_of(row.novelty));
  text_or_null(json, "made_from_a", row.a.made_from);
  text_or_null(json, "made_from_b", row.b.made_from);
  json.end_object();
}

// One line for each pair. There may be a hundred thousand, so they are written in parallel, a batch
// at a time.
void write_pairs(JsonWriter& json, const std::vector<PairRow>& rows) {
  constexpr std::size_t kBatch = 4096;
  constexpr std::size_t kBetween = 8;  // Bytes: what separates two lines.
  json.begin_array();
  for (std::size_t first = 0; first < rows.size(); first += kBatch) {
    std::vector<std::string> lines(std::min(kBatch, rows.size() - first));
    for_each_index(lines.size(), [&](std::size_t i) {
      JsonWriter line;
      line.reserve(2048);
      write_pair(line, rows[first + i]);
      lines[i] = line.take();
    });
    if (first == 0) {
      std::size_t bytes = 0;
      for (const std::string& line : lines) bytes += line.size() + kBetween;
      json.reserve(json.text().size() + bytes / lines.size() * rows.size() * 9 / 8);
    }
    for (const std::string& line : lines) json.raw(line);
  }
  json.end_array();
}

void write_unpaired(JsonWriter& json, const std::vector<Report::Unpaired>& tensors) {
  json.begin_array();
  for (const Report::Unpaired& tensor : tensors) {
    json.begin_object().member("name", tensor.id.name);
    json.member("dtype", name_of(tensor.id.dtype)).member("shape", tensor.id.shape);
    text_or_null(json, "message", tensor.id.fault);
    json.member("layer_absent", tensor.layer_absent).member("not_dumped", tensor.not_dumped);
    text_or_null(json, "nearest", tensor.nearest);
    json.member("likeness", tensor.likeness);
    text_or_null(json, "why", tensor.why);
    text_or_null(json, "baseline", name_of(tensor.novelty));
    json.end_object();
  }
  json.end_array();
}

void write_metadata(JsonWriter& json, const Report& report) {
  const auto text = [&](std::string_view key, const std::optional<std::string>& value) {
    value ? json.member(key, *value) : json.key(key).null();
  };
  json.begin_array();
  for (const MetadataChange& change : report.metadata) {
    json.begin_object().member("key", change.key);
    text("a", change.a);
    text("b", change.b);
    json.end_object();
  }
  json.end_array();
}

void write_conversion(JsonWriter& json, const std::vector<ConversionRow>& rows) {
  json.begin_array();
  for (const ConversionRow& row : rows) {
    json.begin_object().member("rule", row.how).member("a", row.a).member("b", row.b);
    json.member("pairs", row.pairs).member("exceptions", row.exceptions).end_object();
  }
  json.end_array();
}

std::string render(const Report& report, const RenderOptions&) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().member("schema", "tensordiff.report/1");
  json.key("tool").begin_object().member("name", "tensordiff");
  json.member("version", TENSORDIFF_VERSION).end_object();
  json.key("a");
  write_side(json, report.a);
  json.key("b");
  write_side(json, report.b);
  json.key("summary");
  write_summary(json, report);
  json.key("first_divergence");
  write_first_divergence(json, report);
  json.key("findings");
  write_findings(json, report);
  json.key("pairs");
  write_pairs(json, report.pairs);
  json.key("only_a");
  write_unpaired(json, report.only_a);
  json.key("only_b");
  write_unpaired(json, report.only_b);
  json.key("analyses").begin_object();
  for (const Answer& answer : report.analyses) {
    json.key(answer.name);
    write_answer(json, answer);
  }
  json.end_object();
  json.key("metadata");
  write_metadata(json, report);
  json.member("notes", report.notes).key("next_divergences");
  write_next(json, report);
  json.key("auxiliary").begin_object().key("a");
  write_unpaired(json, report.auxiliary_a);
  json.key("b");
  write_unpaired(json, report.auxiliary_b);
  json.end_object();
  json.key("conversion");
  write_conversion(json, report.conversion);
  if (report.baseline) {
    const BaselineDelta& delta = *report.baseline;
    json.key("baseline").begin_object().member("holds", delta.holds()).member("known", delta.known);
    json.member("gone", delta.gone).member("new", delta.added).member("grown", delta.grown);
    json.end_object();
  }
  if (!report.trials.empty()) {
    json.key("trials");
    write_trials(json, report);
  }
  json.end_object();
  return json.take() + "\n";
}

}  // namespace

constinit const Renderer renderers::report = {
    .name = "report",
    .summary = "the full result as one JSON object",
    .unpaired_stats = false,
    .render = render,
};

}  // namespace tensordiff
