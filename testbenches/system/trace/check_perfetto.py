#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--trace: what Perfetto's trace processor reads of it. It reports no error and loses nothing; every slice is on the row of
the file, with its name, message, begin and length; rows nest nothing but slices that are shorter than a nanosecond shows;
arrows leave and reach the slices they were written for; counters have all their values. A trace that is damaged on
purpose is not read as the whole one was.

usage: check_perfetto.py TRACE_PROCESSOR PROGRAM
"""
import collections
import csv
import io
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "fabric"), os.path.dirname(HERE)]
from faults import run_checks  # noqa: E402
from network_checks import Checks, mixed_loop  # noqa: E402

PROCESSOR = sys.argv.pop(1) if len(sys.argv) == 3 else ""
ERRORS = "select name, value from stats where value != 0 and severity in ('error', 'data_loss');"
SLICES = """select coalesce(process.name, '') as process, coalesce(thread.name, '') as row, slice.name as name,
slice.ts as ts, slice.dur as dur, extract_arg(slice.arg_set_id, 'args.m') as m,
extract_arg(slice.arg_set_id, 'args.ps') as ps, slice.depth as depth, slice.id as id
from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) join process using (upid);"""
# Asynchronous events with an id, which viewers know by that alone: no process.
BESIDE = "select name, ts, dur from slice where track_id not in (select id from thread_track);"
ARROWS = "select slice_out, slice_in from flow;"
COUNTERS = """select coalesce(process.name, '') as process, process_counter_track.name as name, counter.value as value
from counter join process_counter_track on counter.track_id = process_counter_track.id join process using (upid);"""


def ns(us):
    return round(us * 1000)


class Read:
    """What the trace processor has understood."""

    def __init__(self, c, path):
        self.errors, self.slices, self.beside, self.arrows, self.counters = (
            self.ask(c, path, query) for query in (ERRORS, SLICES, BESIDE, ARROWS, COUNTERS))

    @staticmethod
    def ask(c, path, query):
        file = c.path("query.sql")
        with open(file, "w", encoding="utf-8") as f:
            f.write(query + "\n")
        done = subprocess.run([PROCESSOR, "-q", file, path], capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0:
            raise RuntimeError("%s: the trace processor cannot read it: %s" % (path, done.stderr[-500:]))
        return list(csv.DictReader(io.StringIO(done.stdout)))


class File:
    """What is in the file."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.events = json.load(f)["traceEvents"]
        names = {"process_name": {}, "thread_name": {}}
        for e in self.events:
            if e["name"] in names:
                names[e["name"]][e["pid"], e.get("tid")] = e["args"]["name"]
        process = {pid: name for (pid, _), name in names["process_name"].items()}
        self.slices, self.beside, self.counters, ends, open_ = (collections.Counter() for _ in range(5))
        sent, ends = {}, []
        for e in self.events:
            host, row, ph = process.get(e["pid"]), names["thread_name"].get((e["pid"], e.get("tid"))), e["ph"]
            if ph == "X":
                at = ns(e["ts"])
                self.slices[host, row, e["name"], at, ns(e["ts"] + e["dur"]) - at, e["args"]["m"], e["args"]["ps"]] += 1
            elif ph == "b":
                open_[e["id"]] = ns(e["ts"])
            elif ph == "e":
                at = open_[e["id"]]
                self.beside[e["name"], at, ns(e["ts"]) - at] += 1
            elif ph == "s":
                sent[e["id"]] = host, row, ns(e["ts"])
            elif ph == "f":
                ends.append((sent[e["id"]], (host, row, ns(e["ts"]))))
            elif ph == "C":
                self.counters[host, e["name"], e["args"]["value"]] += 1
        self.arrows = collections.Counter(ends)


def differences(c, path, original=None):
    """In sentences, of what is read of `path` and what is in the file `original`."""
    read, file = Read(c, path), File(original or path)
    said = ["the trace processor counts %s: %s" % (e["name"], e["value"]) for e in read.errors]

    def compare(what, got, meant):
        if got != meant:
            said.append("%s: read %s that the file has not, and not %s" %
                        (what, list((got - meant).items())[:3], list((meant - got).items())[:3]))

    rows = {s["id"]: (s["process"], s["row"], int(s["ts"])) for s in read.slices}
    compare("slices", collections.Counter((s["process"], s["row"], s["name"], int(s["ts"]), int(s["dur"]), int(s["m"]),
                                           int(s["ps"])) for s in read.slices), file.slices)
    compare("slices beside rows", collections.Counter((s["name"], int(s["ts"]), int(s["dur"])) for s in read.beside), file.beside)
    # An arrow hangs on slices by their times.
    compare("arrows", collections.Counter((rows.get(a["slice_out"]), rows.get(a["slice_in"])) for a in read.arrows),
            file.arrows)
    # The reader calls a counter of one series by both names, where they differ.
    compare("counters", collections.Counter((k["process"], k["name"].removesuffix(" value"), int(float(k["value"])))
                                            for k in read.counters), file.counters)
    short = {(s["process"], s["row"], s["ts"]) for s in read.slices if int(s["dur"]) == 0}
    nested = [s for s in read.slices if s["depth"] != "0" and (s["process"], s["row"], s["ts"]) not in short]
    if nested:
        said.append("%d slices lie in others, as %s" % (len(nested), nested[0]))
    return said


def check_read(c):
    loss = mixed_loop(120).replace('kind = "star"\nhosts = 3', 'kind = "pair"').replace('["h1", "h2"]', '"h1"').replace("h3", "h2")
    deep = mixed_loop(300).replace("depth = 8", "depth = 200")
    for name, command, arguments in (
            ("loop", "run", [c.file(mixed_loop(120), "loop.toml")]),
            ("loss", "run", [c.file(loss + '[faults]\nat = "h1"\ndrop = 3\n', "loss.toml")]),
            ("deep", "run", [c.file(deep, "deep.toml")]),
            ("latency", "latency", ["--sizes", "64,4096", "--iterations", "20", "--warm-up", "0"]),
            ("bandwidth", "bandwidth", ["--sizes", "64", "--messages", "200", "--qps", "3", "--transport", "uc"])):
        path = c.path(name + ".trace.json")
        c.call(command, *arguments, "--trace", path)
        for sentence in differences(c, path):
            c.expect(False, "%s: %s" % (name, sentence))


def check_damage(c):
    """The comparison can fail: a slice, an end of an arrow, a value that is left out, a length that grows."""
    path = c.path("whole.trace.json")
    c.call("run", c.file(mixed_loop(20), "whole.toml"), "--trace", path)
    with open(path, encoding="utf-8") as f:
        lines = f.readlines()
    for ph in "X", "f", "C":
        those = [n for n, line in enumerate(lines) if '"ph":"%s"' % ph in line]
        at = those[len(those) // 2]
        damaged = c.path("without_%s.json" % ph)
        with open(damaged, "w", encoding="utf-8") as f:
            f.writelines(lines[:at] + lines[at + 1:])
        c.expect(differences(c, damaged, path), "a trace without an event of kind %s is read as the whole one" % ph)
    at = next(n for n in range(len(lines) // 2, len(lines)) if '"dur":' in lines[n])
    before, after = lines[at].split('"dur":')
    with open(c.path("longer.json"), "w", encoding="utf-8") as f:
        f.writelines(lines[:at] + [before + '"dur":1' + after] + lines[at + 1:])
    c.expect(differences(c, c.path("longer.json"), path), "a slice that is longer is read as it was")


if __name__ == "__main__":
    sys.exit(run_checks(__doc__, Checks, [check_read, check_damage]))
