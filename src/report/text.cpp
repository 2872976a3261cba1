// `-o text`: the report for a person at a terminal.
//
// First the answer, a labelled line each (answer_text.h), then a table: steps of a run in the order
// of computing, weights by the size of the change. Tensors without a partner and unreadable ones
// are always listed.

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "report/analyses.h"
#include "report/answer_text.h"
#include "report/divergence_text.h"
#include "report/logits_report.h"
#include "report/renderer.h"
#include "report/review.h"
#include "report/selection.h"
#include "report/style.h"
#include "report/table.h"
#include "report/trials_text.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

constexpr std::size_t kRowsDefault = 20;
constexpr std::size_t kCloseDefault =
    5;  // Where nothing differs, a few of the closest calls will do.
constexpr std::size_t kStepsBefore = 2;  // Steps that are shown before the first divergence.
constexpr std::size_t kListDefault = 8;  // Of unpaired tensors and of problems, for each side.

// What is shown of `all`, with the default of the section where the user gave no --top.
std::size_t shown(std::size_t all, const RenderOptions& options, std::size_t fallback) {
  if (options.verbose && !options.top) return all;
  const std::size_t top = options.top.value_or(fallback);
  return top == 0 ? all : std::min(all, top);
}

std::string and_more(std::size_t count, const Style& style) {
  if (count == 0) return "";
  return "  " +
         style(Tone::dim, fmt::format("… and {} more (--top 0 shows all)", human_count(count))) +
         "\n";
}

std::string problem_lines(const Report& report, const RenderOptions& options, const Style& style) {
  std::string out;
  const auto list = [&](std::string_view name, const Side& side) {
    const std::size_t count = shown(side.problems.size(), options, kListDefault);
    for (std::size_t i = 0; i < count; ++i) {
      const Problem& problem = side.problems[i];
      const std::string where = problem.where.empty() ? "" : printable(problem.where) + ": ";
      out += labelled(
          "problem", fmt::format("{}: {}{}", name, where, printable(problem.message, 1000)), style);
    }
    out += and_more(side.problems.size() - count, style);
  };
  list("A", report.a);
  list("B", report.b);
  return out;
}

// Whether the answer begins with it: causes of logits are findings, too.
bool is_told(const Report& report, std::string_view text) {
  return std::ranges::any_of(report.findings, [&](const Finding& finding) {
    return text.starts_with(finding.explanation);
  });
}

std::string note_lines(const Report& report, const RenderOptions& options, const Style& style) {
  std::string out;
  const auto note = [&](std::string_view text) { out += labelled("note", text, style); };
  if (report.logits)
    for (const auto& [label, text] : logits_lines(*report.logits))
      if (!is_told(report, text)) out += labelled(label, printable(text, 1000), style);
  for (const std::string& text : report.notes) note(printable(text, 1000));
  const auto count = [&](auto predicate) {
    return static_cast<uint64_t>(std::ranges::count_if(report.pairs, predicate));
  };
  const uint64_t aligned = count([](const PairRow& row) { return !row.steps.empty(); });
  if (aligned > 0)
    note(fmt::format("{} reshaped or transposed before comparing{}",
                     aligned == 1 ? "1 pair was" : human_count(aligned) + " pairs were",
                     options.verbose ? "" : " (details: -v)"));
  const uint64_t agreeing =
      count([](const PairRow& row) { return row.comparison.diff.nonfinite_agreeing > 0; });
  if (agreeing > 0)
    note(fmt::format("{} the same NaN or Inf on both sides, which counts as agreement",
                     agreeing == 1 ? "1 pair has" : human_count(agreeing) + " pairs have"));
  return out;
}

std::string metadata_lines(const Report& report, const RenderOptions& options, const Style& style) {
  constexpr std::size_t kValueMax = 80;
  std::string out;
  const std::size_t count = shown(report.metadata.size(), options, kListDefault);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& [key, a, b] = report.metadata[i];
    const auto value = [&](const std::optional<std::string>& text) {
      return printable(text.value_or(""), kValueMax);
    };
    const std::string change = a && b ? fmt::format("{} → {}", value(a), value(b))
                               : a    ? "only in A, " + value(a)
                                      : "only in B, " + value(b);
    out += labelled("metadata", fmt::format("{}: {}", printable(key), change), style);
  }
  return out + and_more(report.metadata.size() - count, style);
}

std::vector<Cell> cells_of(const PairRow& row, bool first) {
  const Status status = row.comparison.status;
  const Diff diff = as_shown(row.comparison.diff);
  std::vector<Cell> cells = {
      {(first ? "▶ " : "") + names_of(row), first ? Tone::bold : Tone::plain},
      {std::string(status_text(row)), row.novelty == Novelty::known ? Tone::dim : tone_of(status)},
      {both(name_of(row.a.dtype), name_of(row.b.dtype)), Tone::dim},
      {shapes_of(row), Tone::dim},
  };
  if (status == Status::incomparable || status == Status::error) {
    cells.resize(9);
    return cells;
  }
  const uint64_t beyond = diff.exceeding + diff.nonfinite_mismatch;
  const uint64_t looked_at = diff.compared + diff.nonfinite_mismatch + diff.nonfinite_agreeing;
  cells.push_back({number_or_dash(diff.rel_l2)});
  cells.push_back({cosine_text(diff.cosine)});
  cells.push_back(
      {looked_at ? share_text(beyond, looked_at) : "–", beyond ? Tone::bad : Tone::plain});
  cells.push_back({number_or_dash(diff.max_abs)});
  cells.push_back({where_text(diff), Tone::dim});
  return cells;
}

struct RowsToShow {
  std::vector<const PairRow*> rows;
  std::size_t fallback = kRowsDefault;
};

// Where the user did not choose: what failed or differs, of a run behind the steps that lead to it;
// when nothing does, the closest calls.
RowsToShow rows_to_show(const Report& report, RenderOptions options) {
  const Sort usual = report.steps ? Sort::layer : Sort::difference;
  const bool most_alike = options.sort == Sort::similarity && is_alone(report);
  if (options.show || options.verbose || most_alike) return {select_pairs(report, options, usual)};
  options.show = std::set{Status::error, Status::incomparable, Status::different};
  RowsToShow worst{select_pairs(report, options, usual)};
  if (worst.rows.empty()) {
    options.show = std::set{Status::close};
    return {select_pairs(report, options, Sort::difference), kCloseDefault};
  }
  if (report.steps && report.first_divergence && !options.sort) {
    const std::size_t first = report.first_divergence->pair;
    const auto at = std::ranges::find(worst.rows, first, &PairRow::index);
    const std::size_t before = std::min(first, kStepsBefore);
    std::vector<const PairRow*> lead;
    for (std::size_t i = first - before; i < first; ++i)
      if (std::ranges::find(worst.rows, &report.pairs[i]) == worst.rows.end())
        lead.push_back(&report.pairs[i]);
    worst.rows.insert(at, lead.begin(), lead.end());
  }
  return worst;
}

// How a pair came about: which names, by which strategy, in which layout.
void add_how(const PairRow& row, std::vector<std::string>& lines) {
  if (row.a.name != row.b.name)
    lines.push_back(fmt::format("{}, paired by {}", names_of(row), matched_by_text(row)));
  if (!row.steps.empty())
    lines.push_back("compared as " + shape_text(row.shape) + " after " + layout_text(row.steps));
}

std::string pair_table(const Report& report, const RenderOptions& options, const Style& style) {
  using enum Column::Side;
  Table table({{"pair", left, 0, true},
               {"status"},
               {"dtype", left, 4},
               {"shape", left, 5},
               {"rel L2", right},
               {"cosine", right, 3},
               {"beyond", right, 2},
               {"max |Δ|", right, 1},
               {"at (A → B)"}});
  const auto [rows, fallback] = rows_to_show(report, options);
  const std::size_t count = shown(rows.size(), options, fallback);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::string> below = remarks(*rows[i]);
    if (options.verbose) add_how(*rows[i], below);
    // Weights have no order in which one could be the first.
    const bool first =
        report.steps && report.first_divergence && report.first_divergence->pair == rows[i]->index;
    table.add(cells_of(*rows[i], first), std::move(below));
  }
  if (table.empty()) return "";
  return "\n" + table.render(style, options.width) + and_more(rows.size() - count, style);
}

std::string baseline_lines(const Report& report, const RenderOptions& options, const Style& style) {
  if (!report.baseline) return "";
  const BaselineDelta& delta = *report.baseline;
  std::string out = labelled("baseline", baseline_text(delta), style);
  const auto list = [&](std::string_view what, const std::vector<std::string>& names) {
    const std::size_t count = shown(names.size(), options, kListDefault);
    for (std::size_t i = 0; i < count; ++i)
      out += fmt::format("  {}  {}\n", style(Tone::bad, what), printable(names[i], 1000));
    out += and_more(names.size() - count, style);
  };
  list("new", delta.added);
  list("grown", delta.grown);
  return out;
}

std::string review_text(const Report& report, const Style& style) {
  const Review review = review_of(report);
  std::string out = "\n" + style(Tone::bold, "what changed") + "\n";
  for (const std::string& line : review.changed) out += "  " + line + "\n";
  out += "\n" + style(Tone::bold, "what to look at") + "\n";
  for (const std::string& line : review.look_at) out += "  " + line + "\n";
  if (review.look_at.empty()) out += "  Nothing needs a second look.\n";
  return out;
}

// What the other side has that may have been meant. Of a layer that it lacks, nothing was.
std::string nearest_text(const Report::Unpaired& tensor) {
  if (tensor.merged) return ", " + printable(tensor.why);
  if (tensor.nearest.empty() || tensor.layer_absent) return "";
  return fmt::format(", nearest {} ({:.2f}){}{}", printable(tensor.nearest), tensor.likeness,
                     tensor.why.empty() ? "" : ": ", tensor.why);
}

// "model.layers.3.mlp" -> "model.layers.#.mlp": numbers that are a part of their own.
std::string without_numbers(std::string_view name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_letter = [](char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; };
  std::string out;
  for (std::size_t i = 0; i < name.size();) {
    std::size_t end = i;
    while (end < name.size() && is_digit(name[end])) ++end;
    const bool is_part = end > i && (i == 0 || !is_letter(name[i - 1])) &&
                         (end == name.size() || !is_letter(name[end]));
    if (end == i) end = i + 1;
    out += is_part ? "#" : name.substr(i, end - i);
    i = end;
  }
  return out;
}

// Of two dumps: the kinds of tensors that one side did not record.
std::string kinds_text(const std::vector<Report::Unpaired>& tensors) {
  struct Kind {
    std::string pattern;
    std::string_view first;
    std::size_t count = 0;
  };
  std::vector<Kind> kinds;
  std::unordered_map<std::string, std::size_t> known;
  for (const Report::Unpaired& tensor : tensors) {
    std::string pattern = without_numbers(tensor.id.name);
    const auto [at, added] = known.emplace(pattern, kinds.size());
    if (added) kinds.push_back({std::move(pattern), tensor.id.name});
    ++kinds[at->second].count;
  }
  std::string out;
  for (std::size_t i = 0; i < std::min(kinds.size(), kListDefault); ++i) {
    const auto& [pattern, first, count] = kinds[i];
    out += i == 0 ? "" : ", ";
    out += count == 1 ? printable(first)
                      : fmt::format("{} ({})", printable(pattern), human_count(count));
  }
  return kinds.size() > kListDefault ? out + ", …" : out;
}

std::string unpaired_list(const std::vector<Report::Unpaired>& tensors, std::string_view side,
                          const RenderOptions& options, const Style& style) {
  if (tensors.empty() || !options.show_unpaired) return "";
  const auto absent =
      static_cast<uint64_t>(std::ranges::count_if(tensors, &Report::Unpaired::layer_absent));
  std::string title = fmt::format("only in {}  {}", side, counted(tensors.size(), "tensor"));
  // Layers that only one side dumped are coverage, and must not look like a difference.
  if (absent > 0)
    title += fmt::format(", {} in layers that the other side lacks",
                         absent == tensors.size() ? "all" : human_count(absent));
  const bool is_coverage = std::ranges::none_of(tensors, [](const Report::Unpaired& tensor) {
    return tensor.is_difference() || !tensor.id.fault.empty();
  });
  std::string out = "\n" + style(is_coverage ? Tone::plain : Tone::trouble, title);
  if (is_coverage && !options.verbose && !options.top)
    return out + ": " + style(Tone::dim, kinds_text(tensors) + " (details: -v)") + "\n";
  out += "\n";
  const std::size_t count = shown(tensors.size(), options, kListDefault);
  for (std::size_t i = 0; i < count; ++i) {
    const TensorId& tensor = tensors[i].id;
    const std::string what =
        tensor.fault.empty() ? fmt::format("{} {}", name_of(tensor.dtype), shape_text(tensor.shape))
                             : "unreadable: " + printable(tensor.fault, 1000);
    out += fmt::format("  {}  {}\n", printable(tensor.name),
                       style(Tone::dim, what + nearest_text(tensors[i])));
  }
  return out + and_more(tensors.size() - count, style);
}

std::string render(const Report& report, const RenderOptions& options) {
  const Style style(options.color);
  const std::string baseline = baseline_lines(report, options, style);
  if (options.brief)
    return verdict_line(report, style) + baseline + alarm_lines(report.analyses, style);
  if (options.review) return verdict_line(report, style) + baseline + review_text(report, style);
  return answer_lines(report, style, options.width) + baseline +
         problem_lines(report, options, style) + note_lines(report, options, style) +
         (options.verbose ? needed_line(report, style) : "") +
         metadata_lines(report, options, style) + pair_table(report, options, style) +
         unpaired_list(report.only_a, "A", options, style) +
         unpaired_list(report.only_b, "B", options, style) +
         trial_lines(report, style, options.width) +
         answers_text(report.analyses, style, shown(kListingRowsMax, options, kListDefault),
                      options.width);
}

}  // namespace

constinit const Renderer renderers::text = {
    .name = "text",
    .summary = "for a person: the answer first, then a table of pairs",
    .unpaired_stats = false,
    .render = render,
};

}  // namespace tensordiff
