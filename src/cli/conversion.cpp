// tensordiff conversion A B: how one checkpoint was made of the other, kind by kind, and which
// tensors do not follow. With --conversion FILE, whether that is still what it was.

#include <algorithm>
#include <map>
#include <set>

#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/comparing.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/values.h"
#include "report/conversion_python.h"
#include "report/style.h"
#include "report/table.h"
#include "report/text_chart.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

constexpr std::string_view kSchema = "tensordiff.conversion/1";

Result<ConversionRules> read_rules(std::string_view text) {
  const Json json = TRY(Json::parse(text));
  if (json["schema"].string() != kSchema)
    return Error("not a result of 'tensordiff conversion -o json': its schema is not {}", kSchema);
  ConversionRules rules;
  for (const Json& rule : json["rules"].array())
    rules[{std::string(rule["a"].string()), std::string(rule["b"].string())}] =
        rule["rule"].string();
  return rules;
}

Result<void> apply_known(Settings& settings, std::string_view file) {
  const Bytes bytes = TRY(map_file(std::string(file)).in(printable(file)));
  settings.known_rules = TRY(read_rules(tensordiff::as_text(bytes.view)).in(printable(file)));
  return {};
}

constexpr Option kOptions[] = {
    {"--conversion", "FILE", "an earlier -o json; report rules that changed", apply_known},
    {"-o,--output", "FORMAT", "text (default), json, or python (a conversion script)",
     [](Settings& settings, std::string_view name) -> Result<void> {
       constexpr std::string_view kNames[] = {"text", "json", "python"};
       settings.output = kNames[TRY(parse_word(name, kNames))];
       return {};
     }},
};
constexpr OptionGroup kGroup = {"output", kOptions};
constexpr const OptionGroup* kGroups[] = {&option_groups::input, &option_groups::pairing,
                                          &option_groups::tolerance, &kGroup};

// "A → B: rule, was rule" for each kind whose rule is not the one of the file.
std::vector<std::string> changes_of(const Report& report, const ConversionRules& known) {
  ConversionRules now;
  for (const ConversionRow& row : report.conversion) now[{row.a, row.b}] = row.how;
  std::vector<std::string> changes;
  const auto tell = [&](const auto& kind, std::string_view what) {
    changes.push_back(
        fmt::format("{} → {}: {}", printable(kind.first), printable(kind.second), what));
  };
  for (const auto& [kind, rule] : now) {
    const auto found = known.find(kind);
    if (found == known.end())
      tell(kind, fmt::format("new: {}", rule));
    else if (found->second != rule)
      tell(kind, fmt::format("{}, was {}", rule, printable(found->second)));
  }
  for (const auto& [kind, rule] : known)
    if (!now.contains(kind)) tell(kind, fmt::format("gone, was {}", printable(rule)));
  return changes;
}

void add_kind(Table& table, const Report& report, const ConversionRow& row) {
  std::vector<std::string> remarks;
  for (const std::size_t pair : row.exceptions)
    remarks.push_back(fmt::format("not {}", printable(report.pairs[pair].b.name)));
  const std::string names = row.a == row.b ? row.a : row.a + " → " + row.b;
  table.add({{printable(names, 1000), row.exceptions.empty() ? Tone::plain : Tone::bad},
             {human_count(row.pairs.size())}},
            std::move(remarks));
}

// Each rule once, above the kinds of tensors that follow it. Those with exceptions come first.
std::string rules_text(const Report& report, const Style& style, std::size_t width) {
  Table table({{"A → B", Column::Side::left, 0, true}, {"tensors", Column::Side::right}});
  std::set<std::string_view> listed;
  for (const ConversionRow& first : report.conversion) {
    if (!listed.insert(first.how).second) continue;
    table.add_heading(style(Tone::bold, wrapped(first.how, width, "  ")));
    for (const ConversionRow& row : report.conversion)
      if (row.how == first.how) add_kind(table, report, row);
  }
  return table.render(style, width);
}

std::string text_of(const Report& report, const std::vector<std::string>& changes,
                    const Settings& settings) {
  const Style style(wants_color(settings));
  std::string out;
  if (report.conversion.empty())
    out = "no conversion inferred: the inputs are not two checkpoints\n";
  else
    out = rules_text(report, style, output_width());
  for (const std::string& change : changes)
    out += style(Tone::bad, "changed") + "  " + change + "\n";
  for (const Finding& finding : report.findings)
    out += fmt::format("{}: {}\n", printable(report.pairs[finding.pair].b.name),
                       printable(finding.explanation));
  return out;
}

std::string json_of(const Report& report, const std::vector<std::string>& changes) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().member("schema", kSchema).key("rules").begin_array();
  for (const ConversionRow& row : report.conversion) {
    json.begin_object().member("rule", row.how).member("a", row.a).member("b", row.b);
    json.member("tensors", row.pairs.size()).key("exceptions").begin_array();
    for (const std::size_t pair : row.exceptions) json.value(report.pairs[pair].b.name);
    json.end_array().end_object();
  }
  json.end_array().member("changes", changes).end_object();
  return json.take() + "\n";
}

// Norms and updates that the rules merge into weights are accounted for, though B lacks them.
int status_of(Report report, const Settings& settings) {
  for (auto* rows : {&report.only_a, &report.only_b})
    std::erase_if(*rows, [](const Report::Unpaired& row) { return row.merged; });
  report.summary = summarise(report);
  return exit_status(report, settings);
}

// The script needs the tensors beside the pairs: what weights are merged from.
Result<std::string> script_of(const Settings& settings, const std::vector<std::string>& inputs,
                              const Report& report) {
  Request request = settings.request;
  request.open = settings.open;
  Catalog a = TRY(open_model(inputs[0], request.open));
  Catalog b = TRY(open_model(inputs[1], request.open));
  const Pairing pairing = TRY(pair_up(std::move(a), std::move(b), request));
  Sides sides = sides_of(pairing.a, pairing.b, pairing.matching, {request.align, request.dims});
  sides.conversion = pairing.conversion.get();
  sides.merges = &pairing.merges;
  return conversion_python(report, merged_pairs(sides));
}

int run(const Settings& settings, const std::vector<std::string>& inputs) {
  if (inputs.size() != 2) return fail(Error("conversion needs two checkpoints, A and B"));
  const Result<Report> report = [&] {
    ProgressLine progress(!settings.quiet);
    return compare_inputs(settings, inputs,
                          [&](uint64_t done, uint64_t total) { progress.update(done, total); });
  }();
  if (!report.ok()) return fail(report.error());
  const std::vector<std::string> changes = settings.known_rules
                                               ? changes_of(report.value(), *settings.known_rules)
                                               : std::vector<std::string>();
  const Result<std::string> text = settings.output == "json" ? json_of(report.value(), changes)
                                   : settings.output == "python"
                                       ? script_of(settings, inputs, report.value())
                                       : text_of(report.value(), changes, settings);
  if (!text.ok()) return fail(text.error());
  const Result<void> written =
      deliver(settings.quiet && settings.out.empty() ? "" : text.value(), settings);
  if (!written.ok()) return fail(written.error());
  const int status = status_of(report.value(), settings);
  return status == kSame && !changes.empty() ? kDifferent : status;
}

}  // namespace

constinit const Command commands::conversion = {
    .name = "conversion",
    .usage = "tensordiff conversion A B [options]",
    .summary = "infer how A was converted to B, and list the exceptions",
    .groups = kGroups,
    .run = run,
};

}  // namespace tensordiff
