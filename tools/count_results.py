"""One line over all test runs, from the result files that they left.

    python3 tools/count_results.py build/*/results.xml
"""

import sys
import xml.etree.ElementTree as xml

suites = [suite for path in sys.argv[1:] for suite in xml.parse(path).getroot().iter("testsuite")]
total, failed, skipped = (
    sum(int(suite.get(key, 0)) for suite in suites) for key in ("tests", "failures", "skipped"))
print(f"{total - failed - skipped} passed, {failed} failed, {skipped} skipped")
