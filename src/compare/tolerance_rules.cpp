#include "compare/tolerance_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "base/yaml.h"
#include "compare/metric.h"

namespace tensordiff {

namespace {

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

Result<MetricGate> gate_in(std::string_view name, Metric::Good good, const Yaml& node) {
  MetricGate gate;
  gate.metric = name;
  if (node.is_list()) {
    if (node.items.size() != 2) return node.wrong("a range is [least, most]");
    gate.least = TRY(number_in(node.items[0]));
    gate.most = TRY(number_in(node.items[1]));
    if (*gate.least > *gate.most) return node.wrong("the range is empty");
    return gate;
  }
  if (good == Metric::Good::near_one) return node.wrong("a ratio needs a range: [0.9, 1.1]");
  (good == Metric::Good::high ? gate.least : gate.most) = TRY(number_in(node));
  return gate;
}

Result<ToleranceRule> rule_in(const Yaml::Member& member) {
  ToleranceRule rule;
  rule.pattern = member.key;
  rule.regex = TRY(Pattern::make(member.key).in(fmt::format("line {}", member.line)));
  std::vector<std::string_view> known = {"atol", "rtol"};
  for (const Metric& metric : metrics()) known.push_back(metric.name);
  for (const LogitsMetric& metric : kLogitsMetrics) known.push_back(metric.name);
  TRY(member.value.only(known));
  for (const Yaml::Member& each : member.value.members) {
    if (each.key == "atol")
      rule.atol = TRY(tolerance_in(each.value));
    else if (each.key == "rtol")
      rule.rtol = TRY(tolerance_in(each.value));
    else if (const Metric* metric = metric_named(each.key))
      rule.gates.push_back(TRY(gate_in(metric->name, metric->good, each.value)));
    else if (const auto* of_logits =
                 std::ranges::find(kLogitsMetrics, each.key, &LogitsMetric::name))
      rule.logits_gates.push_back(TRY(gate_in(of_logits->name, of_logits->good, each.value)));
  }
  return rule;
}

// Six digits, since 0.9996 and 0.9999 are not alike here.
std::string gate_number(double value) { return fmt::format("{:.6g}", value); }

}  // namespace

std::string fault_of(const MetricGate& gate, const std::optional<double>& value) {
  if (!value) return fmt::format("{} is undefined here", gate.metric);
  if (gate.least && !(*value >= *gate.least))
    return fmt::format("{} is {}, below {}", gate.metric, gate_number(*value),
                       gate_number(*gate.least));
  if (gate.most && !(*value <= *gate.most))
    return fmt::format("{} is {}, above {}", gate.metric, gate_number(*value),
                       gate_number(*gate.most));
  return "";
}

Result<ToleranceRules> ToleranceRules::parse(std::string_view yaml) {
  const Yaml file = TRY(Yaml::parse(yaml));
  ToleranceRules rules;
  if (file.kind == Yaml::Kind::null) return rules;
  if (!file.is_map()) return file.wrong("a regular expression and its tolerances are expected");
  for (const Yaml::Member& member : file.members) rules.rules_.push_back(TRY(rule_in(member)));
  return rules;
}

const ToleranceRule* ToleranceRules::find(std::string_view name) const {
  for (const ToleranceRule& rule : rules_)
    if (rule.regex.found_in(name)) return &rule;
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
    if (const std::string fault = fault_of(gate, metric_named(gate.metric)->of(comparison.diff));
        !fault.empty())
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
