// `-o junit`: a test case for each pair and each unpaired tensor, as build servers read it.
//
// What differs has failed, what cannot be read is an error; what a baseline knows and a layer that
// the other side never dumped are skipped. Where there is nothing to compare, that is an error.
// What was found out about a pair stands in its failure.

#include <fmt/format.h>

#include "base/text.h"
#include "report/analyses.h"
#include "report/chart.h"
#include "report/divergence_text.h"
#include "report/junit.h"
#include "report/renderer.h"
#include "report/selection.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

std::string escaped(std::string_view text) { return html_escape(printable(text, 4000)); }

std::string group_of(const PairRow& row) {
  return row.layer ? fmt::format("layer {}", *row.layer) : "tensors";
}

std::string details(const Report& report, const PairRow& row) {
  const Diff diff = as_shown(row.comparison.diff);
  std::string out;
  if (report.steps && report.first_divergence && report.first_divergence->pair == row.index)
    out += "First divergence: " + report.first_divergence->explanation + "\n";
  for (const Finding& finding : report.findings)
    if (finding.pair == row.index)
      out += fmt::format("{}: {} (confidence {})\n", finding.code, cause_of(finding),
                         confidence_text(finding.confidence));
  for (const std::string& remark : remarks(row)) out += remark + "\n";
  out += fmt::format("max_abs {}, rel_l2 {}, cosine {}, atol {}, rtol {}\n",
                     number_or_dash(diff.max_abs), number_or_dash(diff.rel_l2),
                     cosine_text(diff.cosine), short_number(diff.tolerance.atol),
                     short_number(diff.tolerance.rtol));
  if (const std::string where = where_text(diff); !where.empty())
    out += "largest difference at " + where + "\n";
  return out;
}

// A known difference is no failure, and must not look like agreement either.
void mark_known(std::optional<Novelty> novelty, JunitCase& test) {
  if (novelty != Novelty::known) return;
  test.outcome = JunitCase::Outcome::skipped;
  test.message = "known difference: " + test.message;
}

JunitCase case_of(const Report& report, const PairRow& row) {
  JunitCase test{group_of(row), names_of(row)};
  switch (row.comparison.status) {
    case Status::different: {
      const Finding* finding = finding_at(report, row.index);
      test.outcome = JunitCase::Outcome::failed;
      test.message =
          finding ? cause_of(*finding)
                  : "relative L2 error " + number_or_dash(as_shown(row.comparison.diff).rel_l2);
      test.details = details(report, row);
      break;
    }
    case Status::incomparable:
      test.outcome = JunitCase::Outcome::failed;
      test.message = message_of(row);
      break;
    case Status::error:
      test.outcome = JunitCase::Outcome::error;
      test.message = message_of(row);
      break;
    default:
      break;
  }
  mark_known(row.novelty, test);
  return test;
}

JunitCase case_of(const Report::Unpaired& tensor, char side) {
  JunitCase test{fmt::format("only in {}", side == 'a' ? 'A' : 'B'), tensor.id.name};
  test.message = tensor.layer_absent ? "the other side lacks this layer"
                 : tensor.not_dumped
                     ? "the other side did not dump it"
                     : fmt::format("there is no such tensor in {}", side == 'a' ? 'B' : 'A');
  test.outcome = tensor.is_difference() ? JunitCase::Outcome::failed : JunitCase::Outcome::skipped;
  mark_known(tensor.novelty, test);
  if (tensor.id.fault.empty()) return test;
  test.outcome = JunitCase::Outcome::error;
  test.message = tensor.id.fault;
  return test;
}

std::string render(const Report& report, const RenderOptions& options) {
  JunitSuite suite{fmt::format("tensordiff {} {}", report.a.path, report.b.path), {}, {}};
  suite.properties = {{"verdict", std::string(name_of(report.summary.verdict))},
                      {"a", report.a.path},
                      {"b", report.b.path}};
  const std::string& caveat = report.summary.caveat;
  if (!caveat.empty()) suite.properties.emplace_back("caveat", caveat);
  if (!caveat.empty() && report.pairs.empty())
    suite.cases.push_back({"selection", "tensors", JunitCase::Outcome::error, caveat});
  for (const PairRow* row : select_pairs(report, options, Sort::layer))
    suite.cases.push_back(case_of(report, *row));
  if (options.show_unpaired) {
    for (const auto& tensor : report.only_a) suite.cases.push_back(case_of(tensor, 'a'));
    for (const auto& tensor : report.only_b) suite.cases.push_back(case_of(tensor, 'b'));
  }
  for (const Answer& answer : report.analyses) {
    JunitCase test{"analyses", std::string(answer.name)};
    if (answer.alarm) test.outcome = JunitCase::Outcome::failed;
    if (answer.alarm) test.message = *answer.alarm;
    suite.properties.emplace_back(answer.name, answer_line(answer));
    suite.cases.push_back(std::move(test));
  }
  return junit_text({suite});
}

std::string case_text(const JunitCase& test) {
  std::string out = fmt::format("    <testcase classname=\"{}\" name=\"{}\"", escaped(test.group),
                                escaped(test.name));
  constexpr std::string_view kElements[] = {"", "failure", "error", "skipped"};
  const std::string_view element = kElements[static_cast<std::size_t>(test.outcome)];
  if (element.empty()) return out + "/>\n";
  std::string lines;
  for (const std::string_view line : split(test.details, '\n'))
    if (!line.empty()) lines += escaped(line) + "\n";
  return out + fmt::format(">\n      <{} message=\"{}\">{}</{}>\n    </testcase>\n", element,
                           escaped(test.message), lines, element);
}

}  // namespace

std::string junit_text(const std::vector<JunitSuite>& suites) {
  std::string out =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tensordiff\">\n";
  for (const JunitSuite& suite : suites) {
    std::size_t counts[4] = {};
    for (const JunitCase& test : suite.cases) ++counts[static_cast<std::size_t>(test.outcome)];
    out += fmt::format(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n",
        escaped(suite.name), suite.cases.size(), counts[1], counts[2], counts[3]);
    if (!suite.properties.empty()) {
      out += "    <properties>\n";
      for (const auto& [name, value] : suite.properties)
        out += fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", escaped(name),
                           escaped(value));
      out += "    </properties>\n";
    }
    for (const JunitCase& test : suite.cases) out += case_text(test);
    out += "  </testsuite>\n";
  }
  return out + "</testsuites>\n";
}

constinit const Renderer renderers::junit = {
    .name = "junit",
    .summary = "JUnit XML: a test case for each pair, for build servers",
    .unpaired_stats = false,
    .render = render,
};

}  // namespace tensordiff
