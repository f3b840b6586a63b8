#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rnic explain: what it says that more of a resource gives is what a run with these parameters gives; the resource that a
run is known to wait for comes first, wherever its numbers are said; reasons of a step between two sizes go with what they
name; a result explains like its file, with all that was given beside it; no gain is told that the run is too short for;
wrong ones are refused in one line, which names the user's file.

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

    def printed(self, text, *arguments):
        done = subprocess.run([self.program, "explain", self.write(text), "--quiet"] + list(arguments), capture_output=True,
                              text=True, timeout=200)
        self.expect(done.returncode == 0, "%s: exit status %d: %s" % (arguments, done.returncode, done.stderr))
        return done.stdout

    def refuse(self, file, words, *arguments):
        done = subprocess.run([self.program, "explain", file, "--quiet"] + list(arguments), capture_output=True, text=True)
        self.expect(done.returncode == 2 and len(done.stderr.splitlines()) == 1, "%s: %d %s" %
                    (file, done.returncode, done.stderr))
        for word in words:
            self.expect(word in done.stderr, "does not say %r: %s" % (word, done.stderr))
        self.expect("rnic-explain" not in done.stderr, "names a file of its own: %s" % done.stderr)


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


POISSON = ("duration_us = 200\n[topology]\nkind = \"star\"\nhosts = 3\n[[workload]]\nfrom = \"h1\"\nto = \"h3\"\n"
           "size = 4096\narrivals = \"poisson\"\nrate_mpps = 0.5\n")


def check_results(e):
    """What was given beside the file of a result is given again; what cannot be is told."""
    config = e.write("adapter.clock_khz = 50000\ndriver.post_send_ns = 900\n", "config.toml")
    file = e.write(POISSON.replace("arrivals = \"poisson\"\nrate_mpps = 0.5\n", "depth = 2\n"))
    usual = e.json_of("run", file)[0]["all"]["rate_mpps"]
    result, path = None, None
    for given in (["--profile", "connectx5_100g"], ["--config", config],
                  ["--profile", "connectx5_100g", "--config", config, "--set", "driver.post_send_ns=300"]):
        result, path = e.json_of("run", file, *given)
        e.expect(result["all"]["rate_mpps"] != usual, "%s: changes nothing" % given)
        found = e.json_of("explain", path)[0]
        e.expect(found["value"] == result["all"]["rate_mpps"], "%s: %s is explained, and not %s" %
                 (given, found["value"], result["all"]["rate_mpps"]))
    clock = [words for r in found["with_more"] for words in r["changed"] if words.startswith("adapter.clock_khz")]
    e.expect(clock == ["adapter.clock_khz 50000 to 55000"], "more of another clock: %s" % clock)
    os.remove(config)  # the result has what was in it
    e.expect(e.json_of("explain", path)[0] == found, "explains otherwise without the file of --config")
    seeded = e.json_of("run", e.write(POISSON), "--seed", "7")
    e.expect(e.json_of("run", e.write(POISSON))[0]["all"] != seeded[0]["all"], "the seed changes nothing")
    found = e.json_of("explain", seeded[1], "--metric", "all.latency.mean")[0]
    e.expect(found["value"] == seeded[0]["all"]["latency"]["mean"], "another seed is explained: %s" % found["value"])
    given = e.json_of("run", file, "--ttl", "9", "--traffic-class", "96")[0]
    e.expect(given.get("ttl") == "9" and given.get("traffic_class") == ["96"], "paths that are given are not in the result")
    by_class = e.write(star("[parameters]", "switch.priority = 'dscp'", "switch.buffer.flow_control = 'pfc'",
                            "switch.buffer.bytes = 200000").replace('"h1"', '["h1", "h2"]'))
    usual = e.json_of("run", by_class)[0]["all"]["rate_mpps"]
    given, path = e.json_of("run", by_class, "--traffic-class", "96")
    e.expect(given["all"]["rate_mpps"] != usual, "the class of traffic changes nothing")
    found = e.json_of("explain", path)[0]
    e.expect(found["value"] == given["all"]["rate_mpps"], "another class is explained: %s" % found["value"])
    result["all"]["rate_mpps"] *= 2
    e.refuse(e.write(json.dumps(result), "other.json"), ["other.json", "cannot be repeated", "all.rate_mpps"])
    result["file"] = "[topology]\nknd = 3\n"
    e.refuse(e.write(json.dumps(result), "wrong.json"), ["wrong.json: file"])


def star(*lines):
    return ("duration_us = 300\n[topology]\nkind = \"star\"\nhosts = 3\n" + "".join(l + "\n" for l in lines) +
            "[[workload]]\nfrom = \"h1\"\nto = \"h3\"\nsize = 4096\n")


def check_places(e):
    """Numbers of a resource, wherever the experiment has them, are raised together."""
    flow = "[[workload]]\nfrom = \"h1\"\nto = \"h2\"\nsize = 4096\n"
    trunk = ("duration_us = 300\n[topology]\nkind = \"dumbbell\"\nleft = 2\nright = 2\ntrunk_rate_mbps = 10000\n"
             "[[workload]]\nfrom = [\"h1\", \"h2\"]\nto = \"h3\"\nsize = 4096\n")
    custom = ("duration_us = 300\n[topology]\nkind = \"custom\"\n[[cable]]\nends = [\"h1\", \"s1\"]\n[[cable]]\n"
              "ends = [\"s1\", \"h2\"]\nrate_mbps = 10000\n" + flow)
    wire = "topology.rate_mbps 40000 to 44000"
    for text, resource, changed in (
            (trunk, "wire", [wire, "topology.trunk_rate_mbps 10000 to 11000"]),
            (custom, "wire", ["cable.1.rate_mbps 40000 to 44000", "cable.2.rate_mbps 10000 to 11000"]),
            ("duration_us = 300\n" + flow, "wire", [wire]),
            (star("[hosts.h3]", "adapter.clock_khz = 100000"), "adapter clock",
             ["adapter.clock_khz 427000 to 469700", "hosts.h3.adapter.clock_khz 100000 to 110000"]),
            (star("[hosts.h1]", "adapter.pcie.tags = 2", "[hosts.h3]", "adapter.pcie.tags = 4"), "PCIe tags",
             ["adapter.pcie.tags 32 to 35", "hosts.h1.adapter.pcie.tags 2 to 3", "hosts.h3.adapter.pcie.tags 4 to 5"])):
        top = e.explain(text)["with_more"][0]
        e.expect(top["resource"] == resource and top["changed"] == changed, "%s: %s" % (text, top))
        e.expect(top.get("gain_percent", 0) > 5, "%s: gains nothing: %s" % (text, top))
    found = e.explain("duration_us = 100\n" + flow.replace("4096", "8\nloop = \"ping-pong\""))
    names = [r["resource"] for r in found["with_more"]]
    e.expect("wire" in names and "window" not in names, "one message is under way, and is tried with more: %s" % names)
    file = e.write("[topology]\nkind = \"star\"\nhosts = 3\nrate_mbps = 10000\n[hosts.h3]\nadapter.clock_khz = 300000\n")
    for topology, rate in ((file, 10000), ("star", 40000)):
        result = e.json_of("bandwidth", "--topology", topology, "--no-flows", "--sizes", "65536", "--messages", "300")[1]
        found = e.json_of("explain", result)[0]
        top = found["with_more"][0]
        e.expect(top["resource"] == "wire" and top["gain_percent"] > 5, "%s: %s" % (topology, top))
        e.expect(top["changed"] == ["topology.rate_mbps %d to %d" % (rate, rate * 11 // 10)], "%s: %s" % (topology, top))
        e.expect(not [r for r in found["with_more"] if "error" in r], "%s: some are not tried: %s" % (topology, found))


def check_metrics(e):
    text = star("[parameters]", "host.llc_read_ps = 300000").replace("= 300\n", "= 100\n", 1)
    found = e.explain(text)
    completed = e.json_of("run", e.write(text))[0]["all"]["completed"]
    e.expect(10 < completed < 900, "%d messages" % completed)
    e.expect(abs(found.get("step_percent", 0) - 100 / completed) < 1e-9, "a step is %s" % found.get("step_percent"))
    lines = e.printed(text).splitlines()
    step = "a step of this metric is %.2f %% (%d messages); a longer run tells smaller gains" % (100 / completed, completed)
    e.expect(step in lines, "does not say %r: %s" % (step, lines))
    vain = [re.match("less than ([0-9.]+) %", l) for l in lines if l.startswith("less than")]
    e.expect(len(vain) == 1 and 0 <= float(vain[0].group(1)) - 100 / completed < 0.1, "less than: %s" % vain)
    by_number = e.printed(text.replace("size = 4096\n", "size = 4096\nmessages = 50\n").replace("duration_us = 100\n", ""))
    e.expect("a step" not in by_number and "less than 0.1 %" in by_number, "time is no step: %s" % by_number)
    file = e.write(text)
    e.refuse(file, ["all.latency.*", "all.latency.p50"], "--metric", "all.latency.*")
    e.refuse(file, ["all.*te*", "all.completed", "all.rate_mpps"], "--metric", "all.*te*")
    more = e.explain(text, "--metric", "all.latency.cou*", "--more", "50")
    rates = e.explain(text, "--more", "50")
    e.expect(more["metric"] == "all.latency.count" and more["with_more"][0]["gain_percent"] > 0 and
             more["with_more"][0]["value"] > more["value"], "more messages are better: %s" % more["with_more"][0])
    e.expect(more["with_more"][0]["resource"] == rates["with_more"][0]["resource"], "counts and rates differ")


def check_refusals(e):
    good = e.write("[bandwidth]\nsizes = [64]\nmessages = 50\n")
    e.refuse(os.path.join(e.folder, "gone.toml"), ["gone.toml"])
    for text, place in (("[bandwidth]\nsizes = [64]\nszes = [64]\n", ":3: "), ("", ": workload"),
                        (star("# a remark", "").replace("size =", "sizee ="), ":10: "), ("duration_us = = 3\n", ":1: "),
                        ("[topology]\nkind = \"pair\"\n[[flow]]\nfrom = \"h1\"\nto = \"h2\"\n", ":3: no field flow")):
        wrong = e.write(text)
        e.refuse(wrong, ["rnic: " + wrong + place])
    e.refuse(e.write("{\"command\": \"soak\"}", "soak.json"), ["soak.json", "no result"])
    e.refuse(good, ["--metric", "rows.*.bogus"], "--metric", "rows.*.bogus")
    e.refuse(good, ["adapter.clock"], "--set", "adapter.clock=3")
    e.refuse(good, ["--more"], "--more", "0")


if __name__ == "__main__":
    sys.exit(run_checks(__doc__, Explanations, (check_gains, check_steps, check_experiments, check_results, check_places,
                                              check_metrics, check_refusals)))
