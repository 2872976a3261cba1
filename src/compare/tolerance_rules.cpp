#include "compare/tolerance_rules.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <regex>

#include "base/text.h"
#include "base/yaml.h"

namespace tensordiff {

struct ToleranceRule::Regex {
  std::regex compiled;
};

namespace {

// Which side of the bound is good, where a single number is given.
enum class Wanted { at_least, at_most };

struct Metric {
  std::string_view name;
  Wanted wanted;
  std::optional<double> (*of)(const Diff& diff);
};

std::optional<double> count(uint64_t number) { return static_cast<double>(number); }

std::optional<double> exceeding_share(const Diff& diff) {
  const uint64_t all = diff.compared + diff.nonfinite_mismatch + diff.nonfinite_agreeing;
  if (all == 0) return std::nullopt;
  return static_cast<double>(diff.exceeding + diff.nonfinite_mismatch) / static_cast<double>(all);
}

constexpr Metric kMetrics[] = {
    {"cosine", Wanted::at_least, [](const Diff& diff) { return diff.cosine; }},
    {"pcc", Wanted::at_least, [](const Diff& diff) { return diff.pcc; }},
    {"max_abs", Wanted::at_most, [](const Diff& diff) { return diff.max_abs; }},
    {"mean_abs", Wanted::at_most, [](const Diff& diff) { return diff.mean_abs; }},
    {"mse", Wanted::at_most, [](const Diff& diff) { return diff.mse; }},
    {"rmse", Wanted::at_most, [](const Diff& diff) { return diff.rmse; }},
    {"max_rel", Wanted::at_most, [](const Diff& diff) { return diff.max_rel; }},
    {"mean_rel", Wanted::at_most, [](const Diff& diff) { return diff.mean_rel; }},
    {"rel_l2", Wanted::at_most, [](const Diff& diff) { return diff.rel_l2; }},
    {"norm_ratio", Wanted::at_most, [](const Diff& diff) { return diff.norm_ratio; }},
    {"rtol_needed", Wanted::at_most, [](const Diff& diff) { return diff.rtol_needed; }},
    {"ulp_max", Wanted::at_most,
     [](const Diff& diff) { return diff.ulp_max ? count(*diff.ulp_max) : std::nullopt; }},
    {"exceeding", Wanted::at_most, [](const Diff& diff) { return count(diff.exceeding); }},
    {"exceeding_share", Wanted::at_most, exceeding_share},
    {"nonfinite_mismatch", Wanted::at_most,
     [](const Diff& diff) { return count(diff.nonfinite_mismatch); }},
};

const Metric* metric_named(std::string_view name) {
  for (const Metric& metric : kMetrics)
    if (metric.name == name) return &metric;
  return nullptr;
}

Result<double> number_in(const Yaml& node) {
  double value = 0;
  const char* end = node.text.data() + node.text.size();
  const auto [stop, fault] = std::from_chars(node.text.data(), end, value);
  if (!node.is_text() || fault != std::errc() || stop != end || std::isnan(value))
    return node.wrong(fmt::format("'{}' is not a number", printable(node.text, 80)));
  return value;
}

Result<double> tolerance_in(const Yaml& node) {
  const double value = TRY(number_in(node));
  if (value < 0) return node.wrong("a tolerance is not negative");
  return value;
}

Result<MetricGate> gate_in(const Metric& metric, const Yaml& node) {
  MetricGate gate;
  gate.metric = metric.name;
  if (node.is_list()) {
    if (node.items.size() != 2) return node.wrong("a range is [least, most]");
    gate.least = TRY(number_in(node.items[0]));
    gate.most = TRY(number_in(node.items[1]));
    if (*gate.least > *gate.most) return node.wrong("the range is empty");
    return gate;
  }
  if (metric.name == "norm_ratio") return node.wrong("a ratio needs a range: [0.9, 1.1]");
  (metric.wanted == Wanted::at_least ? gate.least : gate.most) = TRY(number_in(node));
  return gate;
}

// The only way to learn that an expression is wrong is to have it throw.
Result<std::shared_ptr<const ToleranceRule::Regex>> compiled(const std::string& pattern,
                                                             std::size_t line) {
  try {
    const auto flags = std::regex::ECMAScript | std::regex::optimize;
    return std::make_shared<const ToleranceRule::Regex>(
        ToleranceRule::Regex{std::regex(pattern, flags)});
  } catch (const std::regex_error&) {
    return Error("line {}: '{}' is not a regular expression", line, printable(pattern));
  }
}

Result<ToleranceRule> rule_in(const Yaml::Member& member) {
  ToleranceRule rule;
  rule.pattern = member.key;
  rule.regex = TRY(compiled(member.key, member.line));
  std::vector<std::string_view> known = {"atol", "rtol"};
  for (const Metric& metric : kMetrics) known.push_back(metric.name);
  TRY(member.value.only(known));
  for (const Yaml::Member& each : member.value.members) {
    if (each.key == "atol")
      rule.atol = TRY(tolerance_in(each.value));
    else if (each.key == "rtol")
      rule.rtol = TRY(tolerance_in(each.value));
    else
      rule.gates.push_back(TRY(gate_in(*metric_named(each.key), each.value)));
  }
  return rule;
}

// Six digits, since 0.9996 and 0.9999 are not alike here.
std::string gate_number(double value) { return fmt::format("{:.6g}", value); }

// What is wrong with a value; "" for nothing. A metric that is undefined passes no gate.
std::string fault_of(const MetricGate& gate, const Diff& diff) {
  const std::optional<double> value = metric_named(gate.metric)->of(diff);
  if (!value) return fmt::format("{} is undefined here", gate.metric);
  if (gate.least && !(*value >= *gate.least))
    return fmt::format("{} is {}, below {}", gate.metric, gate_number(*value),
                       gate_number(*gate.least));
  if (gate.most && !(*value <= *gate.most))
    return fmt::format("{} is {}, above {}", gate.metric, gate_number(*value),
                       gate_number(*gate.most));
  return "";
}

}  // namespace

Result<ToleranceRules> ToleranceRules::parse(std::string_view yaml) {
  const Yaml file = TRY(Yaml::parse(yaml));
  ToleranceRules rules;
  if (file.kind == Yaml::Kind::null) return rules;
  if (!file.is_map()) return file.wrong("a regular expression and its tolerances are expected");
  for (const Yaml::Member& member : file.members) rules.rules_.push_back(TRY(rule_in(member)));
  return rules;
}

const ToleranceRule* ToleranceRules::find(std::string_view name) const {
  // std::regex goes as deep as a name is long: one of a megabyte would end the program.
  constexpr std::size_t kSearched = 2000;
  const std::string_view head = name.substr(0, kSearched);
  for (const ToleranceRule& rule : rules_)
    if (std::regex_search(head.begin(), head.end(), rule.regex->compiled)) return &rule;
  return nullptr;
}

CompareOptions with_rule(CompareOptions options, const ToleranceRule& rule) {
  if (rule.atol || rule.rtol) {
    options.atol = rule.atol.value_or(0);
    options.rtol = rule.rtol.value_or(0);
  }
  return options;
}

std::string judge(const ToleranceRule& rule, Comparison& comparison) {
  if (rule.gates.empty() || comparison.status >= Status::incomparable) return "";
  std::string faults;
  for (const MetricGate& gate : rule.gates)
    if (const std::string fault = fault_of(gate, comparison.diff); !fault.empty())
      faults += (faults.empty() ? "" : "; ") + fault;
  const bool same = comparison.status == Status::identical || comparison.status == Status::equal;
  if (!faults.empty() && !same) {
    comparison.status = Status::different;
    return fmt::format("gate '{}': {}", rule.pattern, faults);
  }
  // Elements have a say only where they were given a tolerance. A NaN that one side lacks is
  // never within a gate that does not speak of it.
  const bool by_elements = rule.atol || rule.rtol || comparison.diff.nonfinite_mismatch > 0;
  if (comparison.status == Status::different && !by_elements) comparison.status = Status::close;
  return "";
}

}  // namespace tensordiff
