#include "report/answer_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "report/divergence_text.h"
#include "report/rank_orders.h"
#include "report/selection.h"
#include "report/text_chart.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

constexpr std::size_t kLabelColumns = 11;  // The widest usual label, DIFFERENT, and a gap of two.
constexpr std::size_t kEdgeMax = 100;      // The eye does not follow a line over a wider gap.
constexpr std::size_t kLengthMax = 1000;
constexpr std::size_t kAlsoMax = 8;   // More lines than this push the table off the screen.
constexpr std::size_t kNamesMax = 3;  // Of a group of tensors, those that are named.

std::string pad(std::string_view label) {
  const std::size_t width = columns(label);
  return std::string(width + 2 > kLabelColumns ? 2 : kLabelColumns - width, ' ');
}

std::string verdict_label(const Report& report, const Style& style) {
  std::string label(verdict_text(report.summary.verdict));
  for (char& c : label)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  return style(tone_of(report.summary.verdict), label) + pad(label);
}

std::string counts_text(const Report& report, const Style& style) {
  const Summary& summary = report.summary;
  const std::pair<uint64_t, Status> counts[] = {
      {summary.error, Status::error},         {summary.incomparable, Status::incomparable},
      {summary.different, Status::different}, {summary.same_shape, Status::same_shape},
      {summary.close, Status::close},         {summary.equal, Status::equal},
      {summary.identical, Status::identical}};
  std::string list;
  for (const auto& [count, status] : counts)
    if (count > 0)
      list += (list.empty() ? "" : ", ") +
              style(tone_of(status), fmt::format("{} {}", human_count(count), status_text(status)));
  const auto unpaired = [&](const std::vector<Report::Unpaired>& tensors, char side) {
    const std::string text = fmt::format("{} only in {}", human_count(tensors.size()), side);
    const bool differs = std::ranges::any_of(tensors, &Report::Unpaired::is_difference);
    return style(differs ? Tone::trouble : Tone::plain, text);
  };
  std::vector<std::string> alone;
  if (!report.only_a.empty()) alone.push_back(unpaired(report.only_a, 'A'));
  if (!report.only_b.empty()) alone.push_back(unpaired(report.only_b, 'B'));
  if (alone.empty()) alone.emplace_back("none unpaired");
  list += fmt::format("{}{}", list.empty() ? "" : "; ", fmt::join(alone, ", "));
  if (!report.summary.caveat.empty()) list += "; " + printable(summary.caveat, kLengthMax);
  return list;
}

// "layer 1, post_attn", or the name where layers are not known.
std::string step_text(const PairRow& row) {
  if (row.layer && !row.stage.empty())
    return fmt::format("layer {}, {}", *row.layer, printable(row.stage));
  return names_of(row);
}

std::string place_text(const Report& report) {
  if (!report.first_divergence) return "";
  if (!report.steps) return changes_text(report);
  return "first divergence: " + step_text(report.pairs[report.first_divergence->pair]);
}

// The confidence stands at the right edge of a terminal: of the first line, where there are more.
std::string cause_line(const Finding& finding, const Style& style, std::size_t width) {
  std::string text = printable(finding.explanation, kLengthMax);
  const std::string confidence = confidence_text(finding.confidence);
  const std::size_t used = kLabelColumns + columns(text) + columns(confidence);
  if (used + 2 > width && width > 2 * kLabelColumns) {
    const std::size_t room = width - columns(confidence) - 2;
    text = wrapped(text, room, std::string(kLabelColumns, ' '), kLabelColumns);
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::size_t gap = room + 2 - std::min(room, kLabelColumns + columns(text.substr(0, end)));
    text.insert(end, std::string(gap, ' ') + style(Tone::dim, confidence));
    return labelled("cause", text, style);
  }
  const std::size_t edge = std::min(width, kEdgeMax);
  const std::size_t gap = used + 2 > edge ? 2 : edge - used;
  return labelled("cause", text + std::string(gap, ' ') + style(Tone::dim, confidence), style);
}

constexpr std::string_view kError = "relative error ";
constexpr double kSameError = 0.05;  // Two ways to measure one error differ by less.

bool is_nearly(const std::string& number, double wanted) {
  return std::abs(std::strtod(number.c_str(), nullptr) - wanted) <= kSameError * std::abs(wanted);
}

std::string evidence_line(const Divergence& first, const Finding* finding, const Style& style) {
  std::string text = printable(first.explanation, kLengthMax);
  if (finding && finding->residual_before && finding->residual_after &&
      *finding->residual_before != *finding->residual_after) {
    const double before = *finding->residual_before;
    const std::string error = std::string(kError) + short_number(before);
    const std::string undone =
        fmt::format(" → {} with this cause undone", short_number(*finding->residual_after));
    // The explanation often has the same error already, but for rounding, and it is said once.
    const std::size_t at = text.find(kError);
    const std::size_t end = std::min(text.find(';', at), text.size());
    if (at == std::string::npos)
      text += (text.empty() ? "" : "; ") + error + undone;
    else if (is_nearly(text.substr(at + kError.size(), end - at), before))
      text.replace(at, end - at, error + undone);
    else  // Causes are tried on a part, or measured against the step computed again.
      text.insert(end, fmt::format(" (where examined: {}{})", short_number(before), undone));
  }
  return text.empty() ? "" : labelled("evidence", text, style);
}

// What is said alike of several pairs is said once; so are blocks in one order, along any axis, and
// tensors that hold the values of others.
struct Group {
  std::string text;
  std::string blocks;
  std::vector<std::size_t> pairs;
  std::vector<std::string> values_of;  // For each pair, the tensor whose values it holds.
};

constexpr std::string_view kOtherTensor = "B is another tensor of A";

// "'h.1.attn'" of "B is another tensor of A: 'h.1.attn'"; empty for any other finding.
std::string other_tensor(const Finding& finding) {
  const std::string_view text = finding.explanation;
  const bool is_one = finding.code == "other_tensor" && text.starts_with(kOtherTensor) &&
                      text.substr(kOtherTensor.size()).starts_with(": '");
  return is_one ? std::string(text.substr(kOtherTensor.size() + 2)) : "";
}

// Says of a pair that nothing is wrong with it.
bool is_rounding(const Finding& finding) {
  return finding.code == "precision_noise" && finding.explanation.starts_with("rounding: ");
}

std::vector<Group> groups_of(const Report& report, std::optional<std::size_t> but) {
  std::vector<Group> groups;
  for (const Finding& finding : report.findings) {
    if (but && (finding.pair == *but || is_rounding(finding))) continue;
    const std::string blocks = block_order_text(finding);
    const std::string other = other_tensor(finding);
    const auto same = std::ranges::find_if(groups, [&](const Group& group) {
      return group.text == finding.explanation || (!blocks.empty() && group.blocks == blocks) ||
             (!other.empty() && !group.values_of.empty());
    });
    if (same == groups.end()) {
      groups.push_back({finding.explanation, blocks, {finding.pair}, {}});
      if (!other.empty()) groups.back().values_of.push_back(other);
      continue;
    }
    if (same->text != finding.explanation) same->text = other.empty() ? blocks : kOtherTensor;
    if (same->pairs.back() == finding.pair) continue;
    same->pairs.push_back(finding.pair);
    if (!other.empty()) same->values_of.push_back(other);
  }
  return groups;
}

// `cause`: what the answer gives as the cause, which is not said twice.
std::string group_text(const Group& group, const Report& report, std::string_view cause) {
  const auto step = [&](std::size_t pair) { return step_text(report.pairs[pair]); };
  const auto short_step = [&](std::size_t pair) {
    const PairRow& row = report.pairs[pair];
    return row.layer && !row.stage.empty() ? step_text(row) : name_of_a(row);
  };
  const bool same = group.text == cause;
  const std::string text = same ? "the same cause" : printable(group.text, kLengthMax);
  if (group.pairs.size() == 1) return step(group.pairs[0]) + ": " + text;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(kNamesMax, group.pairs.size()); ++i) {
    names.push_back(short_step(group.pairs[i]));
    if (i < group.values_of.size()) names[i] += " is " + printable(group.values_of[i]);
  }
  if (group.pairs.size() > kNamesMax) names.emplace_back("…");
  // "layer 1, query" has a comma of its own.
  const bool commas = std::ranges::any_of(
      names, [](const std::string& name) { return name.find(',') != std::string::npos; });
  return fmt::format("{}: {} ({})", counted(group.pairs.size(), "tensor"), text,
                     fmt::join(names, commas ? "; " : ", "));
}

std::string list(std::string_view label, const std::vector<std::string>& lines,
                 const Style& style) {
  std::string out;
  const std::size_t shown = lines.size() > kAlsoMax + 1 ? kAlsoMax : lines.size();
  for (std::size_t i = 0; i < shown; ++i) out += labelled(i == 0 ? label : "", lines[i], style);
  if (shown < lines.size())
    out +=
        labelled("", fmt::format("… and {} more (-o report has all)", lines.size() - shown), style);
  return out;
}

// Further divergences, then findings about other pairs.
std::string also_lines(const Report& report, const Style& style) {
  std::vector<std::string> lines;
  for (const Divergence& next : report.next_divergences)
    if (!finding_at(report, next.pair))
      lines.push_back(step_text(report.pairs[next.pair]) + ": " +
                      printable(next.explanation, kLengthMax));
  const bool first = report.steps && report.first_divergence;
  const std::optional<std::size_t> but =
      first ? std::optional(report.first_divergence->pair) : std::nullopt;
  const Finding* cause = but ? finding_at(report, *but) : nullptr;
  const std::vector<Group> groups = groups_of(report, but);
  for (const Group& group : groups)
    lines.push_back(group_text(group, report, cause ? cause->explanation : std::string_view()));
  if (first) return list("also", lines, style);
  // Of two checkpoints: all that changed has one cause. A single tensor was just named.
  const uint64_t changed = report.summary.different + report.summary.incomparable;
  const bool one = lines.size() == 1 && groups.size() == 1 && groups[0].pairs.size() == changed;
  if (one && changed == 1) lines[0] = printable(groups[0].text, kLengthMax);
  return list(one ? "cause" : "findings", lines, style);
}

std::string side_lines(const Report& report, const Style& style) {
  const std::string a = printable(report.a.path), b = printable(report.b.path);
  const std::size_t name = std::max(columns(a), columns(b));
  const auto line = [&](std::string_view which, const std::string& path, const Side& side) {
    const std::string facts = fmt::format("{}, {}, {}", side.format,
                                          counted(side.tensors, "tensor"), human_bytes(side.bytes));
    return labelled(
        which, path + std::string(name - columns(path) + 2, ' ') + style(Tone::dim, facts), style);
  };
  return line("A", a, report.a) + (report.alone ? "" : line("B", b, report.b));
}

}  // namespace

std::string labelled(std::string_view label, std::string_view text, const Style& style) {
  return style(Tone::dim, label) + pad(label) + std::string(text) + "\n";
}

std::string verdict_line(const Report& report, const Style& style) {
  return verdict_label(report, style) +
         (report.pairs.empty() && !report.summary.caveat.empty()
              ? printable(report.summary.caveat, kLengthMax)
              : counted(report.pairs.size(), "pair") + ": " + counts_text(report, style)) +
         "\n";
}

namespace {

// What only one of two dumps has was not compared, and is no difference.
std::string coverage_line(const Report& report, const Style& style) {
  const std::size_t alone = report.only_a.size() + report.only_b.size();
  if (!report.steps || alone == 0 || report.pairs.empty()) return "";
  return labelled("coverage",
                  fmt::format("{} of {} steps compared", human_count(report.pairs.size()),
                              human_count(report.pairs.size() + alone)),
                  style);
}

}  // namespace

std::string changes_text(const Report& report) {
  const PairRow* largest = largest_change(report);
  if (!largest) return "";
  const uint64_t changed = report.summary.different + report.summary.incomparable;
  std::string text =
      fmt::format("{} of {} changed", human_count(changed), counted(report.pairs.size(), "tensor"));
  text += (changed > 1 ? "; largest change: " : ": ") + names_of(*largest);
  if (const auto& change = as_shown(largest->comparison.diff).rel_l2)
    text += fmt::format(" (relative L2 {})", short_number(*change));
  return text;
}

std::string answer_lines(const Report& report, const Style& style, std::size_t width) {
  const std::string place = place_text(report);
  if (place.empty())
    return verdict_line(report, style) + also_lines(report, style) + coverage_line(report, style) +
           side_lines(report, style);
  std::string out = verdict_label(report, style) + style(Tone::bold, place) + "\n";
  if (report.steps) {
    const std::size_t pair = report.first_divergence->pair;
    const Finding* finding = finding_at(report, pair);
    const std::string message = printable(message_of(report.pairs[pair]), kLengthMax);
    if (finding)
      out += cause_line(*finding, style, width);
    else if (!message.empty())
      out += labelled("cause", message, style);
    out += evidence_line(*report.first_divergence, finding, style);
  }
  return out + also_lines(report, style) +
         labelled("pairs", human_count(report.pairs.size()) + ": " + counts_text(report, style),
                  style) +
         coverage_line(report, style) + side_lines(report, style);
}

}  // namespace tensordiff
