// The fields of a report, and of all in it but its pairs.

#include <algorithm>

#include "base/build_info.h"
#include "base/parallel.h"
#include "report/analyses.h"
#include "report/logits_report.h"
#include "report/wire.h"

namespace tensordiff::wire {
namespace {

// --- the two sides ---

std::string_view severity(const Problem& problem) { return name_of(problem.severity); }

constexpr std::string_view kSeverities[] = {"note", "suspicious", "dangerous", "unreadable",
                                            "missing"};
constexpr Field<Problem> kProblem[] = {
    field<&Problem::where>("where", "the file or tensor"),
    field<&Problem::message>("message", "what is wrong"),
    field<severity>("severity", "how bad it is").among(kSeverities),
};
constexpr Table kProblemTable = table<kProblem>("problem", "a problem of a file");

constexpr Field<Side> kSide[] = {
    field<&Side::path>("path", "as it was given"),
    field<&Side::format>("format", "as docs/formats.md names it"),
    field<&Side::tensors>("tensors", "how many there are"),
    field<&Side::elements>("elements", "of all of them"),
    field<&Side::bytes>("bytes", "of all of them, as stored"),
    object<&Side::problems, kProblem>("problems", kProblemTable,
                                      "what could not be read, and more"),
};
constexpr Table kSideTable = table<kSide>("side", "one input");

// --- the summary ---

uint64_t pair_count(const Report& report) { return report.pairs.size(); }
uint64_t only_a_count(const Report& report) { return report.only_a.size(); }
uint64_t only_b_count(const Report& report) { return report.only_b.size(); }
uint64_t all_count(const Report& report) {
  return pair_count(report) + only_a_count(report) + only_b_count(report);
}
template <uint64_t Summary::*Count>
uint64_t count_of(const Report& report) {
  return report.summary.*Count;
}
std::string_view conclusion(const Report& report) { return name_of(report.summary.verdict); }
MaybeText caveat(const Report& report) { return {report.summary.caveat}; }
const Report& itself(const Report& report) { return report; }

constexpr Field<Report> kCoverage[] = {
    field<pair_count>("compared", "pairs"),
    field<only_a_count>("only_a", "tensors missing from B"),
    field<only_b_count>("only_b", "tensors missing from A"),
    field<all_count>("of", "the sum of these"),
};
constexpr Table kCoverageTable = table<kCoverage>("coverage", "how much of both was compared");

constexpr Field<Report> kSummary[] = {
    field<pair_count>("pairs", "how many there are"),
    field<count_of<&Summary::identical>>("identical", "pairs of that status"),
    field<count_of<&Summary::equal>>("equal", "pairs of that status"),
    field<count_of<&Summary::close>>("close", "pairs of that status"),
    field<count_of<&Summary::same_shape>>("same_shape", "pairs of that status"),
    field<count_of<&Summary::different>>("different", "pairs of that status"),
    field<count_of<&Summary::incomparable>>("incomparable", "pairs of that status"),
    field<count_of<&Summary::error>>("error", "pairs of that status"),
    field<only_a_count>("only_a", "tensors missing from B"),
    field<only_b_count>("only_b", "tensors missing from A"),
    field<conclusion>("verdict",
                      "the conclusion; `shapes_match`: with `--shape-only`, `known`: "
                      "only differences that `--baseline` has")
        .among(kConclusionWords),
    field<caveat>("caveat", "what the verdict leaves out, or why there was nothing to compare"),
    object<itself, kCoverage>("coverage", kCoverageTable, "how much of both was compared"),
};
constexpr Table kSummaryTable = table<kSummary>("summary", "the counts and the verdict");

// --- where they part, and why ---

// A divergence with the pair that it is at.
struct DivergenceAt {
  const Divergence& what;
  const PairRow& row;
};
uint64_t index(const DivergenceAt& at) { return at.what.pair; }
const std::string& name_a(const DivergenceAt& at) { return at.row.a.name; }
const std::string& name_b(const DivergenceAt& at) { return at.row.b.name; }
std::optional<int64_t> layer(const DivergenceAt& at) { return at.row.depth(); }
MaybeText stage(const DivergenceAt& at) { return {at.row.stage}; }
bool created(const DivergenceAt& at) { return at.what.created; }
const std::string& explanation(const DivergenceAt& at) { return at.what.explanation; }

std::optional<DivergenceAt> first(const Report& report) {
  if (!report.first_divergence) return std::nullopt;
  return DivergenceAt{*report.first_divergence, report.pairs[report.first_divergence->pair]};
}
std::vector<DivergenceAt> next(const Report& report) {
  std::vector<DivergenceAt> all;
  for (const Divergence& each : report.next_divergences)
    all.push_back({each, report.pairs[each.pair]});
  return all;
}

constexpr Field<DivergenceAt> kDivergence[] = {
    field<index>("pair", "its index in `pairs`"),
    field<name_a>("name_a", "its name in A"),
    field<name_b>("name_b", "its name in B"),
    field<layer>("layer", "its layer, if its name has one"),
    field<stage>("stage", "its stage in the layer"),
    field<created>("created", "its inputs agree, so the error is made here"),
    field<explanation>("explanation", "why it is one"),
};
constexpr Table kDivergenceTable =
    table<kDivergence>("divergence", "a step that makes an error of its own: diagnosis.md");

std::optional<std::span<const double>> model(const EvidenceSlice& slice) {
  if (slice.model.empty()) return std::nullopt;
  return slice.model;
}
constexpr Field<EvidenceSlice> kEvidence[] = {
    field<&EvidenceSlice::at>("at", "the first of them, in the compared shape"),
    field<&EvidenceSlice::a>("a", "values of A"),
    field<&EvidenceSlice::b>("b", "values of B"),
    field<model>("model", "what the finding makes of A"),
};
constexpr Table kEvidenceTable = table<kEvidence>("evidence", "a few values to check by eye");

void write_parameters(JsonWriter& json, const Finding& finding, Naming) {
  json.begin_object();
  for (const Parameter& parameter : finding.parameters)
    std::visit([&](const auto& value) { json.member(parameter.name, value); }, parameter.value);
  json.end_object();
}
constexpr Field<Finding> kFinding[] = {
    field<&Finding::code>("code", "of the diagnosis: diagnosis.md lists them"),
    field<&Finding::pair>("pair", "its index in `pairs`"),
    field<&Finding::confidence>("confidence", "0 to 1"),
    field<&Finding::explanation>("explanation", "one sentence"),
    {{"parameters", "the numbers of the explanation, by name", {Kind::object}},
     nullptr,
     write_parameters},
    field<&Finding::residual_before>("residual_before", "‖B − A‖ / ‖A‖"),
    field<&Finding::residual_after>("residual_after", "what is left of it under the explanation"),
    field<&Finding::convention>("convention", "not a mistake: later steps undo it"),
    object<&Finding::evidence, kEvidence>("evidence", kEvidenceTable,
                                          "a few values to check by eye"),
};

constexpr Field<Trial> kTrial[] = {
    field<&Trial::pair>("pair", "its index in `pairs`"),
    field<&Trial::code>("code", "of the diagnosis"),
    field<&Trial::outcome>("outcome", "what became of it"),
};
constexpr Table kTrialTable = table<kTrial>("trial", "a diagnosis that was tried");

// --- what has no partner, and what else the files tell ---

std::string_view dtype(const Report::Unpaired& tensor) { return name_of(tensor.id.dtype); }
const std::string& name(const Report::Unpaired& tensor) { return tensor.id.name; }
const Shape& shape(const Report::Unpaired& tensor) { return tensor.id.shape; }
MaybeText fault(const Report::Unpaired& tensor) { return {tensor.id.fault}; }
MaybeText nearest(const Report::Unpaired& tensor) { return {tensor.nearest}; }
MaybeText why(const Report::Unpaired& tensor) { return {tensor.why}; }
MaybeText novelty(const Report::Unpaired& tensor) { return {std::string(name_of(tensor.novelty))}; }
constexpr Field<Report::Unpaired> kUnpaired[] = {
    field<name>("name", "as in its file"),
    field<dtype>("dtype", "as stored"),
    field<shape>("shape", "as stored"),
    field<fault>("message", "why it cannot be read"),
    field<&Report::Unpaired::layer_absent>("layer_absent",
                                           "the other side lacks this layer: not a difference"),
    field<&Report::Unpaired::not_dumped>(
        "not_dumped", "of two dumps: the other did not record it: coverage, not a difference"),
    field<nearest>("nearest", "the most similar name on the other side"),
    field<&Report::Unpaired::likeness>("likeness", "their similarity, 0 to 1"),
    field<why>("why", "why they are still not paired; in `auxiliary`, what it is"),
    field<novelty>("baseline", "of a difference, with `--baseline`").among(kNovelties),
};
constexpr Table kUnpairedTable = table<kUnpaired>("unpaired", "a tensor without a partner");

constexpr Field<Report> kAuxiliary[] = {
    object<&Report::auxiliary_a, kUnpaired>("a", kUnpairedTable, "those of A"),
    object<&Report::auxiliary_b, kUnpaired>("b", kUnpairedTable, "those of B"),
};
constexpr Table kAuxiliaryTable = table<kAuxiliary>(
    "auxiliary", "tensors without a partner that are not weights, so not a difference");

constexpr Field<MetadataChange> kMetadata[] = {
    field<&MetadataChange::key>("key", "as the file has it"),
    field<&MetadataChange::a>("a", "its value in A; null where A has no such key"),
    field<&MetadataChange::b>("b", "its value in B; null where B has no such key"),
};
constexpr Table kMetadataTable =
    table<kMetadata>("metadata", "what the files say about themselves and differ in");

constexpr Field<ConversionRow> kConversion[] = {
    field<&ConversionRow::how>("rule", "how B is made from A"),
    field<&ConversionRow::a>("a", "the names in A, with `#` for numbers"),
    field<&ConversionRow::b>("b", "the names in B"),
    field<&ConversionRow::pairs>("pairs", "those that follow it, as indexes in `pairs`"),
    field<&ConversionRow::exceptions>("exceptions", "and those of the kind that do not"),
};
constexpr Table kConversionTable =
    table<kConversion>("conversion", "how the tensors of one kind were converted");

bool holds(const BaselineDelta& delta) { return delta.holds(); }
constexpr Field<BaselineDelta> kBaseline[] = {
    field<holds>("holds", "nothing is new, and nothing has grown"),
    field<&BaselineDelta::known>("known", "differences that were there before"),
    field<&BaselineDelta::gone>("gone", "and are gone now"),
    field<&BaselineDelta::added>("new", "names of new differences"),
    field<&BaselineDelta::grown>("grown", "names of those that have grown"),
};
constexpr Table kBaselineTable = table<kBaseline>("baseline", "against an earlier result");

// --- the report ---

// One line for each pair. There may be a hundred thousand, so they are written in parallel, a batch
// at a time.
void write_pairs(JsonWriter& json, const Report& report, Naming naming) {
  const std::vector<PairRow>& rows = report.pairs;
  constexpr std::size_t kBatch = 4096;
  constexpr std::size_t kBetween = 8;  // Bytes: what separates two lines.
  json.begin_array();
  for (std::size_t first = 0; first < rows.size(); first += kBatch) {
    std::vector<std::string> lines(std::min(kBatch, rows.size() - first));
    for_each_index(lines.size(), [&](std::size_t i) {
      JsonWriter line;
      line.reserve(2048);
      write_object(line, rows[first + i], pair_fields(), naming);
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

std::string_view schema(const Report&) { return kSchema; }
std::string_view tool_name(const Report&) { return "tensordiff"; }
std::string_view tool_version(const Report&) { return kVersion; }
bool has_baseline(const Report& report) { return report.baseline.has_value(); }
bool has_logits(const Report& report) { return report.logits != nullptr; }
bool has_trials(const Report& report) { return !report.trials.empty(); }

constexpr Field<Report> kTool[] = {
    field<tool_name>("name", "`tensordiff`"),
    field<tool_version>("version", "of the program"),
};
constexpr Table kToolTable = table<kTool>("tool", "what made the report");

void write_analyses(JsonWriter& json, const Report& report, Naming) {
  json.begin_object();
  for (const Answer& answer : report.analyses) {
    json.key(answer.name);
    write_answer(json, answer);
  }
  json.end_object();
}

void write_predictions(JsonWriter& json, const Report& report, Naming) {
  write_logits(json, *report.logits);
}

constexpr std::string_view kSchemas[] = {kSchema};
constexpr Field<Report> kReport[] = {
    field<schema>("schema", "the version of this table").among(kSchemas),
    object<itself, kTool>("tool", kToolTable, "what made the report"),
    object<&Report::a, kSide>("a", kSideTable, "the reference"),
    object<&Report::b, kSide>("b", kSideTable, "what is compared with it"),
    object<itself, kSummary>("summary", kSummaryTable, "the counts and the verdict"),
    object<first, kDivergence>("first_divergence", kDivergenceTable,
                               "the first step that makes an error of its own"),
    object<&Report::findings, kFinding>("findings", kFindingTable,
                                        "what kinds of difference there are"),
    {{"pairs",
      "in the order of computing, else by layer and stage, else in the order of A",
      {Kind::object, false, true, &kPairTable}},
     nullptr,
     write_pairs},
    object<&Report::only_a, kUnpaired>("only_a", kUnpairedTable, "tensors missing from B"),
    object<&Report::only_b, kUnpaired>("only_b", kUnpairedTable, "tensors missing from A"),
    {{"analyses", "those that were asked for, by name: analyses.md", {Kind::object}},
     nullptr,
     write_analyses},
    object<&Report::metadata, kMetadata>("metadata", kMetadataTable,
                                         "what the files say about themselves and differ in"),
    field<&Report::notes>("notes", "what pairing and alignment assumed, in words"),
    object<next, kDivergence>("next_divergences", kDivergenceTable,
                              "steps after the first that make an error of their own"),
    object<itself, kAuxiliary>("auxiliary", kAuxiliaryTable,
                               "tensors without a partner that are not weights"),
    object<&Report::conversion, kConversion>(
        "conversion", kConversionTable,
        "of two checkpoints: how each kind of tensor was converted; kinds with exceptions first"),
    Field<Report>{
        {"logits", "where logits or log-probabilities are all there is: logits.md", {Kind::object}},
        nullptr,
        write_predictions}
        .where(has_logits),
    object<&Report::baseline, kBaseline>("baseline", kBaselineTable, "with `--baseline`")
        .where(has_baseline),
    object<&Report::trials, kTrial>("trials", kTrialTable, "with `--explain`").where(has_trials),
};

}  // namespace

constinit const Table kReportTable = table<kReport>("report", "the whole result of a comparison");
constinit const Table kFindingTable =
    table<kFinding>("finding", "what kind of difference a pair shows: diagnosis.md");

std::span<const Field<Finding>> finding_fields() { return kFinding; }
std::span<const Field<Problem>> problem_fields() { return kProblem; }
std::span<const Field<ConversionRow>> conversion_fields() { return kConversion; }
std::span<const Field<Report>> report_fields() { return kReport; }

}  // namespace tensordiff::wire
