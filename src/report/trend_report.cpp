#include "report/trend_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "base/json.h"
#include "base/text.h"
#include "report/chart.h"
#include "report/csv_row.h"
#include "report/table.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

constexpr std::size_t kSeriesMax = 8;  // Lines that can be told apart.
constexpr std::size_t kMapGroupsMax = 120;

using Series = std::vector<std::optional<double>>;

Series series_of(const TrendGroup& group,
                 const std::function<std::optional<double>(const TrendPoint&)>& of) {
  Series values;
  for (const TrendPoint& point : group.points) values.push_back(of(point));
  return values;
}

Series updates_of(const TrendGroup& group) {
  Series values = series_of(group, [](const TrendPoint& point) { return point.update; });
  values.erase(values.begin());
  return values;
}

Series norms_of(const TrendGroup& group) {
  return series_of(group, [](const TrendPoint& point) { return point.norm; });
}

// Between an update and the one before; 0° goes on, 90° knows nothing of it, 180° takes it back.
std::optional<double> angle_of(const TrendPoint& point) {
  if (!point.cosine) return std::nullopt;
  return std::acos(std::clamp(*point.cosine, -1.0, 1.0)) * 180 / std::numbers::pi;
}

std::string angle_text(const TrendPoint& point) {
  const std::optional<double> angle = angle_of(point);
  return angle ? fmt::format("{:.0f}°", *angle) : "–";
}

// The end of the path, and the step that it holds.
std::string label_of(const TrendStep& step) {
  const std::size_t slash = step.path.find_last_of('/', step.path.size() - 2);
  std::string name = slash == std::string::npos ? step.path : step.path.substr(slash + 1);
  if (step.step) name += fmt::format(" (step {})", short_number(*step.step));
  return name;
}

// For the axis of a chart: what tells the names apart, "0", "10" and "50".
std::vector<std::string> labels_of(const Trend& trend) {
  std::vector<std::string> names;
  for (const TrendStep& step : trend.steps) names.push_back(label_of(step));
  std::size_t front = names[0].size(), back = names[0].size();
  for (const std::string& name : names) {
    const auto front_end = std::ranges::mismatch(names[0], name).in1;
    const auto back_end =
        std::mismatch(names[0].rbegin(), names[0].rend(), name.rbegin(), name.rend()).first;
    front = std::min(front, static_cast<std::size_t>(front_end - names[0].begin()));
    back = std::min(back, static_cast<std::size_t>(back_end - names[0].rbegin()));
  }
  // Numbers stay whole.
  const auto digit = [&](std::size_t at) {
    return at < names[0].size() && names[0][at] >= '0' && names[0][at] <= '9';
  };
  while (front > 0 && digit(front - 1)) --front;
  while (back > 0 && digit(names[0].size() - back)) --back;
  for (std::string& name : names)
    if (front + back < name.size()) name = name.substr(front, name.size() - front - back);
  return names;
}

Tone tone_of(Course course) {
  if (course == Course::diverging || course == Course::worsening) return Tone::bad;
  if (course == Course::oscillating || course == Course::unknown) return Tone::trouble;
  return Tone::good;
}

std::string group_table(const Trend& trend, const RenderOptions& options, const Style& style) {
  using enum Column::Side;
  Table table({{"group"},
               {"update size"},
               {"first", right, 2},
               {"last", right},
               {"angle", left, 3},
               {"last", right, 1},
               {"norm", left, 5},
               {"last", right, 4},
               {"not finite", right}});
  for (const TrendGroup& group : trend.groups) {
    const Series updates = updates_of(group);
    const TrendPoint& last = group.points.back();
    const bool ill = last.nonfinite > 0;
    table.add({{printable(group.name), &group == &trend.groups[0] ? Tone::bold : Tone::plain},
               {sparkline(updates)},
               {number_or_dash(updates.front())},
               {number_or_dash(updates.back())},
               {sparkline(series_of(group, angle_of))},
               {angle_text(last)},
               {sparkline(norms_of(group))},
               {number_or_dash(last.norm)},
               {ill ? human_count(last.nonfinite) : "", ill ? Tone::bad : Tone::plain}});
  }
  return "\n" + table.render(style, options.width);
}

std::string step_table(const Trend& trend, const RenderOptions& options, const Style& style) {
  using enum Column::Side;
  Table table({{"checkpoint"},
               {"group"},
               {"update", right},
               {"angle", right},
               {"norm", right},
               {"not finite", right}});
  for (std::size_t step = 0; step < trend.steps.size(); ++step)
    for (const TrendGroup& group : trend.groups) {
      const TrendPoint& point = group.points[step];
      table.add({{printable(label_of(trend.steps[step]))},
                 {printable(group.name)},
                 {number_or_dash(point.update)},
                 {angle_text(point)},
                 {number_or_dash(point.norm)},
                 {point.nonfinite ? human_count(point.nonfinite) : ""}});
    }
  return "\n" + table.render(style, options.width);
}

void write_point(JsonWriter& json, const Trend& trend, const TrendGroup& group, std::size_t step) {
  const TrendPoint& point = group.points[step];
  json.begin_object().member("checkpoint", uint64_t{step}).member("path", trend.steps[step].path);
  json.member("group", group.name).member("update", point.update).member("cosine", point.cosine);
  json.member("angle_degrees", angle_of(point)).member("norm", point.norm);
  json.member("nonfinite", point.nonfinite).end_object();
}

// All together, then the groups whose updates are largest.
std::vector<const TrendGroup*> leading_groups(const Trend& trend) {
  std::vector<const TrendGroup*> groups;
  for (const TrendGroup& group : trend.groups) groups.push_back(&group);
  const auto largest = [](const TrendGroup* group) {
    double most = 0;
    for (const std::optional<double>& update : updates_of(*group))
      most = std::max(most, update.value_or(0));
    return most;
  };
  std::stable_sort(groups.begin() + 1, groups.end(),
                   [&](const auto* x, const auto* y) { return largest(x) > largest(y); });
  if (groups.size() > kSeriesMax) groups.resize(kSeriesMax);
  return groups;
}

void add_charts(const Trend& trend, doc::Document& document) {
  const std::vector<std::string> labels = labels_of(trend);
  const std::vector<std::string> later(labels.begin() + 1, labels.end());
  std::vector<ChartSeries> updates, norms, losses(1);
  for (const TrendGroup* group : leading_groups(trend)) {
    updates.push_back({group->name, updates_of(*group)});
    norms.push_back({group->name, norms_of(*group)});
  }
  document.blocks.emplace_back(line_chart("Update size, ‖Δ‖ / ‖A‖", later, updates));
  document.blocks.emplace_back(line_chart("Norm of the weights", labels, norms));
  losses[0].name = "loss";
  for (const TrendStep& step : trend.steps) losses[0].values.push_back(step.loss);
  if (std::ranges::any_of(losses[0].values, [](const auto& loss) { return loss.has_value(); }))
    document.blocks.emplace_back(line_chart("Loss, as the checkpoints hold it", labels, losses));
  if (trend.groups.size() < 3 || trend.groups.size() > kMapGroupsMax) return;
  HeatMap map;
  map.columns = later;
  map.unit = "update";
  map.decades = false;
  for (std::size_t i = 1; i < trend.groups.size(); ++i) {
    map.rows.push_back(trend.groups[i].name);
    for (const std::optional<double>& update : updates_of(trend.groups[i]))
      map.values.push_back(update);
  }
  document.blocks.emplace_back(heat_map("Update size by group and checkpoint", map));
}

doc::Look look_of(Course course) {
  if (course == Course::diverging) return doc::Look::bad;
  if (course == Course::oscillating || course == Course::unknown) return doc::Look::trouble;
  return doc::Look::good;
}

doc::Cell number_cell(const std::optional<double>& number) {
  return {number_or_dash(number), doc::Look::plain, false, number};
}

}  // namespace

std::string sparkline(const std::vector<std::optional<double>>& values) {
  constexpr std::string_view kMarks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  double low = std::numeric_limits<double>::infinity(), high = -low;
  const auto height = [](double value) { return value > 0 ? std::log10(value) : -300; };
  for (const std::optional<double>& value : values) {
    if (!value || !std::isfinite(*value) || !(*value > 0)) continue;
    low = std::min(low, height(*value));
    high = std::max(high, height(*value));
  }
  std::string out;
  for (const std::optional<double>& value : values) {
    if (!value) {
      out += "·";
      continue;
    }
    if (!std::isfinite(*value)) {
      out += "!";
      continue;
    }
    // A hundredth of an order of magnitude is no course.
    const double share = high - low > 0.01 ? (height(*value) - low) / (high - low) : 0.5;
    out += kMarks[static_cast<std::size_t>(std::clamp(share * 7.999, 0.0, 7.0))];
  }
  return out;
}

std::string trend_text(const Trend& trend, const RenderOptions& options) {
  const Style style(options.color);
  std::string out = fmt::format("{}  {}\n", style(tone_of(trend.course), name_of(trend.course)),
                                printable(trend.reason, 1000));
  if (options.brief) return out;
  out +=
      fmt::format("{}, {} in {}, {} elements\n", counted(trend.steps.size(), "checkpoint"),
                  counted(trend.groups[0].tensors, "tensor"),
                  counted(trend.groups.size() - 1, "group"), human_count(trend.groups[0].elements));
  for (const std::string& note : trend.notes)
    out += fmt::format("{}  {}\n", style(Tone::dim, "note"), printable(note, 1000));
  out += group_table(trend, options, style);
  if (options.verbose) out += step_table(trend, options, style);
  return out;
}

std::string trend_json(const Trend& trend) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().member("schema", "tensordiff.trend/1");
  json.member("verdict", name_of(trend.course)).member("reason", trend.reason);
  json.key("checkpoints").begin_array();
  for (const TrendStep& step : trend.steps)
    json.begin_object()
        .member("path", step.path)
        .member("step", step.step)
        .member("loss", step.loss)
        .member("score", step.score)
        .end_object();
  json.end_array().key("groups").begin_array();
  for (const TrendGroup& group : trend.groups)
    json.begin_object()
        .member("name", group.name)
        .member("tensors", group.tensors)
        .member("elements", group.elements)
        .end_object();
  json.end_array().key("rows").begin_array();
  for (std::size_t step = 0; step < trend.steps.size(); ++step)
    for (const TrendGroup& group : trend.groups) write_point(json, trend, group, step);
  json.end_array().member("notes", trend.notes).end_object();
  return json.take() + "\n";
}

std::string trend_csv(const Trend& trend) {
  std::string out = "checkpoint,path,group,update,cosine,angle_degrees,norm,nonfinite\n";
  for (std::size_t step = 0; step < trend.steps.size(); ++step)
    for (const TrendGroup& group : trend.groups) {
      const TrendPoint& point = group.points[step];
      CsvRow row;
      row.field(uint64_t{step}).text(trend.steps[step].path).text(group.name);
      row.field(point.update).field(point.cosine).field(angle_of(point));
      out += row.field(point.norm).field(point.nonfinite).take();
    }
  return out;
}

doc::Document trend_document(const Trend& trend) {
  doc::Document document;
  document.title = fmt::format("Trend over {}", counted(trend.steps.size(), "checkpoint"));
  document.verdict = name_of(trend.course);
  document.look = look_of(trend.course);
  document.subtitle = fmt::format("{} to {}", trend.steps.front().path, trend.steps.back().path);
  document.blocks.emplace_back(doc::Callout{document.look, document.verdict, trend.reason});
  document.blocks.emplace_back(
      doc::Tiles{{{"checkpoints", human_count(trend.steps.size())},
                  {"tensors", human_count(trend.groups[0].tensors)},
                  {"elements", human_count(trend.groups[0].elements)},
                  {"last update", number_or_dash(trend.groups[0].points.back().update)},
                  {"last angle", angle_text(trend.groups[0].points.back())}}});
  add_charts(trend, document);
  document.blocks.emplace_back(doc::Heading{"Every step and group"});
  doc::Table table{{{"checkpoint"},
                    {"group"},
                    {"update", true},
                    {"angle", true},
                    {"norm", true},
                    {"not finite", true}},
                   {}};
  table.searchable = true;
  for (std::size_t step = 0; step < trend.steps.size(); ++step)
    for (const TrendGroup& group : trend.groups) {
      const TrendPoint& point = group.points[step];
      table.rows.push_back({{label_of(trend.steps[step]), doc::Look::plain, true},
                            {group.name, doc::Look::plain, true},
                            number_cell(point.update),
                            {angle_text(point), doc::Look::plain, false, angle_of(point)},
                            number_cell(point.norm),
                            {point.nonfinite ? human_count(point.nonfinite) : "", doc::Look::bad,
                             false, static_cast<double>(point.nonfinite)}});
    }
  document.blocks.emplace_back(std::move(table));
  if (!trend.notes.empty()) document.blocks.emplace_back(doc::List{trend.notes});
  return document;
}

}  // namespace tensordiff
