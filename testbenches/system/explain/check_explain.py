#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rnic explain: what it says that more of a resource gives is what a run with these parameters gives; the resource that a
run is known to wait for comes first; reasons of a step between two sizes go with what they name; a result explains like
its file; wrong ones are refused in one line.

usage: check_explain.py PROGRAM
"""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from faults import Faults, run_checks  # noqa: E402


class Explanations(Faults):
    def json_of(self, *arguments):
        self.number += 1
        path = os.path.join(self.folder, "%d.json" % self.number)
        done = subprocess.run([self.program] + list(arguments) + ["--quiet", "--json", path], capture_output=True,
                              text=True, timeout=200)
        self.expect(done.returncode == 0, "%s: exit status %d: %s" % (arguments, done.returncode, done.stderr))
        with open(path, encoding="utf-8") as f:
            return json.load(f), path

    def explain(self, text, *arguments):
        return self.json_of("explain", self.write(text), *arguments)[0]

    def refuse(self, file, words, *arguments):
        done = subprocess.run([self.program, "explain", file, "--quiet"] + list(arguments), capture_output=True, text=True)
        self.expect(done.returncode == 2 and len(done.stderr.splitlines()) == 1, "%s: %d %s" %
                    (file, done.returncode, done.stderr))
        for word in words:
            self.expect(word in done.stderr, "does not say %r: %s" % (word, done.stderr))


def settings(row):
    """--set and options of `rnic bandwidth` that make the change of a row."""
    out = []
    for words in row["changed"]:
        name, _, _, value = words.split()
        out += [name, value] if name.startswith("--") else ["--set", "%s=%s" % (name, value)]
    return out


def check_gains(e):
    """Of scenarios whose limit is known (system/limits); what is printed is what a run by hand gives."""
    for options, first in (("sizes = [64]\nqps = 16\n", "processor"),
                           ("sizes = [64]\nqps = 1\n", "processing units"),
                           ("sizes = [65536]\nqps = 4\n", "wire"),
                           ("sizes = [64]\nqps = 16\nset = [\"driver.post_send_ns=20\", \"driver.poll_ns=20\"]\n",
                            "requester send engine"),
                           # The unit is held while it reads the word, so memory is more of it than its own cycles.
                           ("sizes = [8]\nqps = 8\nverb = \"fadd\"\n", "host memory"),
                           ("sizes = [64]\nqps = 16\nset = [\"b.adapter.responder.write_cycles=200\"]\n", "responder check"),
                           ("sizes = [64]\nset = [\"a.adapter.requester.wqe_cycles=400\"]\n", "processing units"),
                           ("sizes = [64]\ndepth = 1\ncable = 2000\n", "window")):
        text = "[bandwidth]\nmessages = 1500\n" + options
        found = e.explain(text)
        top = found["with_more"][0]
        # A faster clock is more of every engine.
        names = [r["resource"] for r in found["with_more"] if r["resource"] != "adapter clock"]
        e.expect(names[0] == first, "%s: %s comes first, expected %s" % (options, names[:3], first))
        e.expect(top["gain_percent"] > 1, "%s: the first gives %s %%" % (options, top["gain_percent"]))
        for own in re.findall(r'"([ab]\.adapter[^=]*)=', options):  # what one adapter has for itself is changed there
            changed = [words for r in found["with_more"] if r["resource"] == first for words in r["changed"]]
            e.expect(any(words.startswith(own + " ") for words in changed), "%s: %s, and not %s" % (options, changed, own))
        path = e.write(text)
        base = e.json_of("run", path)[0]["rows"][0]
        e.expect(base["rate_mpps"] == found["value"] and base["limited_by"] == found["limited_by"], "%s: base" % options)
        by_hand = subprocess.run([e.program, "run", path, "--print"], capture_output=True, text=True).stdout
        e.expect(by_hand == text, "the experiment's file has changed")
        arguments = ["bandwidth", "--messages", "1500"]
        for line in options.splitlines():
            name, value = line.split(" = ")
            for v in json.loads(value) if value.startswith("[") else [value.strip('"')]:
                arguments += ["--" + name, str(v)]
        for row in found["with_more"][:2] + found["next"]:
            more = settings(row)
            if "--depth" in more and "--depth" in arguments:
                at = arguments.index("--depth")
                plain = arguments[:at] + arguments[at + 2:]
            else:
                plain = arguments
            run = e.json_of(*(plain + more))[0]["rows"][0]
            e.expect(run["rate_mpps"] == row["value"], "%s with %s: %s, by hand %s" %
                     (options, row["changed"], row["value"], run["rate_mpps"]))
            e.expect(run["limited_by"] == row["limited_by"], "%s with %s: limit" % (options, row["changed"]))


def check_steps(e):
    def reasons(text):
        return [s["reasons"] for s in e.explain("[latency]\niterations = 5\n" + text)["steps"]]

    ends, packet = "inline data ends at 220 bytes", "a packet ends at 2048 bytes"
    found = reasons("sizes = [64, 256, 4096]\n")
    e.expect(len(found) == 2 and len(found[0]) == 1 and found[0][0].startswith(ends), "steps: %s" % found)
    e.expect(len(found[1]) == 1 and found[1][0].startswith(packet), "steps: %s" % found)
    # Without what they name there is no such step.
    e.expect(reasons("sizes = [64, 256]\ninline = 256\n") == [[]], "inline data does not end there")
    e.expect(reasons("sizes = [64, 256]\ninline = 0\n") == [[]], "there is no inline data")
    e.expect(reasons("sizes = [256, 4096]\nmtu = 4096\n") == [[]], "there is one packet")
    step = e.explain("[latency]\niterations = 5\nsizes = [64, 256]\n")["steps"][0]
    rows = e.json_of("latency", "--sizes", "64,256", "--iterations", "5")[0]["rows"]
    e.expect(abs(step["more_ns"] - (rows[1]["end_to_end_ps"] - rows[0]["end_to_end_ps"]) / 1e3) < 1e-6, "step: %s" % step)
    new = [s for s in step["stages"] if s["new"]]
    e.expect([(s["block"], s["stage"]) for s in new] == [("a.adapter.descriptor_fetch", "read")], "new stages: %s" % new)


def check_experiments(e):
    text = ("duration_us = 300\n[topology]\nkind = \"star\"\nhosts = 3\nrate_mbps = 10000\n[[workload]]\nfrom = [\"h1\", \"h2\"]\n"
            "to = \"h3\"\nsize = 4096\n")
    found = e.explain(text)
    e.expect(found["with_more"][0]["resource"] == "wire", "a line of 10 Gb/s: %s" % found["with_more"][0])
    e.expect(abs(found["with_more"][0]["gain_percent"] - 10) < 1, "10 %% more of the line: %s" % found["with_more"][0])
    tail = e.explain(text, "--metric", "all.latency.p99", "--more", "50")
    e.expect(tail["metric"] == "all.latency.p99" and tail["with_more"][0]["gain_percent"] > 30, "the tail: %s" %
             tail["with_more"][0])
    result, path = e.json_of("run", e.write(text), "--set", "host.llc_read_ps=300000")
    e.expect(result["all"]["completed"] > 0, "no messages")
    of_result = e.json_of("explain", path)[0]
    of_file = e.explain(text, "--set", "host.llc_read_ps=300000")
    e.expect(of_result == of_file, "a result and its file are explained otherwise")
    of_result = e.json_of("explain", e.json_of("bandwidth", "--sizes", "64", "--messages", "500", "--set",
                                               "adapter.clock_khz=300000")[1])[0]
    of_file = e.explain("[bandwidth]\nsizes = [64]\nmessages = 500\nset = [\"adapter.clock_khz=300000\"]\n")
    e.expect(of_result == of_file, "a result of bandwidth and its file are explained otherwise")


def check_refusals(e):
    good = e.write("[bandwidth]\nsizes = [64]\nmessages = 50\n")
    e.refuse(os.path.join(e.folder, "gone.toml"), ["gone.toml"])
    e.refuse(e.write("[bandwidth]\nszes = [64]\n"), ["szes"])
    e.refuse(e.write("{\"command\": \"soak\"}", "soak.json"), ["soak.json", "no result"])
    e.refuse(good, ["--metric", "rows.*.bogus"], "--metric", "rows.*.bogus")
    e.refuse(good, ["adapter.clock"], "--set", "adapter.clock=3")
    e.refuse(good, ["--more"], "--more", "0")


if __name__ == "__main__":
    sys.exit(run_checks(__doc__, Explanations, (check_gains, check_steps, check_experiments, check_refusals)))
