#include "report/junit.h"

#include <gtest/gtest.h>

#include "report/renderer.h"
#include "report/sample_report.h"

namespace tensordiff {
namespace {

TEST(Junit, IsACaseForEachPairAndLeftover) {
  Report report = sample_report();
  Finding finding;
  finding.code = "scale";
  finding.pair = 2;
  finding.confidence = 0.99;
  finding.explanation = "B = 2 × A";
  report.findings = {finding};
  report.only_a[0].layer_absent = true;
  const std::string text = renderers::junit.render(report, {});
  for (const std::string_view wanted :
       {"<testsuite name=\"tensordiff a.pt b.npz\" tests=\"7\" failures=\"3\" errors=\"1\" "
        "skipped=\"1\">",
        "<property name=\"verdict\" value=\"trouble\"/>",
        "<testcase classname=\"tensors\" name=\"same\"/>",
        "<testcase classname=\"layer 1\" name=\"off\">\n      <failure message=\"B = 2 × A\">First "
        "divergence: its inputs agree; its output does not\nscale: B = 2 × A (confidence 99 %)",
        "<error message=\"B: deflate stream ends early\"></error>",
        "<skipped message=\"the other side lacks this layer\"></skipped>",
        "<testcase classname=\"only in B\" name=\"new\">\n      <failure"})
    EXPECT_NE(text.find(wanted), std::string::npos) << wanted << "\nis not in\n" << text;
}

TEST(Junit, EscapesNames) {
  const std::string text = junit_text({{"<s>", {{"k", "\"v\""}}, {{"g&", "\x1b]0;x\x07<t>"}}}});
  EXPECT_NE(text.find("name=\"&lt;s&gt;\""), std::string::npos);
  EXPECT_NE(text.find("value=\"&quot;v&quot;\""), std::string::npos);
  EXPECT_NE(text.find("classname=\"g&amp;\" name=\"\\x1b]0;x\\x07&lt;t&gt;\"/>"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace tensordiff
