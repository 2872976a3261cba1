#include "report/compare_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "report/answer_blocks.h"
#include "report/answer_text.h"
#include "report/chart.h"
#include "report/divergence_text.h"
#include "report/logits_report.h"
#include "report/review.h"
#include "report/selection.h"
#include "report/trials_text.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

using doc::Look;

constexpr std::size_t kListMax = 200;  // Of unpaired tensors and of trials.
constexpr std::size_t kBarsMax = 12;
constexpr std::size_t kLayersMax = 200, kStagesMax = 40;  // Of a map that can still be read.

std::string title_of(const Report& report) {
  const auto last = [](const std::string& path) {
    const std::size_t slash = path.find_last_of('/', path.size() - 2);
    return slash == std::string::npos ? path : path.substr(slash + 1);
  };
  if (report.b.path.empty()) return last(report.a.path);
  return last(report.a.path) + " → " + last(report.b.path);
}

void add_summary(const Report& report, doc::Document& document) {
  const Summary& summary = report.summary;
  const std::tuple<uint64_t, Status> counts[] = {
      {summary.error, Status::error},         {summary.incomparable, Status::incomparable},
      {summary.different, Status::different}, {summary.same_shape, Status::same_shape},
      {summary.close, Status::close},         {summary.equal, Status::equal},
      {summary.identical, Status::identical}};
  doc::Tiles tiles;
  tiles.tiles.push_back({"pairs", human_count(report.pairs.size())});
  for (const auto& [count, status] : counts)
    if (count > 0)
      tiles.tiles.push_back(
          {std::string(status_text(status)), human_count(count), look_of(status)});
  if (!report.only_a.empty())
    tiles.tiles.push_back({"only in A", human_count(report.only_a.size()), Look::trouble});
  if (!report.only_b.empty())
    tiles.tiles.push_back({"only in B", human_count(report.only_b.size()), Look::trouble});
  document.blocks.emplace_back(std::move(tiles));
  if (!summary.caveat.empty())
    document.blocks.emplace_back(
        doc::Callout{summary.verdict == Conclusion::trouble ? Look::trouble : Look::plain,
                     capitalised(summary.caveat),
                     "",
                     {}});
}

void add_baseline(const Report& report, doc::Document& document) {
  if (!report.baseline) return;
  const BaselineDelta& delta = *report.baseline;
  doc::Callout callout{delta.holds() ? Look::good : Look::bad,
                       delta.holds() ? "The baseline holds" : "Worse than the baseline",
                       baseline_text(delta)};
  for (const std::string& name : delta.added) callout.facts.push_back("new: " + name);
  for (const std::string& name : delta.grown) callout.facts.push_back("grown: " + name);
  if (callout.facts.size() > kListMax) callout.facts.resize(kListMax);
  document.blocks.emplace_back(std::move(callout));
}

std::string parameter_text(const Parameter& parameter) {
  if (const double* number = std::get_if<double>(&parameter.value))
    return fmt::format("{} = {}", parameter.name, short_number(*number));
  if (const std::string* text = std::get_if<std::string>(&parameter.value))
    return fmt::format("{} = {}", parameter.name, *text);
  return fmt::format("{} = {}", parameter.name,
                     shape_text(std::get<std::vector<uint64_t>>(parameter.value)));
}

std::vector<std::string> evidence(const Report& report, const PairRow& row) {
  std::vector<std::string> facts = {"pair: " + names_of(row)};
  if (const Finding* finding = finding_at(report, row.index)) {
    facts.push_back(fmt::format("diagnosis: {}, confidence {}", finding->code,
                                confidence_text(finding->confidence)));
    std::string parameters;
    for (const Parameter& parameter : finding->parameters)
      parameters += (parameters.empty() ? "" : ", ") + parameter_text(parameter);
    if (!parameters.empty()) facts.push_back("parameters: " + parameters);
  }
  const Diff diff = as_shown(row.comparison.diff);
  if (const std::string where = where_text(diff); !where.empty())
    facts.push_back("largest difference at " + where);
  if (diff.rel_l2)
    facts.push_back(fmt::format("relative L2 error {}, cosine {}", short_number(*diff.rel_l2),
                                cosine_text(diff.cosine)));
  return facts;
}

// A few values of both sides, and what the finding makes of a: what a reader can check by eye.
void add_slice(const Report& report, std::size_t pair, doc::Document& document) {
  const Finding* finding = finding_at(report, pair);
  if (!finding || !finding->evidence || finding->evidence->a.empty()) return;
  const EvidenceSlice& slice = *finding->evidence;
  doc::Table table{{{"values from " + shape_text(slice.at)}}, {}};
  for (std::size_t i = 0; i < slice.a.size(); ++i)
    table.columns.push_back({"+" + std::to_string(i), true});
  const auto add = [&](std::string name, const std::vector<double>& values) {
    if (values.size() != slice.a.size()) return;
    std::vector<doc::Cell> cells = {{std::move(name)}};
    for (const double value : values) cells.push_back({fmt::format("{:.5g}", value)});
    table.rows.push_back(std::move(cells));
  };
  add("A", slice.a);
  add("B", slice.b);
  add("A, with the finding applied", slice.model);
  document.blocks.emplace_back(std::move(table));
}

// One divergence: its cause, what else is to be said of it, and values to check.
void tell(const Report& report, const PairRow& row, doc::Callout callout, doc::Document& document) {
  std::string cause = cause_at(report, row.index);
  if (!cause.empty()) cause += callout.body.empty() ? "." : ". ";
  callout.body = cause + callout.body;
  callout.facts = evidence(report, row);
  document.blocks.emplace_back(std::move(callout));
  add_slice(report, row.index, document);
}

void add_divergences(const Report& report, doc::Document& document) {
  if (!report.first_divergence && report.findings.empty()) return;
  document.blocks.emplace_back(doc::Heading{report.steps ? "First divergence" : "Changes"});
  std::set<std::size_t> told;
  // Of weights none comes first.
  if (const PairRow* largest = report.steps ? nullptr : largest_change(report)) {
    tell(report, *largest, {Look::bad, changes_text(report), "", {}}, document);
    told.insert(largest->index);
  }
  if (const auto& first = report.first_divergence; first && report.steps) {
    const PairRow& row = report.pairs[first->pair];
    const std::string why = first->explanation.empty() ? "" : capitalised(first->explanation) + ".";
    tell(report, row, {Look::bad, "Diverges " + place_of(row), why, {}}, document);
    told.insert(first->pair);
  }
  for (const Divergence& next : report.next_divergences) {
    const PairRow& row = report.pairs[next.pair];
    tell(report, row, {Look::close, "Then " + place_of(row), "", {}}, document);
    told.insert(next.pair);
  }
  doc::Table rest{{{"pair"}, {"code"}, {"finding"}, {"confidence", true}}, {}};
  for (const Finding& finding : report.findings)
    if (!told.contains(finding.pair))
      rest.rows.push_back({{names_of(report.pairs[finding.pair]), Look::plain, true},
                           {finding.code, Look::plain, true},
                           {cause_of(finding)},
                           {confidence_text(finding.confidence)}});
  if (!rest.rows.empty()) document.blocks.emplace_back(std::move(rest));
}

// One square for each layer and stage, where there is more than one of both.
std::optional<doc::Chart> layer_map(const Report& report) {
  std::map<int64_t, std::size_t> layers;
  std::vector<std::string> stages;
  for (const PairRow& row : report.pairs) {
    if (!row.layer || row.stage.empty()) continue;
    layers.emplace(*row.layer, 0);
    if (std::ranges::find(stages, row.stage) == stages.end()) stages.push_back(row.stage);
  }
  if (layers.size() < 2 || layers.size() > kLayersMax || stages.size() < 2 ||
      stages.size() > kStagesMax)
    return std::nullopt;
  HeatMap map;
  map.rows = stages;
  map.unit = "relative L2 error";
  for (auto& [layer, column] : layers) {
    column = map.columns.size();
    map.columns.push_back(std::to_string(layer));
  }
  map.values.resize(stages.size() * layers.size());
  for (const PairRow& row : report.pairs) {
    if (!row.layer || row.stage.empty()) continue;
    const auto stage =
        static_cast<std::size_t>(std::ranges::find(stages, row.stage) - stages.begin());
    map.values[stage * layers.size() + layers[*row.layer]] = row.comparison.diff.rel_l2;
  }
  return heat_map("Relative L2 error by layer and stage", map);
}

void add_charts(const Report& report, doc::Document& document) {
  std::vector<ChartPoint> all, largest;
  const bool marks = report.first_divergence.has_value();
  for (const PairRow& row : report.pairs)
    all.push_back({names_of(row), row.comparison.diff.rel_l2, look_of(row.comparison.status),
                   row.layer ? fmt::format("layer {}", *row.layer) : "",
                   marks && report.first_divergence->pair == row.index});
  RenderOptions options;
  options.show = std::set{Status::different};
  for (const PairRow* row : select_pairs(report, options, Sort::difference))
    if (largest.size() < kBarsMax && row->comparison.diff.rel_l2)
      largest.push_back({names_of(*row), row->comparison.diff.rel_l2, Look::bad});
  if (all.size() > 1)
    document.blocks.emplace_back(dot_chart(
        "Relative L2 error of each pair, in order; the ring marks the first divergence", all));
  if (std::optional<doc::Chart> map = layer_map(report))
    document.blocks.emplace_back(std::move(*map));
  if (largest.size() > 1)
    document.blocks.emplace_back(bar_chart("Largest changes, by relative L2 error", largest));
}

doc::Cell number_cell(const std::optional<double>& number) {
  return {number_or_dash(number), Look::plain, false, number};
}

std::vector<doc::Cell> cells_of(const PairRow& row) {
  const Diff diff = as_shown(row.comparison.diff);
  const Status status = row.comparison.status;
  const uint64_t beyond = diff.exceeding + diff.nonfinite_mismatch;
  const uint64_t looked_at = diff.compared + diff.nonfinite_mismatch + diff.nonfinite_agreeing;
  std::string about;
  for (const std::string& remark : remarks(row)) about += (about.empty() ? "" : "; ") + remark;
  if (about.empty()) about = where_text(diff);
  return {
      {names_of(row), Look::plain, true},
      {std::string(status_text(row)), row.novelty == Novelty::known ? Look::dim : look_of(status),
       false, static_cast<double>(status)},
      {both(name_of(row.a.dtype), name_of(row.b.dtype)), Look::dim},
      {shapes_of(row), Look::dim},
      number_cell(diff.max_abs),
      number_cell(diff.rel_l2),
      {cosine_text(diff.cosine), Look::plain, false, diff.cosine},
      {looked_at ? share_text(beyond, looked_at) : "–", beyond ? Look::bad : Look::plain, false,
       looked_at ? static_cast<double>(beyond) / static_cast<double>(looked_at) : 0},
      {std::move(about), Look::dim}};
}

void add_pairs(const Report& report, const RenderOptions& options, doc::Document& document) {
  const std::vector<const PairRow*> rows = select_pairs(report, options, Sort::layer);
  if (rows.empty()) return;
  document.blocks.emplace_back(doc::Heading{"Pairs"});
  doc::Table table{{{"pair"},
                    {"status"},
                    {"dtype"},
                    {"shape"},
                    {"max |Δ|", true},
                    {"rel L2", true},
                    {"cosine", true},
                    {"beyond", true},
                    {"remark"}},
                   {}};
  table.searchable = true;
  const std::size_t most = options.top.value_or(0) > 0 ? *options.top : rows.size();
  for (std::size_t i = 0; i < std::min(most, rows.size()); ++i)
    table.rows.push_back(cells_of(*rows[i]));
  if (rows.size() > most)
    table.note =
        fmt::format("{} more are not shown (--top 0 shows all).", human_count(rows.size() - most));
  document.blocks.emplace_back(std::move(table));
}

void add_unpaired(const std::vector<Report::Unpaired>& tensors, std::string_view side,
                  doc::Document& document) {
  if (tensors.empty()) return;
  document.blocks.emplace_back(doc::Heading{fmt::format("Only in {}", side)});
  doc::Table table{{{"tensor"}, {"dtype"}, {"shape"}, {"remark"}}, {}};
  for (std::size_t i = 0; i < std::min(kListMax, tensors.size()); ++i) {
    const Report::Unpaired& tensor = tensors[i];
    std::string remark = tensor.id.fault.empty() ? "" : "unreadable: " + tensor.id.fault;
    if (remark.empty() && tensor.layer_absent) remark = "the other side lacks this layer";
    if (remark.empty() && tensor.not_dumped) remark = "the other side did not dump it";
    if (tensor.novelty == Novelty::known) remark = "known";
    if (tensor.merged) remark = tensor.why;
    if (remark.empty() && !tensor.nearest.empty())
      remark = fmt::format("nearest name: {}{}{}", tensor.nearest, tensor.why.empty() ? "" : ": ",
                           tensor.why);
    table.rows.push_back({{tensor.id.name, Look::plain, true},
                          {std::string(name_of(tensor.id.dtype)), Look::dim},
                          {shape_text(tensor.id.shape), Look::dim},
                          {std::move(remark), Look::dim}});
  }
  if (tensors.size() > kListMax)
    table.note = fmt::format("{} more.", human_count(tensors.size() - kListMax));
  document.blocks.emplace_back(std::move(table));
}

void add_inputs(const Report& report, doc::Document& document) {
  doc::Table table{{{"side"}, {"path"}, {"format"}, {"tensors", true}, {"size", true}}, {}};
  const auto add = [&](std::string which, const Side& side) {
    table.rows.push_back({{std::move(which)},
                          {side.path, Look::plain, true},
                          {side.format},
                          {human_count(side.tensors)},
                          {human_bytes(side.bytes)}});
  };
  add("A", report.a);
  if (!report.b.path.empty()) add("B", report.b);
  document.blocks.emplace_back(doc::Heading{"Inputs"});
  document.blocks.emplace_back(std::move(table));
  doc::List remarks;
  for (const Side* side : {&report.a, &report.b})
    for (const Problem& problem : side->problems)
      remarks.items.push_back(fmt::format("problem in {}: {}{}", side == &report.a ? "A" : "B",
                                          problem.where.empty() ? "" : problem.where + ": ",
                                          problem.message));
  for (const std::string& note : report.notes) remarks.items.push_back("note: " + note);
  if (!remarks.items.empty()) document.blocks.emplace_back(std::move(remarks));
}

void add_predictions(const Report& report, doc::Document& document) {
  if (!report.logits) return;
  doc::Document predictions = logits_document(*report.logits);
  document.blocks.emplace_back(doc::Heading{"Predictions"});
  for (doc::Block& block : predictions.blocks)
    if (!std::holds_alternative<doc::Callout>(block)) document.blocks.push_back(std::move(block));
}

void add_review(const Report& report, doc::Document& document) {
  Review review = review_of(report);
  document.blocks.emplace_back(doc::Heading{"What changed"});
  document.blocks.emplace_back(doc::List{std::move(review.changed)});
  document.blocks.emplace_back(doc::Heading{"What to look at"});
  if (review.look_at.empty()) review.look_at = {"Nothing needs a second look."};
  document.blocks.emplace_back(doc::List{std::move(review.look_at)});
}

void add_trials(const Report& report, doc::Document& document) {
  if (report.trials.empty()) return;
  doc::Fold fold{"What was tried", {}};
  for (const TrialGroup& group : trial_groups(report))
    for (const TrialGroup::Outcome& outcome : group.outcomes)
      if (fold.list.items.size() < kListMax)
        fold.list.items.push_back(fmt::format("{}: {}: {}", pairs_text(group, report),
                                              outcome.label, outcome_text(outcome)));
  document.blocks.emplace_back(std::move(fold));
}

}  // namespace

doc::Look look_of(Status status) {
  constexpr Look kLooks[kStatuses] = {Look::good, Look::good,    Look::close,  Look::plain,
                                      Look::bad,  Look::trouble, Look::trouble};
  return kLooks[static_cast<std::size_t>(status)];
}

doc::Look look_of(Conclusion verdict) {
  switch (verdict) {
    case Conclusion::same:
      return Look::good;
    case Conclusion::close:
    case Conclusion::known:
      return Look::close;
    case Conclusion::shapes_match:
      return Look::plain;
    case Conclusion::different:
      return Look::bad;
    case Conclusion::trouble:
      break;
  }
  return Look::trouble;
}

doc::Document compare_document(const Report& report, const RenderOptions& options) {
  doc::Document document;
  document.title = title_of(report);
  document.verdict = verdict_text(report.summary.verdict);
  document.look = look_of(report.summary.verdict);
  document.subtitle = report.b.path.empty()
                          ? fmt::format("Every tensor of {} with every other", report.a.path)
                          : fmt::format("A = {}, B = {}", report.a.path, report.b.path);
  add_summary(report, document);
  add_baseline(report, document);
  if (options.review) {
    add_review(report, document);
    return document;
  }
  if (options.brief) return document;
  add_divergences(report, document);
  add_predictions(report, document);
  add_charts(report, document);
  add_answers(report.analyses, document);
  add_pairs(report, options, document);
  if (options.show_unpaired) {
    add_unpaired(report.only_a, "A", document);
    add_unpaired(report.only_b, "B", document);
  }
  add_trials(report, document);
  add_inputs(report, document);
  return document;
}

}  // namespace tensordiff
