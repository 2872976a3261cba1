#include "report/wording.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/side.h"
#include "base/text.h"

namespace tensordiff {
namespace {

void remark_character(const PairRow& row, std::vector<std::string>& out) {
  const std::string a = character(row.comparison.a, row.a.shape);
  const std::string b = character(row.comparison.b, row.b.shape);
  if (a.empty() && b.empty()) return;
  if (a == b)
    out.push_back(fmt::format("both are {}", a));
  else if (b.empty())
    out.push_back(fmt::format("A is {}, B is not", a));
  else if (a.empty())
    out.push_back(fmt::format("B is {}, A is not", b));
  else
    out.push_back(fmt::format("A is {}, B is {}", a, b));
}

std::string nonfinite_text(const Stats& stats) {
  if (stats.nan + stats.inf == 0) return "none";
  if (stats.inf == 0) return human_count(stats.nan) + " NaN";
  if (stats.nan == 0) return human_count(stats.inf) + " Inf";
  return fmt::format("{} NaN and {} Inf", human_count(stats.nan), human_count(stats.inf));
}

}  // namespace

std::string character(const Stats& stats, const Shape& shape) {
  const uint64_t elements = element_count(shape).value_or(0);
  if (elements == 0) return "empty";
  if (elements == 1) return "";  // Every single number is constant.
  if (stats.finite == 0 && stats.nan > 0 && stats.inf == 0) return "all NaN";
  if (stats.finite == 0 && stats.inf > 0 && stats.nan == 0) return "all infinite";
  if (stats.finite == 0) return stats.nan > 0 ? "all NaN or infinite" : "";
  if (stats.nan > 0 || stats.inf > 0) return "";
  if (stats.zeros == stats.finite) return "all zeros";
  if (stats.min && stats.min == stats.max) return "constant " + short_number(*stats.min);
  return "";
}

std::vector<std::string> remarks(const PairRow& row) {
  std::vector<std::string> out;
  if (std::string message = message_of(row); !message.empty())
    out.push_back(printable(message, 1000));
  const Status status = row.comparison.status;
  if (status == Status::incomparable || status == Status::error) return out;
  remark_character(row, out);
  const Diff& diff = row.comparison.diff;
  if (diff.nonfinite_mismatch > 0)
    out.push_back(fmt::format("NaN/Inf mismatch at {}: A has {}, B has {}",
                              counted(diff.nonfinite_mismatch, "element"),
                              nonfinite_text(row.comparison.a), nonfinite_text(row.comparison.b)));
  if (diff.nonfinite_agreeing > 0)
    out.push_back(fmt::format("the same NaN or Inf on both sides at {}, which counts as agreement",
                              counted(diff.nonfinite_agreeing, "element")));
  return out;
}

std::string note_text(const LayoutNote& note) {
  using enum LayoutNote::Kind;
  switch (note.kind) {
    case flattened:
      return "no axes in common: compared element by element in the order they are stored";
    case one_of_stack:
      return fmt::format("axis {} of {} stacks {}, of which only the first is compared", note.axis,
                         capital(note.side), note.size);
    case only_beginning:
    case only_end:
      return fmt::format("{} has {} more rows on axis {}: only the {} {} are compared",
                         capital(note.side), note.size - note.kept, note.axis,
                         note.kind == only_end ? "last" : "first", note.kept);
    case not_confirmed:
      return "layout not confirmed by values";
    case other_order:
      return "the shapes fit as they are, but the values only with the axes in another order";
    case rope_rows:
      return fmt::format("{}: in each head of {}, {} has neighbours where {} has halves", kRopeRows,
                         note.size, note.side == 'a' ? 'B' : 'A', capital(note.side));
  }
  return "";
}

std::string message_of(const PairRow& row) {
  std::string text;
  for (const LayoutNote& note : row.notes) text += (text.empty() ? "" : "; ") + note_text(note);
  if (!text.empty() && !row.message.empty()) text += "; ";
  return text + row.message;
}

std::string_view matched_by_text(const PairRow& row) {
  return row.matched_by ? row.matched_by->name : "";
}

const OpWords& words_of(Op op) {
  static const OpWords kWords[] = {
      {"squeeze", {"axis"}},
      {"permute", {"order..."}},
      {"split", {"axis", "sizes..."}},
      {"truncate", {"axis", "size"}},
      {"select", {"axis", "first", "size"}},
      {"flatten", {}},
      {"replica", {"ranks"}},
      {"sum", {"ranks"}},
      {"concat", {"axis", "ranks", "copies"}},
      {"concat_parts", {"axis", "ranks", "parts..."}},
  };
  static_assert(std::size(kWords) == kOps);
  return kWords[static_cast<std::size_t>(op)];
}

std::string layout_text(const std::vector<Step>& steps) {
  std::string out;
  for (const Step& step : steps) {
    out += fmt::format("{}{}: {} ", out.empty() ? "" : ", ", capital(step.side),
                       words_of(step.op).name);
    if (step.op == Op::permute || step.argument.empty()) {
      out += shape_text(step.argument);
      continue;
    }
    if (step.op == Op::replica || step.op == Op::sum) {
      out += counted(step.argument[0], "rank");
      continue;
    }
    out += fmt::format("axis {}", step.argument[0]);
    if (step.op == Op::concat || step.op == Op::concat_parts) {
      out += " of " + counted(step.argument[1], "rank");
      continue;
    }
    if (step.op == Op::select) {
      out += fmt::format(" from {}, {} of it", step.argument[1], step.argument[2]);
      continue;
    }
    const std::vector<uint64_t> sizes(step.argument.begin() + 1, step.argument.end());
    if (!sizes.empty()) out += " to " + shape_text(sizes);
  }
  return out;
}

std::string share_text(uint64_t part, uint64_t whole) {
  if (part == 0 || whole == 0) return "0 %";
  if (part >= whole) return "100 %";
  const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  if (percent < 0.1) return "<0.1 %";
  if (percent > 99.9) return ">99.9 %";
  return fmt::format("{:.1f} %", percent);
}

std::string short_number(double number) {
  const bool whole = std::abs(number) < 1e6 && number == std::floor(number);
  return whole ? fmt::format("{:.0f}", number + 0.0) : human_number(number);
}

std::string counted(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", human_count(count), noun, count == 1 ? "" : "s");
}

std::string both(std::string_view a, std::string_view b) {
  return a == b ? std::string(a) : fmt::format("{} → {}", a, b);
}

std::string number_or_dash(const std::optional<double>& number) {
  return number ? short_number(*number) : "–";
}

std::string cosine_text(const std::optional<double>& cosine) {
  if (!cosine) return "–";
  // Seven digits would round a small difference up to a perfect 1.
  if (*cosine < 1 && *cosine > 0.9999995) return ">0.999999";
  return fmt::format("{:.6f}", *cosine);
}

Diff as_shown(Diff diff) {
  if (diff.nonfinite_mismatch == 0) return diff;
  diff.max_abs = diff.max_rel = diff.rel_l2 = std::numeric_limits<double>::infinity();
  diff.cosine = diff.pcc = std::nullopt;
  return diff;
}

std::string where_text(const Diff& diff) {
  const bool differs = diff.nonfinite_mismatch > 0 || diff.max_abs.value_or(0) > 0;
  if (!differs) return "";
  const std::string index = diff.max_abs_at.empty() ? "" : shape_text(diff.max_abs_at) + " ";
  if (!diff.a_there || !diff.b_there) return index;
  return index + short_number(*diff.a_there) + " → " + short_number(*diff.b_there);
}

// The shape they were compared in; both where there is none.
std::string shapes_of(const PairRow& row) {
  const bool compared = row.comparison.diff.compared > 0;
  return compared ? shape_text(row.shape) : both(shape_text(row.a.shape), shape_text(row.b.shape));
}

std::string baseline_text(const BaselineDelta& delta) {
  return fmt::format("{}, {} new, {} grown, {} gone", counted(delta.known, "known difference"),
                     delta.added.size(), delta.grown.size(), delta.gone);
}

std::string_view verdict_text(Conclusion verdict) {
  if (verdict == Conclusion::known) return "known differences only";
  if (verdict == Conclusion::shapes_match) return "shapes match";
  return name_of(verdict);
}

std::string_view status_text(Status status) {
  return status == Status::same_shape ? "same shape" : name_of(status);
}

std::string_view status_text(const PairRow& row) {
  return row.novelty == Novelty::known ? "known" : status_text(row.comparison.status);
}

}  // namespace tensordiff
