#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says in one line how many tests of a run did not run, and why; nothing when all ran."""
import re
import sys
import xml.etree.ElementTree

import arguments


def reason_of(case):
    """What the test itself says last: "skipped: ..."; otherwise what ctest says."""
    said = re.findall(r"^skipped: (.*)$", case.findtext("system-out") or "", re.MULTILINE)
    skipped = case.find("skipped")
    return said[-1] if said else skipped.get("message", "no reason given") if skipped is not None else "not run"


def main():
    options = arguments.parser(__doc__)
    options.add_argument("file", metavar="FILE", help="what ctest --output-junit has written")
    file = options.parse_args().file
    try:
        cases = xml.etree.ElementTree.parse(file).getroot().findall("testcase")
    except (OSError, xml.etree.ElementTree.ParseError) as e:
        raise SystemExit("not_run.py: %s: %s" % (file, e))
    reasons = {}
    for case in cases:
        if case.get("status") not in ("run", "fail"):
            reasons.setdefault(reason_of(case), []).append(case.get("name"))
    if reasons:
        total = sum(len(names) for names in reasons.values())
        print("test: %d of %d tests did not run: %s" % (total, len(cases), "; ".join(
            "%s%s (%s)" % (names[0], " and %d more" % (len(names) - 1) if len(names) > 1 else "", reason)
            for reason, names in sorted(reasons.items()))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
