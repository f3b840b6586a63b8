#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rnic compare: which fields are compared, tolerances, exit status and the JUnit report (read by an XML parser).

usage: check_compare.py PROGRAM
"""
import copy
import json
import os
import subprocess
import sys
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from faults import Faults, run_checks  # noqa: E402

REFERENCE = {
    "command": "run", "seed": 1, "version": "1", "counters": {"x": 5}, "parameters": "a = 1",
    "all": {"goodput_gbps": 10.0, "completed": 1000, "unfinished": 0, "latency": {"p50": 2.0, "p99": 4.0, "histogram": [{"count": 3}]}},
    "rows": [{"size": 64, "limited_by": "wire", "rate": 5.0}, {"size": 128, "limited_by": "wire", "rate": 4.0}],
    "flows": [{"from": "h1", "to": "h2", "gbps": 1.5}],
    "parts": [{"name": "x", "v": 1}, {"name": "x", "v": 2}], "samples": [{"v": 1}, {"v": 2}],
}


class Comparisons(Faults):
    def store(self, name, value):
        with open(self.path(name), "w", encoding="utf-8") as f:
            json.dump(value, f)
        return self.path(name)

    def compare(self, change, *arguments):
        """Exit status, and names of the fields that are printed, of a result that `change` has changed."""
        other = copy.deepcopy(REFERENCE)
        change(other)
        done = subprocess.run([self.program, "compare", self.store("a.json", REFERENCE), self.store("b.json", other)] +
                              list(arguments), capture_output=True, text=True, timeout=60)
        return done.returncode, [line.split()[0] for line in done.stdout.splitlines()[:-1]], done


def nothing(_):
    pass


def put(*path, value):
    def change(result):
        for key in path[:-1]:
            result = result[key]
        result[path[-1]] = value
    return change


def check(c):
    def expect(change, status, fields, *arguments):
        got, printed, done = c.compare(change, *arguments)
        c.expect((got, printed) == (status, fields), "%s: %d, %s (%s)" % (arguments, got, printed, done.stderr))

    p99 = ("all", "latency", "p99")
    expect(nothing, 0, [])
    expect(put(*p99, value=4.1), 1, ["all.latency.p99"])
    expect(put(*p99, value=4.1), 0, [], "--tolerance", "3")
    expect(put(*p99, value=4.1), 1, ["all.latency.p99"], "--tolerance", "2.4")
    expect(put(*p99, value=3.9), 1, ["all.latency.p99"], "--tolerance", "2.4")
    # Per cent of the reference, 4.0: 2.5 of it are 2.56 of the other one.
    expect(put(*p99, value=3.9), 0, [], "--tolerance", "2.5")
    expect(put("all", "unfinished", value=1), 1, ["all.unfinished"], "--tolerance", "1000")
    expect(put(*p99, value="4.0"), 1, ["all.latency.p99"], "--tolerance", "1000")
    expect(put("parts", 1, "v", value=3), 1, ["parts.x#1.v"])
    expect(put("samples", 1, "v", value=3), 1, ["samples.1.v"])
    expect(put(*p99, value=4.1), 0, [], "--tolerance", "all.latency.*=3")
    expect(put(*p99, value=4.1), 1, ["all.latency.p99"], "--tolerance", "3", "--tolerance", "*.p99=1")
    expect(put(*p99, value=4.1), 0, [], "--tolerance", "*.p99=1", "--tolerance", "3")
    expect(put(*p99, value=4.1), 0, [], "--field", "all.goodput_gbps")
    expect(put(*p99, value=4.1), 0, [], "--without", "all.latency.*")
    expect(put("rows", 1, "limited_by", value="window"), 1, ["rows.128.limited_by"], "--tolerance", "50")
    expect(put("flows", 0, "gbps", value=0), 1, ["flows.h1-h2.gbps"], "--tolerance", "99.9")
    # New fields are no faults, but for what a good run has not.
    expect(put("standstills", value=[{"ways": ["s1 to s2"], "priority": 3}]), 1, ["standstills.0.priority", "standstills.0.ways.0"])
    expect(put("flows", 0, "failure", value="retries exceeded"), 1, ["flows.h1-h2.failure"])
    expect(put("all", "new", value=1), 0, ["all.new"])
    expect(lambda r: r["all"].pop("completed"), 1, ["all.completed"])
    # A list in another order is the same fields.
    expect(lambda r: r["rows"].reverse(), 0, [])
    # What a run is called and its counters may differ, unless they are asked for.
    for path in ("seed",), ("version",), ("counters", "x"), ("parameters",):
        expect(put(*path, value="other"), 0, [])
    expect(put("counters", "x", value=6), 1, ["counters.x"], "--field", "counters.*")

    report, result = c.path("junit.xml"), c.path("differences.json")
    c.compare(put(*p99, value=4.1), "--junit", report, "--json", result)
    suite = xml.etree.ElementTree.parse(report).getroot()
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    c.expect(failed == ["all.latency.p99"] and suite.get("failures") == "1", "JUnit: %s" % failed)
    c.expect(int(suite.get("tests")) == len(list(suite)) == 20, "JUnit: %s cases" % suite.get("tests"))
    with open(result, encoding="utf-8") as f:
        j = json.load(f)
    c.expect(j["compared"] == 20 and j["faults"] == 1 and j["differences"][0]["field"] == "all.latency.p99", "JSON: %s" % j)
    c.expect(c.compare(nothing, "--junit", report)[0] == 2, "a report is overwritten")
    odd = 'wire & "light" <fast>'
    c.compare(put("all", odd, value=1), "--junit", report, "--overwrite")
    names = [case.get("name") for case in xml.etree.ElementTree.parse(report).getroot()]
    c.expect("all." + odd in names, "JUnit: an odd name is %s" % names)
    for arguments in ["--tolerance", "x"], ["--tolerance", "-1"], ["--tolerance", "a="], ["--field", "nothing.*"], \
            ["--tolerance", "nothing.*=3"], ["--without", "nothing.*"]:
        status, _, done = c.compare(nothing, *arguments)
        c.expect(status == 2 and len(done.stderr.splitlines()) == 1, "%s: %d %s" % (arguments, status, done.stderr))
    # A guard that guards nothing: a name that is in neither file beside one that is, an empty reference.
    status, _, done = c.compare(nothing, "--field", "all.latency.p99", "--field", "all.latency.typo")
    c.expect(status == 2 and "all.latency.typo" in done.stderr, "a wrong field: %d %s" % (status, done.stderr))
    c.store("empty.json", {})
    for one, other, more in ("empty.json", "a.json", []), ("a.json", "empty.json", []), ("a.json", "a.json", ["--without", "*"]):
        done = subprocess.run([c.program, "compare", c.path(one), c.path(other)] + more, capture_output=True, text=True)
        c.expect(done.returncode == 2 and "no field in common" in done.stderr, "%s, %s: %s" % (one, other, done.stderr))
    with open(c.path("text.json"), "w", encoding="utf-8") as f:
        f.write("no JSON")
    os.mkdir(c.path("folder.json"))
    for wrong in "text.json", "gone.json", "folder.json":
        done = subprocess.run([c.program, "compare", c.path("a.json"), c.path(wrong)], capture_output=True, text=True)
        c.expect(done.returncode == 2 and wrong in done.stderr, "%s: %s" % (wrong, done.stderr))


if __name__ == "__main__":
    sys.exit(run_checks(__doc__, Comparisons, (check,)))
