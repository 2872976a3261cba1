#include "report/logits_report.h"

#include <algorithm>

#include "base/text.h"
#include "report/chart.h"
#include "report/csv_row.h"
#include "report/json_values.h"
#include "report/style.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

constexpr std::size_t kPointsMax = 400;  // More dots than a chart is wide tell nothing.

std::string with_error(const Estimate& estimate) {
  return fmt::format("{} ± {}", human_number(estimate.mean), human_number(estimate.error));
}

std::string percent(double share) { return fmt::format("{:.4g} %", 100 * share); }

std::string percent(const Estimate& share) {
  return fmt::format("{:.4g} ± {:.2g} %", 100 * share.mean, 100 * share.error);
}

std::string place_of(const LogitsComparison& comparison, std::size_t sequence, uint64_t position) {
  if (comparison.names.size() == 1) return fmt::format("position {}", position);
  return fmt::format("{}, position {}", printable(comparison.names[sequence]), position);
}

const PositionPoint* worst_of(const LogitsDiff& diff) {
  const auto worst = std::ranges::max_element(diff.points, {}, &PositionPoint::kl);
  return worst == diff.points.end() ? nullptr : &*worst;
}

std::string other_token_text(const LogitsComparison& comparison) {
  const LogitsDiff& diff = comparison.diff;
  if (!diff.first_other) return diff.same_top ? "never: the most likely tokens are the same" : "";
  const OtherToken& other = *diff.first_other;
  return fmt::format("at {}: A takes {} (ahead by {}), B takes {} (ahead by {})",
                     place_of(comparison, other.sequence, other.position), other.a,
                     human_number(other.margin_a), other.b, human_number(other.margin_b));
}

doc::Look look_of(LogitsVerdict verdict) {
  if (verdict == LogitsVerdict::different) return doc::Look::bad;
  return verdict == LogitsVerdict::same ? doc::Look::good : doc::Look::close;
}

void write_estimate(JsonWriter& json, std::string_view name, const std::optional<Estimate>& value) {
  json.key(name);
  if (!value) {
    json.null();
    return;
  }
  json.begin_object().member("mean", value->mean).member("error", value->error).end_object();
}

void write_shares(JsonWriter& json, std::string_view name, const Percentiles& values, bool any) {
  json.key(name);
  if (!any) {
    json.null();
    return;
  }
  json.begin_object();
  for (std::size_t i = 0; i < values.size(); ++i)
    json.member(fmt::format("p{:g}", 100 * kShares[i]), values[i]);
  json.end_object();
}

void write_other_token(JsonWriter& json, const LogitsComparison& comparison) {
  json.key("first_different_token");
  if (!comparison.diff.first_other) {
    json.null();
    return;
  }
  const OtherToken& other = *comparison.diff.first_other;
  json.begin_object().member("sequence", comparison.names[other.sequence]);
  json.member("position", other.position).member("a", other.a).member("b", other.b);
  json.member("margin_a", other.margin_a).member("margin_b", other.margin_b).end_object();
}

void write_causes(JsonWriter& json, const LogitsComparison& comparison) {
  json.key("findings").begin_array();
  for (const Finding& finding : comparison.findings) {
    json.begin_object().member("code", finding.code);
    json.member("sequence", comparison.names[finding.pair]);
    json.member("confidence", finding.confidence).member("explanation", finding.explanation);
    json.key("parameters");
    write_parameters(json, finding.parameters);
    json.member("convention", finding.convention);
    json.member("kl_before", finding.residual_before).member("kl_after", finding.residual_after);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::vector<std::pair<std::string, std::string>> logits_lines(const LogitsComparison& comparison) {
  const LogitsDiff& diff = comparison.diff;
  std::vector<std::pair<std::string, std::string>> lines;
  for (const Finding& finding : comparison.findings)
    lines.emplace_back(finding.convention ? "note" : "cause",
                       fmt::format("{}  [{}]", finding.explanation, finding.code));
  for (const std::string& gate : comparison.failed) lines.emplace_back("gate", gate);
  if (diff.kl) {
    const std::string what = diff.vocabulary ? "" : " (estimated, for tokens drawn from B)";
    const PositionPoint* worst = worst_of(diff);
    lines.emplace_back(
        "KL", fmt::format("mean {}{}; median {}; 99 % below {}; largest {}{}", with_error(*diff.kl),
                          what, human_number(diff.kl_shares[4]), human_number(diff.kl_shares[7]),
                          human_number(diff.kl_max),
                          worst && worst->kl > 0
                              ? " at " + place_of(comparison, worst->sequence, worst->position)
                              : ""));
    lines.emplace_back("Δp", fmt::format("mean {}; rms {}; median {}; 90 % lie in [{}, {}]{}",
                                         percent(diff.delta_p_mean), percent(diff.delta_p_rms),
                                         percent(diff.delta_p[4]), percent(diff.delta_p[2]),
                                         percent(diff.delta_p[6]),
                                         diff.told ? "" : " (of A's most likely token)"));
  }
  if (diff.same_top)
    lines.emplace_back("same top", percent(*diff.same_top) + " of the most likely tokens");
  if (diff.overlap)
    lines.emplace_back("overlap", fmt::format("{} of the {} most likely tokens, {} of the {}",
                                              percent((*diff.overlap)[0]), kTops[0],
                                              percent((*diff.overlap)[1]), kTops[1]));
  if (diff.perplexity_ratio)
    lines.emplace_back(
        "perplexity",
        fmt::format("{} → {}; ratio {}", human_number(*diff.perplexity_a),
                    human_number(*diff.perplexity_b), with_error(*diff.perplexity_ratio)));
  if (std::string other = other_token_text(comparison); !other.empty())
    lines.emplace_back("diverges", std::move(other));
  if (diff.unusable > 0)
    lines.emplace_back("not finite",
                       fmt::format("{} on one side or both", counted(diff.unusable, "position")));
  return lines;
}

std::string logits_text(const LogitsComparison& comparison, const RenderOptions& options) {
  const Style style(options.color);
  const LogitsDiff& diff = comparison.diff;
  std::string verdict(name_of(comparison.verdict));
  std::ranges::transform(verdict, verdict.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  std::string out = fmt::format(
      "{}  {} of {}{}\n",
      style(comparison.verdict == LogitsVerdict::different ? Tone::bad : Tone::good, verdict),
      counted(diff.positions, "position"), counted(comparison.names.size(), "sequence"),
      diff.vocabulary ? fmt::format(", {} words", human_count(diff.vocabulary)) : "");
  if (options.brief) return out;
  for (const auto& [label, text] : logits_lines(comparison))
    out += fmt::format("{:<12}{}\n", label, printable(text, 1000));
  for (const std::string& note : comparison.notes)
    out += fmt::format("{:<12}{}\n", "note", printable(note, 1000));
  return out;
}

void write_logits(JsonWriter& json, const LogitsComparison& comparison) {
  const LogitsDiff& diff = comparison.diff;
  const bool any = diff.kl.has_value();
  json.begin_object().member("verdict", name_of(comparison.verdict));
  json.member("sequences", uint64_t{comparison.names.size()});
  json.member("positions", diff.positions).member("unusable", diff.unusable);
  json.member("vocabulary", diff.vocabulary ? std::optional(diff.vocabulary) : std::nullopt);
  json.member("equal", diff.equal);
  write_estimate(json, "kl", diff.kl);
  write_shares(json, "kl_percentiles", diff.kl_shares, any);
  json.member("kl_max", any ? std::optional(diff.kl_max) : std::nullopt);
  write_estimate(json, "delta_p", any ? std::optional(diff.delta_p_mean) : std::nullopt);
  json.member("delta_p_rms", any ? std::optional(diff.delta_p_rms) : std::nullopt);
  write_shares(json, "delta_p_percentiles", diff.delta_p, any);
  json.member("delta_p_of", diff.told ? "next token" : "most likely token of A");
  write_estimate(json, "same_top", diff.same_top);
  for (std::size_t k = 0; k < std::size(kTops); ++k)
    json.member(fmt::format("overlap_top_{}", kTops[k]),
                diff.overlap ? std::optional((*diff.overlap)[k]) : std::nullopt);
  json.member("perplexity_a", diff.perplexity_a).member("perplexity_b", diff.perplexity_b);
  write_estimate(json, "perplexity_ratio", diff.perplexity_ratio);
  json.member("ratio_error", any ? std::optional(diff.ratio_error) : std::nullopt);
  write_other_token(json, comparison);
  write_causes(json, comparison);
  json.member("failed_gates", comparison.failed).member("notes", comparison.notes);
  json.end_object();
}

std::string logits_json(const LogitsComparison& comparison) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().member("schema", "tensordiff.logits/1").key("logits");
  write_logits(json, comparison);
  json.end_object();
  return json.take() + "\n";
}

std::string logits_csv(const LogitsComparison& comparison) {
  std::string out = "sequence,position,kl,delta_p\n";
  for (const PositionPoint& point : comparison.diff.points) {
    CsvRow row;
    row.text(comparison.names[point.sequence]).field(point.position).field(point.kl);
    out += row.field(point.delta_p).take();
  }
  return out;
}

doc::Chart logits_chart(const LogitsComparison& comparison) {
  const std::vector<PositionPoint>& points = comparison.diff.points;
  const std::size_t stretch = (points.size() + kPointsMax - 1) / kPointsMax;
  const PositionPoint* worst = worst_of(comparison.diff);
  std::vector<ChartPoint> dots;
  for (std::size_t first = 0; first < points.size(); first += stretch) {
    const auto begin = points.begin() + static_cast<ptrdiff_t>(first);
    const auto end =
        points.begin() + static_cast<ptrdiff_t>(std::min(first + stretch, points.size()));
    const PositionPoint& most = *std::ranges::max_element(begin, end, {}, &PositionPoint::kl);
    ChartPoint dot;
    dot.label = fmt::format("{}: {}", place_of(comparison, most.sequence, most.position),
                            human_number(most.kl));
    dot.value = most.kl;
    dot.look = look_of(comparison.verdict);
    if (comparison.names.size() > 1) dot.group = comparison.names[most.sequence];
    dot.marked = &most == worst;
    dots.push_back(std::move(dot));
  }
  return dot_chart("KL by position", dots);
}

doc::Document logits_document(const LogitsComparison& comparison) {
  const LogitsDiff& diff = comparison.diff;
  doc::Document document;
  document.title = "Predictions";
  document.verdict = name_of(comparison.verdict);
  document.look = look_of(comparison.verdict);
  document.subtitle = fmt::format("{} of {}", counted(diff.positions, "position"),
                                  counted(comparison.names.size(), "sequence"));
  std::string cause = "no single cause explains the difference";
  for (const Finding& finding : comparison.findings)
    if (!finding.convention) cause = finding.explanation;
  if (comparison.verdict != LogitsVerdict::different)
    cause = "both predict the same, but for rounding";
  document.blocks.emplace_back(doc::Callout{document.look, document.verdict, cause});
  doc::Tiles tiles;
  if (diff.kl) tiles.tiles.push_back({"mean KL", with_error(*diff.kl)});
  if (diff.same_top) tiles.tiles.push_back({"same top token", percent(*diff.same_top)});
  if (diff.perplexity_ratio)
    tiles.tiles.push_back({"perplexity, B over A", with_error(*diff.perplexity_ratio)});
  tiles.tiles.push_back({"positions", human_count(diff.positions)});
  document.blocks.emplace_back(std::move(tiles));
  if (!diff.points.empty()) document.blocks.emplace_back(logits_chart(comparison));
  doc::Table table{{{"measure"}, {"value"}}, {}};
  for (const auto& [label, text] : logits_lines(comparison))
    table.rows.push_back({{label}, {text}});
  document.blocks.emplace_back(std::move(table));
  if (!comparison.notes.empty()) document.blocks.emplace_back(doc::List{comparison.notes});
  return document;
}

}  // namespace tensordiff
