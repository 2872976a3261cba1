// The whole tool, top to bottom.

#include "pipeline.h"

#include <algorithm>
#include <atomic>
#include <map>

#include "analyze/analysis.h"
#include "base/parallel.h"
#include "base/side.h"
#include "base/text.h"
#include "compare/beyond.h"
#include "compare/noise_file.h"
#include "diagnose/graph/edges.h"
#include "diagnose/graph/lone.h"
#include "diagnose/verdict/input_notes.h"
#include "diagnose/verdict/judge.h"
#include "dumps/excerpt.h"
#include "dumps/layout.h"
#include "dumps/tokens.h"
#include "formats/recorded_names.h"
#include "logits/rename.h"
#include "match/apart.h"
#include "match/checkpoint.h"
#include "match/filter.h"
#include "match/ranks.h"
#include "match/state_dicts.h"
#include "naming/naming.h"
#include "pair_row.h"
#include "report/auxiliary.h"
#include "report/conversion.h"
#include "report/divergence_text.h"
#include "report/expert_reach.h"
#include "report/layout_notes.h"
#include "report/predictions.h"
#include "report/rank_orders.h"
#include "report/unpaired.h"
#include "report/unread.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

Side side_of(const Catalog& catalog) {
  return {catalog.path,       catalog.format,  catalog.tensors.size(),
          catalog.elements(), catalog.bytes(), catalog.problems};
}

LayoutOptions layout_of(const Request& request) {
  return {request.align, request.dims, !request.shape_only};
}

Sides sides_of(const Pairing& pairing, const Request& request) {
  Sides sides = sides_of(pairing.a, pairing.b, pairing.matching, layout_of(request));
  sides.conversion = pairing.conversion.get();
  sides.merges = &pairing.merges;
  return sides;
}

// How one checkpoint was made of the other, so that each pair is judged by the same rule.
void infer_rules(const Request& request, Pairing& pairing) {
  if (!request.shape_only) pairing.merges = find_merges(pairing.a, pairing.b, pairing.matching);
  pairing.conversion = conversion_of(sides_of(pairing, request));
}

// Makes whole tensors of what several ranks hold, and says so.
Result<void> gather(const TensorParallel& tp, Catalog& a, Catalog& b, Report& report) {
  if (!tp.enabled) return {};
  RankGroups ranks_a = group_ranks(a, 'a');
  RankGroups ranks_b = group_ranks(b, 'b');
  if (tp.ranks > 0 && ranks_a.ranks != tp.ranks && ranks_b.ranks != tp.ranks)
    return Error("--tp {}: A's names have {} ranks, B's have {}", tp.ranks, ranks_a.ranks,
                 ranks_b.ranks);
  for (RankGroups* ranks : {&ranks_a, &ranks_b})
    for (std::string& note : ranks->notes) report.notes.push_back(std::move(note));
  return {};
}

// Where two names mean one thing, both sides are paired by one of them.
void name_alike(Catalog& a, Catalog& b, std::vector<std::string>& notes) {
  name_normed_weights(a, b);
  meet_by_aliases(a, b);
  name_sequences_alike(a, b, notes);
}

std::vector<PairRow> rows_for(const Matching& matching, const Catalog& a, const Catalog& b) {
  std::vector<PairRow> rows(matching.pairs.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Pair& pair = matching.pairs[i];
    rows[i].index = i;
    rows[i].a = id_of(a.tensors[pair.a], pair.section_a);
    rows[i].b = id_of(b.tensors[pair.b], pair.section_b);
    rows[i].capture = pair.a;
    rows[i].capture_b = pair.b;
    rows[i].layer = pair.layer;
    rows[i].stage = pair.stage;
    rows[i].matched_by = pair.matched_by;
  }
  return rows;
}

// How far the noise run is from a, for each tensor of a.
Result<std::map<std::size_t, double>> noise_levels(const Request& request, const Catalog& a) {
  std::map<std::size_t, double> levels;
  if (request.noise.empty() && !request.noise_run) return levels;
  if (const std::optional<NoiseFloor> floor = TRY(open_noise(request.noise, request.open.roots))) {
    for (std::size_t i = 0; i < a.tensors.size(); ++i)
      if (const auto at = floor->find(a.tensors[i].name); at != floor->end())
        levels[i] = at->second;
    return levels;
  }
  Catalog noise =
      request.noise_run ? *request.noise_run : TRY(open_model(request.noise, request.open));
  TRY(arrange(noise, request.layout));
  const Matching matching = TRY(match(a, noise, request.match));
  const Sides sides = sides_of(a, noise, matching, layout_of(request));
  Request plain = request;
  plain.measure = {};  // That knows the pairs of A and B only.
  for (const Pair& pair : matching.pairs) {
    PairRow row;
    compare_pair(sides, pair, plain, row);
    if (row.comparison.diff.rel_l2) levels[pair.a] = *row.comparison.diff.rel_l2;
  }
  return levels;
}

// Lets go of the elements of a pair: nobody looks at them any more.
void release(Row& row) {
  row.views = {};
  row.beyond.reset();
}

// What diagnose() looks at: each row, with its elements. The row itself keeps them only where they
// are `needed` afterwards.
std::vector<Site> sites_of(std::vector<PairRow>& rows, bool needed,
                           const std::map<std::size_t, double>& noise) {
  std::vector<Site> sites;
  sites.reserve(rows.size());
  for (PairRow& row : rows) {
    Site& site = sites.emplace_back(row);
    if (!needed) release(row);
    if (const auto level = noise.find(site.capture); level != noise.end())
      site.noise = level->second;
  }
  return sites;
}

// What the noise model says of a pair overrides the elementwise tolerance, unless the user set one.
void settle(const Outcome& outcome, const Request& request, PairRow& row) {
  row.verdict = outcome.verdict;
  if (message_of(row).empty()) row.message = outcome.note;
  if (request.compare.atol || request.compare.rtol || rule_for(row, request)) return;
  Status& status = row.comparison.status;
  // Where no element exceeds the tolerance, it is ranks of one side that are out of step.
  const bool exceeds = row.comparison.diff.exceeding + row.comparison.diff.nonfinite_mismatch > 0;
  if (status == Status::different && exceeds && outcome.verdict != Verdict::bug)
    status = Status::close;
  if (status <= Status::close && outcome.verdict == Verdict::bug) status = Status::different;
}

Result<void> explain(const Request& request, const Pairing& pairing, bool needed, Report& report) {
  const Catalog& a = pairing.a;
  const std::map<std::size_t, double> noise = TRY(noise_levels(request, a));
  DiagnoseOptions options = request.diagnose;
  const RecordedRun recorded = recorded_run(a);
  if (options.order.empty()) options.order = recorded.order;
  if (!request.weights.empty()) {
    Catalog weights = TRY(open_model(request.weights, request.open));
    add_tied(recorded, weights);
    options.weights = Weights(weights);
  }
  const bool with_weights = !request.weights.empty();
  std::vector<Site> sites = sites_of(report.pairs, needed, noise);
  note_inputs(recorded.inputs, sites);
  const LoneTensors lone = {
      lone_tensors(a, pairing.matching.only_a, sites, &Row::capture),
      lone_tensors(pairing.b, pairing.matching.only_b, sites, &Row::capture_b)};
  Insight insight = diagnose(std::move(sites), options, lone);
  report.findings = std::move(insight.findings);
  report.trials = std::move(insight.trials);
  if (with_weights) report.notes.push_back(weights_note(insight));
  if (!insight.judged) return {};
  report.steps = true;
  for (const Outcome& outcome : insight.outcomes)
    settle(outcome, request, report.pairs[outcome.pair]);
  const std::optional<FirstDivergence> by_status = first_divergence(report.pairs);
  // A tolerance that the user set may be wider or narrower than the noise.
  const bool stands = by_status && insight.first &&
                      report.pairs[insight.first->pair].comparison.status >= Status::different;
  report.first_divergence = stands ? insight.first : by_status;
  if (by_status) report.next_divergences = std::move(insight.next);
  return {};
}

// The questions about both as a whole that were asked for.
Result<std::vector<Answer>> analyses_of(const Request& request, const Pairing& pairing,
                                        const Report& report) {
  Study study(pairing.a, pairing.b, request.analyze);
  if (!request.analyze.activations.empty()) {
    Catalog dump = TRY(open_model(request.analyze.activations, request.open));
    TRY(arrange(dump, request.layout));
    read_missing_places(dump);
    study.set_activations(std::move(dump));
  }
  for (const std::string& base : request.analyze.bases)
    study.add_base(TRY(open_model(base, request.open)));
  for (const PairRow& row : report.pairs) study.add_pair(row);
  for (const Leftover& left : pairing.matching.only_a)
    study.add_unpaired('a', pairing.a.tensors[left.tensor]);
  for (const Leftover& left : pairing.matching.only_b)
    study.add_unpaired('b', pairing.b.tensors[left.tensor]);
  return analyze(study);
}

// The request with compare() telling how far it is.
Request counting_bytes(const Pairing& pairing, const Request& request,
                       std::atomic<uint64_t>& done) {
  Request counting = request;
  if (!request.progress) return counting;
  const uint64_t total = pairing.a.bytes() + pairing.b.bytes();
  counting.compare.on_progress = [&done, total, tell = request.progress](uint64_t bytes) {
    tell(std::min(done += bytes, total), total);
  };
  return counting;
}

}  // namespace

Result<Pairing> pair_up(Catalog a, std::optional<Catalog> b, const Request& request) {
  Pairing pairing;
  pairing.alone = !b;
  // Read dumps of other programs as what they are; facts are no tensors from here on.
  std::vector<std::string> notes = TRY(arrange(a, b, request.layout));
  const NameFilter filter = TRY(NameFilter::make(request.paths, request.ignore_regex));
  const std::size_t offered_a = a.tensors.size(), offered_b = b ? b->tensors.size() : 0;
  TRY(filter.apply(a));
  if (b) TRY(filter.apply(*b));
  // Catalogs that were not opened from a file, as those of the C++ API, have no places yet.
  read_missing_places(a);
  if (b) read_missing_places(*b);

  // Make whole tensors of what lies on several ranks; how they fit together is for align().
  Report& report = pairing.report;
  report.notes = std::move(notes);
  pairing.b = b ? std::move(*b) : a;
  pairing.a = std::move(a);
  report.a = side_of(pairing.a);
  report.b = side_of(pairing.b);
  report.alone = pairing.alone;
  report.shape_only = request.shape_only;
  report.steps = !pairing.alone && are_dumps(pairing.a, pairing.b);
  // A slip in a filter must not pass for agreement unseen.
  if (pairing.a.tensors.empty() && pairing.b.tensors.empty() && offered_a + offered_b > 0)
    report.nothing_selected =
        fmt::format("0 tensors selected: {} leaves out all {} of A{}",
                    filter_text(request.paths, request.ignore_regex), offered_a,
                    pairing.alone ? "" : fmt::format(" and all {} of B", offered_b));
  if (!pairing.alone) note_mixed_kinds(pairing.a, pairing.b, report.notes);
  if (!pairing.alone) report.metadata = list_metadata_changes(pairing.a, pairing.b);
  TRY(gather(request.tp, pairing.a, pairing.b, report));
  // Rows of dumps are tokens: take those that both sides have, and what both show of them.
  if (!pairing.alone && !request.shape_only) keep_common(pairing.a, pairing.b, report.notes);
  // Weights are paired with weights, and of several state dicts one is meant.
  if (!pairing.alone)
    for (std::string& note : set_aside(pairing.a, pairing.b, !request.shape_only))
      report.notes.push_back(std::move(note));
  if (!pairing.alone) name_alike(pairing.a, pairing.b, report.notes);
  // Decide which tensor answers to which. Leftovers on either side are part of the result.
  MatchOptions options = request.match;
  options.read_values = !request.shape_only;
  pairing.matching =
      pairing.alone ? match_within(pairing.a) : TRY(match(pairing.a, pairing.b, options));
  take_apart(request.apart, pairing.a, pairing.b, pairing.matching);
  const Matching& matching = pairing.matching;
  if (!pairing.alone) infer_rules(request, pairing);
  report.notes.insert(report.notes.end(), matching.notes.begin(), matching.notes.end());
  report.pairs = rows_for(matching, pairing.a, pairing.b);
  // What only one of two dumps has was not dumped by the other: coverage, and no difference.
  const UnpairedOptions how{request.unpaired_stats,
                            !request.require_all && hold_parts(pairing.a, pairing.b)};
  report.only_a = unpaired_rows(pairing.a, pairing.b, matching.only_a, how);
  report.only_b = unpaired_rows(pairing.b, pairing.a, matching.only_b, how);
  if (!pairing.alone) list_auxiliary(pairing.a, pairing.b, matching, report);
  if (!pairing.merges.a.empty() || !pairing.merges.b.empty())
    list_merged(sides_of(pairing, request), report);
  return pairing;
}

Result<Report> compare_pairs(const Pairing& pairing, Report report, const Request& request) {
  // Give each pair one logical shape and measure it. Pairs are independent of each other, and a
  // large one is split further inside compare().
  std::atomic<uint64_t> done = 0;
  const Request with_progress = counting_bytes(pairing, request, done);
  const Sides sides = sides_of(pairing, request);
  for_each_index(report.pairs.size(), [&](std::size_t i) {
    compare_pair(sides, pairing.matching.pairs[i], with_progress, report.pairs[i]);
    if (request.on_row && !called_off()) request.on_row(report.pairs[i]);
  });
  if (called_off()) return Error("cancelled");

  // Tell noise from mistakes and explain these, now that all of it can be seen at once.
  // Tensors of one input do not come from each other.
  const bool asked = !request.analyze.wanted.empty() && !request.shape_only && !pairing.alone;
  if (!pairing.alone) report.first_divergence = first_divergence(report.pairs);
  if (request.diagnose.enabled && !request.shape_only && !pairing.alone)
    TRY(explain(request, pairing, asked, report));
  // Rows that both have are in one order, which the side tells that knows its tokens.
  if (request.diagnose.enabled && !pairing.alone)
    tell_reach(
        common_tokens(pairing.a, pairing.b),
        [&](std::size_t pair) { return align_pair(pairing, pair, request); }, report);
  if (request.diagnose.enabled) report_conversion(sides, report);
  if (!request.shape_only && !pairing.alone)
    judge_predictions(pairing.a, pairing.b, pairing.matching, request.rules.get(), report);
  if (asked) report.analyses = TRY(analyses_of(request, pairing, report));
  if (called_off()) return Error("cancelled");
  for (PairRow& row : report.pairs) release(row);

  // Say what it comes to.
  name_rank_orders(report);
  note_layouts(report);
  note_hashes(report);
  report.summary = summarise(report);
  return report;
}

Result<void> measure_pairs(const Pairing& pairing, std::span<const std::size_t> pairs,
                           const Request& request) {
  std::atomic<uint64_t> done = 0;
  const Request with_progress = counting_bytes(pairing, request, done);
  const Sides sides = sides_of(pairing, request);
  for_each_index(pairs.size(), [&](std::size_t i) {
    PairRow row = pairing.report.pairs[pairs[i]];
    compare_pair(sides, pairing.matching.pairs[pairs[i]], with_progress, row);
  });
  if (called_off()) return Error("cancelled");
  return {};
}

Result<AlignedPair> align_pair(const Pairing& pairing, std::size_t pair, const Request& request) {
  return aligned_views(sides_of(pairing, request), pairing.matching.pairs[pair]);
}

Result<Pairing> open_and_pair(const Request& request) {
  // Read the indexes of both sides. Tensor bytes stay on disk until somebody samples or compares.
  const bool alone = request.b.empty();
  Result<Catalog> opened[2] = {Catalog(), Catalog()};
  for_each_index(alone ? 1 : 2, [&](std::size_t side) {
    opened[side] = open_model(side == 0 ? request.a : request.b, request.open);
  });
  Catalog a = TRY(std::move(opened[0]));
  std::optional<Catalog> b;
  if (!alone) b = TRY(std::move(opened[1]));
  return pair_up(std::move(a), std::move(b), request);
}

Result<Report> compare_models(const Request& request) {
  Pairing pairing = TRY(open_and_pair(request));
  Report report = std::move(pairing.report);
  return compare_pairs(pairing, std::move(report), request);
}

}  // namespace tensordiff
