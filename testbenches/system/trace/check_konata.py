#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--konata: what the parser of the viewer Konata, from its sources, reads of a log: every message with its number, host,
label and end, each stage from its first cycle to its last, in both lanes, without a warning; and a log that is damaged
on purpose is not read as the whole one was.

usage: check_konata.py NODE MODULES KONATA PROGRAM
"""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "fabric"), os.path.dirname(HERE)]
from faults import run_checks  # noqa: E402
from kanata import pipelines  # noqa: E402
from network_checks import Checks, mixed_loop  # noqa: E402

NODE, MODULES, KONATA = (sys.argv.pop(1) for _ in range(3)) if len(sys.argv) == 5 else ("", "", "")
# Of five frames four are lost: the queue pair ends in an error, with all that is under way.
LOSS = """
[topology]
kind = "pair"
[[workload]]
name = "lost"
from = "h1"
to = "h2"
verbs = { write = 1 }
sizes = [64]
depth = 8
messages = 40
[faults]
at = "h1"
drop = 80
"""


def viewer(path):
    read = subprocess.run([NODE, os.path.join(HERE, "read_konata.mjs"), MODULES, KONATA, path], capture_output=True,
                          text=True, timeout=300)
    if read.returncode != 0:
        raise RuntimeError("%s: the viewer cannot read it: %s" % (path, read.stderr[-500:]))
    return json.loads(read.stdout)


def compare(c, what, path):
    """The viewer counts its cycles from the first one of the log."""
    with open(path, encoding="utf-8") as f:
        first = int(f.readlines()[1].split("\t")[1])
    read, meant = viewer(path), pipelines(c, path)
    c.expect(not read["warnings"], "%s: the viewer warns: %s" % (what, read["warnings"][:3]))
    c.expect(len(read["ops"]) == len(meant), "%s: the viewer has %d of %d" % (what, len(read["ops"]), len(meant)))
    for op in read["ops"]:
        i = meant[op["id"]]
        c.expect((op["gid"], op["tid"], op["from"], op["until"], op["label"]) ==
                 (i["message"], i["thread"], i["begin"] - first, i["end"] - first, i["label"]), "%s: %s is %s" % (what, i, op))
        c.expect(op["retired"] != op["flush"] and not op["eof"], "%s: neither or both ends: %s" % (what, op))
        lanes = [[[name, begin - first, end - first] for name, begin, end in i[lane]] for lane in ("stages", "beside")]
        c.expect((op["lanes"] + [[]])[:2] == lanes, "%s: lanes are %s, not %s" % (what, op["lanes"], lanes))
    return read


def check_loop(c):
    """Several hosts and verbs, and a second lane with what is waited for."""
    log = c.path("loop.kanata")
    c.call("run", c.file(mixed_loop(120)), "--konata", log)
    read = compare(c, "loop", log)
    c.expect(len(read["ops"]) == 240 and any(len(op["lanes"]) > 1 and op["lanes"][1] for op in read["ops"]),
             "loop: %d messages" % len(read["ops"]))
    c.expect(not any(op["flush"] for op in read["ops"]), "loop: a message is flushed")


def check_damage(c):
    """The comparison can fail: without one line of the log it does."""
    log, damaged = c.path("whole.kanata"), c.path("damaged.kanata")
    c.call("run", c.file(mixed_loop(20)), "--konata", log)
    with open(log, encoding="utf-8") as f:
        lines = f.readlines()
    at = next(n for n in range(len(lines) // 2, len(lines)) if lines[n].startswith("C\t"))
    with open(damaged, "w", encoding="utf-8") as f:
        f.writelines(lines[:at] + lines[at + 1:])
    c.expect(viewer(damaged)["ops"] != viewer(log)["ops"], "damage: a log without a line is read as the whole one")


def check_flushed(c):
    """What has failed, and what waited behind it, is flushed."""
    log = c.path("lost.kanata")
    c.call("run", c.file(LOSS), "--konata", log, status=1)
    read = compare(c, "lost", log)
    c.expect(len(read["ops"]) == 8 and all(op["flush"] for op in read["ops"]), "lost: %s" % read["ops"])


def check_latency(c):
    log = c.path("latency.kanata")
    c.call("latency", "--sizes", "64,4096", "--iterations", "20", "--warm-up", "0", "--konata", log)
    c.expect(len(compare(c, "latency", log)["ops"]) == 80, "latency: not 80 messages")


if __name__ == "__main__":
    sys.exit(run_checks(__doc__, Checks, [check_loop, check_flushed, check_damage, check_latency]))
