#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rnic soak and --faults: the seed replays a run byte for byte, how the simulation is run changes nothing, exit status
and JSON say what happened, bad plans are refused in one line, captures show what the plan did.

usage: check_soak.py PROGRAM
"""
import json
import os
import subprocess
import sys
import tempfile

FAULTS = ["--drop", "2", "--duplicate", "2", "--reorder", "2", "--corrupt", "0.5"]
FIELDS = ["posted", "completed", "errors", "lost", "duplicated", "corrupted", "reordered", "hung", "seed"]


class Checks:
    def __init__(self, program, folder):
        self.program, self.folder, self.faults, self.number = program, folder, [], 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def expect(self, ok, text):
        if not ok:
            self.faults.append(text)

    def soak(self, *arguments, messages=600, status=0):
        """Bytes of the JSON and of the capture of a run."""
        self.number += 1
        result, capture = self.path("%d.json" % self.number), self.path("%d.pcap" % self.number)
        command = [self.program, "soak", "--quiet", "--messages", str(messages), "--qps", "4", "--largest", "9000"]
        done = subprocess.run(command + list(arguments) + ["--json", result, "--pcap", capture], capture_output=True,
                              text=True, timeout=100)
        self.expect(done.returncode == status, "%s: exit status %d: %s" % (arguments, done.returncode, done.stdout[-300:]))
        with open(result, "rb") as f, open(capture, "rb") as g:
            return f.read(), g.read()

    def refuse(self, arguments, words):
        done = subprocess.run([self.program] + arguments, capture_output=True, text=True, timeout=60)
        self.expect(done.returncode == 2, "%s: exit status %d" % (arguments, done.returncode))
        self.expect(len(done.stderr.splitlines()) == 1, "%s: not one line: %r" % (arguments, done.stderr))
        for word in words:
            self.expect(word in done.stderr, "%s: does not say %r: %s" % (arguments, word, done.stderr))


def check_seed(c):
    for version in ("v1", "v2"):
        first = c.soak("--roce", version, "--seed", "5", *FAULTS)
        c.expect(first == c.soak("--roce", version, "--seed", "5", *FAULTS), version + ": the same seed, another run")
        other = c.soak("--roce", version, "--seed", "6", *FAULTS)
        c.expect(first[1] != other[1], version + ": another seed, the same run")
        result = json.loads(first[0])
        for field in FIELDS:
            c.expect(field in result, "no field " + field)
        c.expect(result["posted"] == result["completed"] == 600 and result["seed"] == 5, "wrong numbers")
        c.expect(sum(result["verbs"].values()) == 600 and len(result["verbs"]) == 7 and min(result["verbs"].values()) > 40, "verbs are not mixed")
        for way in ("a_to_b", "b_to_a"):
            for action in ("drop", "duplicate", "reorder", "corrupt"):
                c.expect(result["faults"][way][action] > 0, "no %s %s" % (way, action))


def check_ways_of_running(c):
    """What is told about the run differs (its parameters), what has happened does not."""
    def happened(run):
        result = json.loads(run[0])
        for told in ("set", "parameters"):
            del result[told]
        return result, run[1]

    plain = happened(c.soak(*FAULTS, messages=200))
    for how in ("sim.run_ahead=false", "sim.shuffle_seed=7", "sim.always_tick=true"):
        c.expect(plain == happened(c.soak(*FAULTS, "--set", how, messages=200)), how + " changes the run")


def check_status(c):
    plan = c.path("wrong.toml")
    with open(plan, "w") as f:
        f.write('[[event]]\ntype = "corrupt"\npart = "payload"\nopcode = "rdma_write_only"\nnth = 3\n'
                'direction = "a_to_b"\nflow = 1\nmade_right = "icrc"\n')
    result = json.loads(c.soak("--faults", plan, status=1)[0])
    c.expect(result["corrupted"] == 1 and len(result["findings"]) == 1, "a wrong byte is not found")
    rule = result["faults"]["rules"][0]
    c.expect((rule["name"], rule["hits"]) == ("event 1", 1) and rule["meant"] > 1, "hits of the rule: %s" % rule)
    result = json.loads(c.soak("--drop", "100", "--ack-timeout", "4", "--retries", "1", status=1)[0])
    c.expect(result["errors"] == 8 and result["hung"] == 0 and result["completed"] == 0, "all lost: %r" % result)


def check_other_commands(c):
    """A plan for latency and bandwidth; the capture is behind the faults, or before them."""
    plan = c.path("drop.toml")
    with open(plan, "w") as f:
        f.write('[[event]]\ntype = "drop"\ndirection = "a_to_b"\nopcode = "rdma_write_only"\nnth = 5\n'
                '[[event]]\ntype = "duplicate"\ndirection = "a_to_b"\nopcode = "rdma_write_only"\nnth = 9\ncopies = 2\n')
    sizes = {}
    for command in (["latency", "--iterations", "20"], ["bandwidth", "--messages", "50"]):
        for tap in ([], ["--pcap-before"]):
            capture, result = c.path("tap.pcap"), c.path("tap.json")
            run = [c.program] + command + ["--sizes", "64", "--quiet", "--faults", plan, "--pcap", capture, "--json",
                                           result, "--overwrite"] + tap
            done = subprocess.run(run, capture_output=True, text=True, timeout=100)
            c.expect(done.returncode == 0, "%s: %s" % (command, done.stderr))
            with open(result) as f:
                way = json.load(f)["faults"]["a_to_b"]
            c.expect(way["drop"] == 1 and way["duplicate"] == 1, "%s: %r" % (command, way))
            sizes[command[0], bool(tap)] = os.path.getsize(capture)
        c.expect(sizes[command[0], False] > sizes[command[0], True], command[0] + ": two copies more, one frame less")
    with open(plan, "w") as f:
        f.write('[[event]]\ntype = "drop"\nopcode = "rdma_write"\n')
    done = subprocess.run([c.program, "latency", "--sizes", "64", "--faults", plan], capture_output=True, text=True,
                          timeout=100)
    c.expect(done.returncode == 1 and "retry_exceeded" in done.stderr, "all lost: %r" % done.stderr)


def check_what_did_not_happen(c):
    """A rule says of how many frames it hit which, or that none was of its kind; an outage that the run ended before it."""
    plan, result = c.path("missed.toml"), c.path("missed.json")
    with open(plan, "w") as f:
        f.write('[[event]]\ntype = "drop"\ndirection = "a_to_b"\nopcode = "rdma_write_only"\nnth = 7\n'
                '[[event]]\ntype = "drop"\ndirection = "a_to_b"\nopcode = "rdma_write_only"\nnth = 90000\n'
                '[[event]]\ntype = "drop"\nopcode = "send_only"\n'
                '[[outage]]\nport = 1\ndown_us = 50000\n')
    done = subprocess.run([c.program, "bandwidth", "--messages", "40", "--sizes", "64", "--qps", "1", "--quiet", "--faults",
                           plan, "--json", result], capture_output=True, text=True, timeout=100)
    c.expect(done.returncode == 0, done.stderr)
    with open(result) as f:
        faults = json.load(f)["faults"]
    sent = [r["meant"] for r in faults["rules"]]
    c.expect(sent[0] == sent[1] > 40 and sent[2] == 0, "frames that were meant: %s" % faults)
    c.expect([r["hits"] for r in faults["rules"]] == [1, 0, 0] and faults["outages"][0]["begun"] == 0, "hits: %s" % faults)
    for line in ("event 1: 1 of %d frames" % sent[0], "event 2: 0 of %d frames" % sent[0],
                 "event 3: 0 of 0 frames; none was of the kind that it means",
                 "outage of port 1: did not begin, it is due at 50000.000 us and the run ended at %.3f us" % faults["ended_us"]):
        c.expect("    " + line + "\n" in done.stdout, "%r is not in %s" % (line, done.stdout))


def check_refusals(c):
    plan = c.path("bad.toml")
    with open(plan, "w") as f:
        f.write('# a plan\n[[event]]\ntype = "drop"\npsn = 16777216\n')
    for command in ("latency", "bandwidth", "soak"):
        c.refuse([command, "--faults", plan], [plan + ":4:", "event 1", "psn", "16777216", "0 to 16777215"])
    c.refuse(["soak", "--faults", "/nowhere/x.toml"], ["/nowhere/x.toml"])
    c.refuse(["soak", "--drop", "101"], ["--drop", "101", "100"])
    c.refuse(["soak", "--corrupt", "-1"], ["--corrupt"])
    c.refuse(["soak", "--verbs", "send,atomic"], ["--verbs", "atomic", "write_imm"])
    c.refuse(["soak", "--qps", "0"], ["--qps", "0", "1"])
    c.refuse(["soak", "--messages", "0"], ["--messages", "0", "1"])
    c.refuse(["soak", "--roce", "v3"], ["--roce", "v1", "v2"])


def main():
    with tempfile.TemporaryDirectory() as folder:
        c = Checks(sys.argv[1], folder)
        for check in (check_seed, check_ways_of_running, check_status, check_other_commands, check_what_did_not_happen,
                      check_refusals):
            check(c)
    for fault in c.faults:
        print(fault)
    print("%d runs, %d faults" % (c.number, len(c.faults)))
    return 1 if c.faults else 0


if __name__ == "__main__":
    sys.exit(main())
