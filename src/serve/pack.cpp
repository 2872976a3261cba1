// Fields follow each other without names, as Packer writes and Unpacker reads them; each struct
// lists its fields once, for both. What is read is checked as if it came from a stranger.

#include "serve/pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/build_info.h"
#include "base/byte_cursor.h"

namespace tensordiff::serve {
namespace {

// Results of another version are computed again.
std::string magic() { return fmt::format("tensordiff results 6 {}", kVersion); }

class Packer {
 public:
  static constexpr bool kReads = false;
  std::string bytes;

  void raw(const void* data, std::size_t size) {
    bytes.append(static_cast<const char*>(data), size);
  }
  bool ok() const { return true; }
};

class Unpacker {
 public:
  static constexpr bool kReads = true;
  explicit Unpacker(ByteView view) : cursor(view) {}
  ByteCursor cursor;

  void raw(void* data, std::size_t size) {
    const ByteView taken = cursor.take(size);
    if (size > 0 && taken.size() == size) std::memcpy(data, taken.data(), size);
  }
  bool ok() const { return cursor.ok(); }
};

template <class Box, class T>
requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void field(Box& box, T& value) {
  box.raw(&value, sizeof value);
}

// A byte that is neither 0 nor 1 is no bool.
template <class Box>
void field(Box& box, bool& value) {
  uint8_t byte = value ? 1 : 0;
  box.raw(&byte, sizeof byte);
  if constexpr (Box::kReads) value = byte != 0;
}

// A length that is more than what is left is a lie.
template <class Box>
std::size_t length(Box& box, std::size_t size) {
  uint64_t count = size;
  box.raw(&count, sizeof count);
  if constexpr (Box::kReads)
    if (!box.ok() || count > box.cursor.rest().size()) {
      box.cursor.fail();
      return 0;
    }
  return count;
}

template <class Box>
void field(Box& box, std::string& text) {
  const std::size_t size = length(box, text.size());
  if constexpr (Box::kReads) text.resize(size);
  box.raw(text.data(), size);
}

// By name, as strategies may be added anywhere; "" for none.
template <class Box>
void field(Box& box, const Matcher*& matcher) {
  std::string name(matcher ? matcher->name : "");
  field(box, name);
  if constexpr (Box::kReads) {
    matcher = matcher_named(name);
    if (!matcher && !name.empty()) box.cursor.fail();
  }
}

// By name, since rows of the table of types may be added anywhere.
template <class Box>
void field(Box& box, DType& dtype) {
  std::string name(name_of(dtype));
  field(box, name);
  if constexpr (Box::kReads) {
    const std::optional<DType> known = dtype_named(name);
    if (!known) box.cursor.fail();
    dtype = known.value_or(DType::u8);
  }
}

template <class Box, class T>
void field(Box& box, std::optional<T>& value) {
  bool there = value.has_value();
  field(box, there);
  if constexpr (Box::kReads)
    if (there) value.emplace();
  if (there) field(box, *value);
}

template <class Box, class T>
void field(Box& box, std::vector<T>& values) {
  const std::size_t count = length(box, values.size());
  if constexpr (Box::kReads) {
    for (std::size_t i = 0; i < count && box.ok(); ++i) field(box, values.emplace_back());
  } else {
    for (T& value : values) field(box, value);
  }
}

template <class Box, class... Fields>
void all(Box& box, Fields&... fields) {
  (field(box, fields), ...);
}

template <class Box>
void field(Box& box, Problem& problem) {
  all(box, problem.where, problem.message, problem.severity);
}

template <class Box>
void field(Box& box, Side& side) {
  all(box, side.path, side.format, side.tensors, side.elements, side.bytes, side.problems);
}

template <class Box>
void field(Box& box, Place::Digits& digits) {
  all(box, digits.first, digits.size);
}

// As it was when the rows were made: a tensor may have been known by another name then. The
// spelling serves pairing alone, which is done.
template <class Box>
void field(Box& box, Place& place) {
  all(box, place.layer, place.expert, place.head, place.rank, place.call, place.pass, place.step,
      place.parameter, place.tower, place.read, place.known, place.layer_named, place.staged,
      place.layer_at, place.count_at);
}

template <class Box>
void field(Box& box, TensorId& id) {
  all(box, id.name, id.dtype, id.shape, id.fault, id.made_from, id.place);
}

template <class Box>
void field(Box& box, Stats& stats) {
  all(box, stats.finite, stats.zeros, stats.nan, stats.inf, stats.mean, stats.std, stats.min,
      stats.max, stats.norm);
}

template <class Box>
void field(Box& box, Diff& diff) {
  all(box, diff.compared, diff.equal, diff.max_abs, diff.max_abs_at, diff.a_there, diff.b_there,
      diff.mean_abs, diff.mse, diff.rmse, diff.max_rel, diff.mean_rel, diff.rel_l2, diff.cosine,
      diff.pcc, diff.norm_ratio, diff.ulp_max, diff.nonfinite_mismatch, diff.nonfinite_agreeing,
      diff.exceeding, diff.tolerance.atol, diff.tolerance.rtol, diff.rtol_needed);
}

template <class Box>
void field(Box& box, Step& step) {
  all(box, step.side, step.op, step.argument);
}

template <class Box>
void field(Box& box, LayoutNote& note) {
  all(box, note.kind, note.side, note.axis, note.size, note.kept);
}

template <class Box>
void field(Box& box, PairRow& row) {
  all(box, row.index, row.a, row.b, row.layer, row.stage, row.matched_by, row.shape, row.steps,
      row.notes, row.comparison.status, row.comparison.a, row.comparison.b, row.comparison.diff,
      row.message, row.verdict);
}

template <class Box>
void field(Box& box, Report::Unpaired& tensor) {
  all(box, tensor.id, tensor.layer_absent, tensor.not_dumped, tensor.stats, tensor.nearest,
      tensor.likeness, tensor.why);
}

template <class Box>
void field(Box& box, Divergence& divergence) {
  all(box, divergence.pair, divergence.created, divergence.explanation);
}

// The alternatives in their order: 0 number, 1 text, 2 list.
template <class Box>
void field(Box& box, Parameter& parameter) {
  auto which = static_cast<uint8_t>(parameter.value.index());
  all(box, parameter.name, which);
  if constexpr (Box::kReads) {
    if (which == 1) parameter.value.emplace<1>();
    if (which == 2) parameter.value.emplace<2>();
  }
  std::visit([&](auto& value) { field(box, value); }, parameter.value);
}

template <class Box>
void field(Box& box, EvidenceSlice& slice) {
  all(box, slice.at, slice.a, slice.b, slice.model);
}

template <class Box>
void field(Box& box, Finding& finding) {
  all(box, finding.code, finding.pair, finding.confidence, finding.explanation, finding.parameters,
      finding.residual_before, finding.residual_after, finding.convention, finding.evidence);
}

// Its Form is for programs that have the report itself.
template <class Box>
void field(Box& box, ConversionRow& row) {
  all(box, row.how, row.a, row.b, row.pairs, row.exceptions);
}

template <class Box>
void field(Box& box, Results& results) {
  Report& report = results.report;
  all(box, report.a, report.b, report.alone, report.steps, report.first_divergence,
      report.next_divergences, report.findings, report.pairs, report.only_a, report.only_b,
      report.auxiliary_a, report.auxiliary_b, report.notes, report.conversion, results.singles);
}

// Whatever other code takes for granted of what points into the rows.
bool makes_sense(const Report& report) {
  const std::size_t pairs = report.pairs.size();
  const auto inside = [&](const auto& item) { return item.pair < pairs; };
  const auto known_op = [](const Step& step) { return static_cast<std::size_t>(step.op) < kOps; };
  const auto known_note = [](const LayoutNote& note) {
    return static_cast<std::size_t>(note.kind) < kLayoutNotes;
  };
  const auto placed = [](const TensorId& id) {
    return id.place.step <= Role::other && id.place.parameter <= Param::zero_point &&
           id.place.tower <= Tower::vision;
  };
  const auto sound = [&](const PairRow& row) {
    return placed(row.a) && placed(row.b) && row.comparison.status <= Status::error &&
           std::ranges::all_of(row.steps, known_op) && std::ranges::all_of(row.notes, known_note) &&
           row.verdict.value_or(Verdict::bug) <= Verdict::bug;
  };
  const auto known = [](const Problem& problem) { return problem.severity <= Severity::missing; };
  const auto pairs_inside = [&](const ConversionRow& row) {
    const auto below = [&](std::size_t pair) { return pair < pairs; };
    return std::ranges::all_of(row.pairs, below) && std::ranges::all_of(row.exceptions, below);
  };
  const auto alone = [&](const std::vector<Report::Unpaired>& tensors) {
    return std::ranges::all_of(tensors, placed, &Report::Unpaired::id);
  };
  return alone(report.only_a) && alone(report.only_b) && alone(report.auxiliary_a) &&
         alone(report.auxiliary_b) && std::ranges::all_of(report.findings, inside) &&
         std::ranges::all_of(report.conversion, pairs_inside) &&
         std::ranges::all_of(report.next_divergences, inside) &&
         (!report.first_divergence || inside(*report.first_divergence)) &&
         std::ranges::all_of(report.pairs, sound) &&
         std::ranges::all_of(report.a.problems, known) &&
         std::ranges::all_of(report.b.problems, known);
}

}  // namespace

std::string packed(const Results& results) {
  Packer box;
  box.bytes = magic();
  field(box, const_cast<Results&>(results));  // A Packer only reads it.
  return std::move(box.bytes);
}

std::optional<Results> unpacked_results(std::string_view bytes) {
  if (!bytes.starts_with(magic())) return std::nullopt;
  Unpacker box(as_bytes(bytes.substr(magic().size())));
  Results results;
  field(box, results);
  if (!box.ok() || !box.cursor.rest().empty() || !makes_sense(results.report)) return std::nullopt;
  results.report.summary = summarise(results.report);
  return results;
}

}  // namespace tensordiff::serve
