#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says in one line how many tests of a run did not run, and why; nothing when all ran.

usage: not_run.py FILE, which is what ctest --output-junit has written.
"""
import re
import sys
import xml.etree.ElementTree


def reason_of(case):
    """What the test itself says last: "skipped: ..."; otherwise what ctest says."""
    said = re.findall(r"^skipped: (.*)$", case.findtext("system-out") or "", re.MULTILINE)
    skipped = case.find("skipped")
    return said[-1] if said else skipped.get("message", "no reason given") if skipped is not None else "not run"


def main():
    if len(sys.argv) != 2:
        raise SystemExit("usage: not_run.py FILE")
    try:
        cases = xml.etree.ElementTree.parse(sys.argv[1]).getroot().findall("testcase")
    except (OSError, xml.etree.ElementTree.ParseError) as e:
        raise SystemExit("not_run.py: %s: %s" % (sys.argv[1], e))
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
