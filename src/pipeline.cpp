// The whole tool, top to bottom.

#include "pipeline.h"

#include <algorithm>
#include <atomic>

#include "base/parallel.h"
#include "match/filter.h"

namespace tensordiff {
namespace {

Side side_of(const Catalog& catalog) {
  return {catalog.path,       catalog.format,  catalog.tensors.size(),
          catalog.elements(), catalog.bytes(), catalog.problems};
}

TensorId id_of(const Tensor& tensor) {
  return {tensor.name, tensor.view.dtype, tensor.view.shape, tensor.fault};
}

void fail(PairRow& row, Status status, std::string message) {
  row.comparison = {};
  row.comparison.status = status;
  row.message = std::move(message);
}

// Only what can be said without reading an element.
void compare_shapes(const Tensor& a, const Tensor& b, PairRow& row) {
  const bool same = a.view.shape == b.view.shape;
  row.shape = same ? a.view.shape : Shape{};
  row.comparison.status = same ? Status::equal : Status::different;
  row.message = same ? "shapes only: values were not read" : "shapes differ; values were not read";
}

// Fills one row. A bad tensor spoils this row and nothing else.
void compare_pair(const Tensor& a, const Tensor& b, const Request& request, PairRow& row) {
  if (!a.fault.empty()) return fail(row, Status::error, "a: " + a.fault);
  if (!b.fault.empty()) return fail(row, Status::error, "b: " + b.fault);
  if (request.shape_only) return compare_shapes(a, b, row);

  Result<AlignedPair> pair = align(a.view, b.view, request.align);
  if (!pair.ok()) return fail(row, Status::incomparable, pair.error().message());
  row.shape = pair.value().a.shape;
  row.steps = pair.value().steps;
  row.message = pair.value().note;

  const Result<Comparison> comparison = compare(pair.value(), request.compare);
  if (!comparison.ok()) return fail(row, Status::error, comparison.error().message());
  row.comparison = comparison.value();
}

std::vector<PairRow> rows_for(const Matching& matching, const Catalog& a, const Catalog& b) {
  std::vector<PairRow> rows(matching.pairs.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Pair& pair = matching.pairs[i];
    rows[i].index = i;
    rows[i].a = id_of(a.tensors[pair.a]);
    rows[i].b = id_of(b.tensors[pair.b]);
    rows[i].layer = pair.layer;
    rows[i].stage = pair.stage;
    rows[i].matched_by = pair.matched_by;
  }
  return rows;
}

std::vector<Report::Unpaired> unpaired(const Catalog& catalog, const std::vector<Leftover>& which,
                                       bool with_stats) {
  std::vector<Report::Unpaired> rows(which.size());
  for_each_index(which.size(), [&](std::size_t i) {
    const Tensor& tensor = catalog.tensors[which[i].tensor];
    rows[i].id = id_of(tensor);
    rows[i].layer_absent = which[i].layer_absent;
    if (!with_stats || !tensor.fault.empty()) return;
    Result<Stats> stats = statistics(tensor.view);
    if (stats.ok())
      rows[i].stats = std::move(stats).value();
    else
      rows[i].id.fault = stats.error().message();
  });
  return rows;
}

// The first pair in display order that is not close.
std::optional<FirstDivergence> first_divergence(const std::vector<PairRow>& rows) {
  for (const PairRow& row : rows) {
    const Status status = row.comparison.status;
    if (status == Status::different || status == Status::incomparable)
      return FirstDivergence{row.index, false,
                             "the first pair, in display order, that is not close"};
  }
  return std::nullopt;
}

}  // namespace

Result<Report> compare_models(const Request& request) {
  // Read the indexes of both sides. Tensor bytes stay on disk until somebody samples or compares.
  Result<Catalog> opened[2] = {Catalog(), Catalog()};
  for_each_index(2, [&](std::size_t side) {
    opened[side] = open_model(side == 0 ? request.a : request.b, request.open);
  });
  Catalog a = TRY(std::move(opened[0]));
  Catalog b = TRY(std::move(opened[1]));
  const NameFilter filter = TRY(NameFilter::make(request.paths, request.ignore_regex));
  filter.apply(a);
  filter.apply(b);

  // Decide which tensor answers to which. Leftovers on either side are part of the result.
  const Matching matching = TRY(match(a, b, request.match));

  // Give each pair one logical shape and measure it. Pairs are independent of each other, and a
  // large one is split further inside compare().
  Report report;
  report.a = side_of(a);
  report.b = side_of(b);
  report.notes = matching.notes;
  report.pairs = rows_for(matching, a, b);
  Request with_progress = request;
  std::atomic<uint64_t> done = 0;
  if (request.progress) {
    const uint64_t total = a.bytes() + b.bytes();
    with_progress.compare.on_progress = [&, total](uint64_t bytes) {
      request.progress(std::min(done += bytes, total), total);
    };
  }
  for_each_index(report.pairs.size(), [&](std::size_t i) {
    const Pair& pair = matching.pairs[i];
    compare_pair(a.tensors[pair.a], b.tensors[pair.b], with_progress, report.pairs[i]);
  });
  report.only_a = unpaired(a, matching.only_a, request.unpaired_stats);
  report.only_b = unpaired(b, matching.only_b, request.unpaired_stats);

  // Say what it comes to, now that all of it can be seen at once.
  report.summary = summarise(report);
  report.first_divergence = first_divergence(report.pairs);
  return report;
}

}  // namespace tensordiff
