// One row in full: both tensors, how they were brought together, and all numbers.

#include <cmath>

#include "align/view.h"
#include "base/text.h"
#include "report/json_values.h"
#include "report/wire.h"
#include "report/wording.h"
#include "serve/axis_names.h"
#include "serve/routes.h"
#include "serve/rows.h"

namespace tensordiff::serve {
namespace {

// A pair has one or two findings; more are not offered.
constexpr std::size_t kFindingsTried = 4;

void write_tensor(JsonWriter& json, const TensorId& id, const View* view, const Stats* stats) {
  json.begin_object().member("name", id.name).member("dtype", tensordiff::name_of(id.dtype));
  json.member("shape", id.shape).key("strides");
  const bool one_piece = view && view->parts.size() == 1 && view->terms == 1;
  one_piece ? json.value(view->parts[0].strides) : json.null();
  json.key("bytes");
  const uint64_t elements = element_count(id.shape).value_or(0);
  json.value((elements * info(id.dtype).bits + 7) / 8).key("stats");
  stats ? write_stats(json, *stats) : static_cast<void>(json.null());
  text_or_null(json, "fault", id.fault);
  json.end_object();
}

// The signal-to-noise ratio of b as a picture of a, in decibels: 20·log10(‖a‖ / ‖d‖).
std::optional<double> snr_db(const Diff& diff) {
  if (!diff.rel_l2 || *diff.rel_l2 == 0 || !std::isfinite(*diff.rel_l2)) return std::nullopt;
  return -20 * std::log10(*diff.rel_l2);
}

void write_diff(JsonWriter& json, const Diff& of) {
  const Diff diff = as_shown(of);
  json.begin_object();
  wire::write_members(json, diff, wire::diff_fields(), wire::Naming::camel);
  json.member("snrDb", snr_db(diff)).member("ratio", tolerance_ratio(diff)).end_object();
}

// The same steps for NumPy; nothing where ranks were put together first.
std::optional<std::string> numpy_of(const std::vector<Step>& steps, char side, Shape shape) {
  std::string text(1, side);
  for (const Step& step : steps) {
    if (step.side != side) continue;
    const std::vector<uint64_t>& argument = step.argument;
    const std::string list = comma_text(argument);
    if (step.op == Op::squeeze) {
      text += fmt::format(".squeeze({})", argument[0]);
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(argument[0]));
    } else if (step.op == Op::permute) {
      text += fmt::format(".transpose({})", list);
      Shape moved;
      for (const uint64_t axis : argument) moved.push_back(shape[axis]);
      shape = moved;
    } else if (step.op == Op::split) {
      const auto axis = shape.begin() + static_cast<std::ptrdiff_t>(argument[0]);
      shape.insert(shape.erase(axis), argument.begin() + 1, argument.end());
      text += fmt::format(".reshape({})", comma_text(shape));
    } else if (step.op == Op::truncate || step.op == Op::select) {
      const uint64_t first = step.op == Op::select ? argument[1] : 0;
      std::string colons;
      for (uint64_t axis = 0; axis < argument[0]; ++axis) colons += ":, ";
      text += fmt::format("[{}{}:{}]", colons, first, first + argument.back());
      shape[argument[0]] = argument.back();
    } else {
      return std::nullopt;
    }
  }
  return text;
}

// Whether the error is made here: known of pairs that diverge, from the findings of the run.
std::optional<bool> introduced(const Report& report, std::size_t pair) {
  // Nothing that came before is known to differ: what was not made here may be, all the same.
  const auto made = [](const Divergence& each) {
    return each.created ? std::optional(true) : std::nullopt;
  };
  if (report.first_divergence && report.first_divergence->pair == pair)
    return made(*report.first_divergence);
  for (const Divergence& next : report.next_divergences)
    if (next.pair == pair) return made(next);
  const Status status = report.pairs[pair].comparison.status;
  const bool judged = report.pairs[pair].verdict.has_value();
  // Nothing can be carried to where nothing has diverged yet.
  const bool behind = report.first_divergence && pair > report.first_divergence->pair;
  return judged && behind && status == Status::different ? std::optional(false) : std::nullopt;
}

void write_steps(JsonWriter& json, const std::vector<Step>& steps, char side) {
  json.begin_array();
  for (const Step& step : steps) {
    if (step.side != side) continue;
    json.begin_object();
    write_step(json, step);
    json.end_object();
  }
  json.end_array();
}

// What a finding leaves of the pair, where one is applied: the numbers of T(A) against B.
using Left = std::optional<Comparison>;

void write_pair(JsonWriter& json, const SessionState& state, const Row& row, const OpenPair* open,
                const Left& left) {
  const PairRow& pair = *row.pair;
  const bool compared = was_compared(row);
  // Before it is measured, the layout is known to whoever looks at its values.
  const AlignedPair* early = row.pending && open && open->aligned ? &*open->aligned : nullptr;
  const std::vector<Step>& steps = early ? early->steps : pair.steps;
  wire::write_some(json, pair, wire::pair_fields(), {"layer", "stage", "matched_by"});
  json.key("a");
  const View* a = open && open->a ? &*open->a : nullptr;
  const View* b = open && open->b ? &*open->b : nullptr;
  const Stats& of_a = left ? left->a : pair.comparison.a;
  write_tensor(json, pair.a, a, compared ? &of_a : nullptr);
  json.key("b");
  write_tensor(json, pair.b, b, compared ? &pair.comparison.b : nullptr);
  json.key("shape");
  compared || early ? json.value(early ? early->a.shape : pair.shape) : json.null();
  json.member("axes",
              compared ? axis_names(state.results.report, pair) : std::vector<std::string>());
  json.key("transforms").begin_object().key("a");
  write_steps(json, steps, 'a');
  json.key("b");
  write_steps(json, steps, 'b');
  json.end_object().key("metrics");
  left ? write_diff(json, left->diff) : write_metrics(json, row);
  json.member("introduced", introduced(state.results.report, row.id));
  json.key("findings").begin_array();
  for (const Finding& finding : state.results.report.findings)
    if (finding.pair == row.id) write_finding(json, finding);
  json.end_array().key("numpy").begin_object();
  json.member("a", numpy_of(steps, 'a', pair.a.shape));
  json.member("b", numpy_of(steps, 'b', pair.b.shape)).end_object();
}

void write_alone(JsonWriter& json, const Row& row, const OpenPair* open, const Stats* stats) {
  const bool is_b = row.kind == Row::Kind::only_b;
  json.key("layer").null().key("stage").null().key("matchedBy").null();
  for (const char* side : {"a", "b"}) {
    json.key(side);
    if ((*side == 'b') != is_b) {
      json.null();
      continue;
    }
    const View* view = open ? open->side(*side, true) : nullptr;
    write_tensor(json, row.alone->id, view, stats);
  }
  json.member("shape", row.alone->id.shape).key("axes").begin_array().end_array();
  json.key("transforms").begin_object();
  json.key("a").begin_array().end_array().key("b").begin_array().end_array().end_object();
  json.key("metrics").null().key("introduced").null().key("findings").begin_array().end_array();
  json.key("numpy").null();
}

}  // namespace

void write_metrics(JsonWriter& json, const Row& row) {
  was_compared(row) ? write_diff(json, row.pair->comparison.diff) : static_cast<void>(json.null());
}

void write_finding(JsonWriter& json, const Finding& finding) {
  wire::write_object(json, finding, wire::finding_fields(), wire::Naming::camel);
}

namespace {

// The findings of a row that can be applied to A, by their numbers.
std::vector<uint64_t> applicable(App& app, const Target& target) {
  std::size_t findings = 0;
  target.session->read([&](const SessionState& state) {
    for (const Finding& finding : state.results.report.findings)
      findings += finding.pair == target.row;
  });
  std::vector<uint64_t> numbers;
  for (std::size_t i = 0; i < std::min(findings, kFindingsTried); ++i)
    if (app.pairs.open(app.sessions, target.session, target.row, i).ok()) numbers.push_back(i);
  return numbers;
}

Result<Left> left_of(const OpenPair& open) {
  if (!open.applied) return Left();
  const Tolerance& limit = open.comparison.diff.tolerance;
  const CompareOptions options{
      .atol = limit.atol, .rtol = limit.rtol, .equal_nan = open.equal_nan, .on_progress = {}};
  return Left(TRY(compare(*open.aligned, options)));
}

}  // namespace

Reply get_pair(const Call& call) {
  const Target target = row_of(call);
  if (target.failure) return *target.failure;
  // A row says what it knows also where its values cannot be had.
  App& app = call.app;
  const std::optional<std::size_t> finding = TRY(finding_wanted(call));
  const Result<OpenPairPtr> opened =
      app.pairs.open(app.sessions, target.session, target.row, finding);
  if (finding && !opened.ok()) return problem(422, opened.error().message());
  Left left;
  if (finding) left = TRY(left_of(*opened.value()));
  const std::vector<uint64_t> can = applicable(app, target);
  const OpenPair* open = opened.ok() ? opened.value().get() : nullptr;
  // Of a tensor alone nothing was measured yet.
  std::optional<Stats> alone;
  if (open && !open->aligned && !open->compared && (open->a.has_value() != open->b.has_value())) {
    Result<Stats> stats = statistics(open->a ? *open->a : *open->b);
    if (stats.ok()) alone = std::move(stats).value();
  }
  JsonWriter json;
  target.session->read([&](const SessionState& state) {
    if (target.row >= state.row_count()) return;
    const Row row = state.row(target.row);
    json.begin_object().member("id", uint64_t{row.id}).member("status", status_word(row));
    json.key("verdict");
    row.pair&& row.pair->verdict ? json.value(tensordiff::name_of(*row.pair->verdict))
                                 : json.null();
    row.pair ? write_pair(json, state, row, open, left)
             : write_alone(json, row, open, alone ? &*alone : nullptr);
    text_or_null(json, "message",
                 row.pair ? tensordiff::message_of(*row.pair) : row.alone->id.fault);
    text_or_null(json, "unreadable", opened.ok() ? "" : opened.error().message());
    text_or_null(json, "note", row.note);
    const Layout* layout = row.pair ? state.settings.layout_of(row.pair->a.name) : nullptr;
    text_or_null(json, "dims", layout ? layout->dims : "");
    json.member("applicable", can).key("applied");
    finding ? json.value(uint64_t{*finding}) : json.null();
    json.key("v");
    open ? json.value(open->version) : json.null();
    json.end_object();
  });
  if (json.text().empty()) return problem(404, "that pair no longer exists");
  return json_response(json.take());
}

}  // namespace tensordiff::serve
