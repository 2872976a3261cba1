#include "pair_row.h"

#include "base/side.h"
#include "base/text.h"
#include "compare/beyond.h"
#include "report/unread.h"

namespace tensordiff {
namespace {

void fail(PairRow& row, Status status, std::string message) {
  row.comparison = {};
  row.comparison.status = status;
  row.notes.clear();
  row.message = std::move(message);
}

void add_message(PairRow& row, const std::string& message) {
  if (!row.message.empty() && !message.empty()) row.message += "; ";
  row.message += message;
}

Result<Comparison> measure(const Request& request, const Measurement& what, const AlignedPair& pair,
                           const CompareOptions& options, Beyond& beyond) {
  return request.measure ? request.measure(what, pair, options, beyond)
                         : compare(pair, options, beyond);
}

// Compares ranks that should hold the same with each other. One that is out of step is a
// difference, whatever the rank that was compared with the other side says.
Result<void> compare_copies(const AlignedPair& pair, const CompareOptions& options,
                            const Request& request, PairRow& row) {
  CompareOptions quiet = options;
  quiet.on_progress = {};
  Measurement what{row.index, 0, pair.copies.size()};
  for (const Copy& copy : pair.copies) {
    ++what.copy;
    Beyond unasked;
    const Comparison found =
        TRY(measure(request, what, {copy.like_view, copy.view, {}}, quiet, unasked));
    if (found.status != Status::different) continue;
    row.comparison.status = Status::different;
    add_message(row, fmt::format("rank {} of {} should be equal to rank {} but is not: they "
                                 "differ by up to {}",
                                 copy.rank, capital(copy.side), copy.like,
                                 human_number(found.diff.max_abs.value_or(0))));
    break;
  }
  return {};
}

}  // namespace

const ToleranceRule* rule_for(const PairRow& row, const Request& request) {
  return request.rules ? request.rules->find(row.a.name) : nullptr;
}

void compare_pair(const Sides& sides, const Pair& which, const Request& request, PairRow& row) {
  const Tensor& a = sides.a.tensors[which.a];
  const Tensor& b = sides.b.tensors[which.b];
  if (!a.fault.empty()) return fail(row, Status::error, "A: " + a.fault);
  if (!b.fault.empty()) return fail(row, Status::error, "B: " + b.fault);
  if (request.shape_only) return compare_shapes(a, b, row);

  Result<AlignedPair> pair = aligned_views(sides, which);
  if (!pair.ok()) return fail(row, Status::incomparable, pair.error().message());
  row.shape = pair.value().a.shape;
  row.steps = pair.value().steps;
  row.notes = pair.value().notes;

  const ToleranceRule* rule = rule_for(row, request);
  const CompareOptions options = rule ? with_rule(request.compare, *rule) : request.compare;
  if (compare_hashes(pair.value(), options, row)) return;
  Beyond beyond;
  const Measurement what{row.index, 0, pair.value().copies.size()};
  const Result<Comparison> comparison = measure(request, what, pair.value(), options, beyond);
  if (!comparison.ok()) return fail(row, Status::error, comparison.error().message());
  row.comparison = comparison.value();
  if (is_undecoded(a.view.dtype))
    add_message(row, fmt::format("values of {} are not decoded: the bytes were compared",
                                 name_of(a.view.dtype)));
  if (rule) add_message(row, judge(*rule, row.comparison));
  if (const Result<void> copies = compare_copies(pair.value(), options, request, row); !copies.ok())
    return fail(row, Status::error, copies.error().message());
  row.views = std::move(pair).value();
  if (row.comparison.status == Status::different)
    row.beyond = std::make_shared<const Beyond>(std::move(beyond));
}

}  // namespace tensordiff
