#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time explains itself (law 19), in every golden message of both profiles: the stages sum to the whole, to the picosecond;
a block names each of its stages once; no stage of an adapter that is no wait is longer than 16 cycles of its clock.

usage: check_stages.py PROGRAM

A planted stage of 17 cycles must be found, and so must one that is named twice or left out.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

from check_golden import COLD, MESSAGES, WARM

LONGEST = 16  # cycles
# The last packet of a long message is a short one, which waits for the engines that the others still occupy.
MORE = [("READ 64 B", WARM + ["--verb", "read", "--sizes", "64"]),
        ("WRITE 9000 B", WARM + ["--sizes", "9000"]), ("UC WRITE 4097 B", WARM + ["--transport", "uc", "--sizes", "4097"]),
        ("READ 4097 B", WARM + ["--verb", "read", "--sizes", "4097", "--mtu", "4096"]),
        ("XRC SEND 4097 B", WARM + ["--transport", "xrc", "--verb", "send", "--sizes", "4097"]),
        ("SEND 64 B, inline receive", WARM + ["--verb", "send", "--sizes", "64", "--inline-receive", "64"]),
        ("SEND 1024 B over RoCE v1", WARM + ["--verb", "send", "--sizes", "1024", "--roce", "v1", "--ip", "6"])]


def stages(program, arguments):
    """(end to end, stages) of `rnic latency`."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "message.json")
        done = subprocess.run([program, "latency", "--iterations", "1", "--quiet", "--json", file] + arguments,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit("%s: exit status %d: %s" % (" ".join(arguments), done.returncode, done.stderr))
        with open(file, encoding="utf-8") as f:
            row = json.load(f)["rows"][0]
    return row["end_to_end_ps"], row["stages"]


def faults(whole, all_stages, khz):
    """What is wrong with a message."""
    out = []
    total = sum(s["ps"] for s in all_stages)
    if total != whole:
        out.append("the stages sum to %d ps, the message takes %d" % (total, whole))
    seen = set()
    for s in all_stages:
        name = (s["block"], s["stage"])
        if name in seen:
            out.append("%s: %s stands twice" % name)
        if s["stage"] == "more stages":
            out.append("there were more stages than are kept")
        seen.add(name)
        cycles = s["ps"] * khz / 1e9
        if ".adapter." not in s["block"] or s["wait"] != "none" or cycles <= LONGEST + 1e-2:
            continue
        out.append("%s: %s takes %.1f cycles and has no parts" % (*name, cycles))
    return out


def profile_of(arguments):
    return arguments[arguments.index("--profile") + 1] if "--profile" in arguments else "connectx3pro_40g"


def clock_khz(program, profile):
    """Of the adapters' core."""
    text = subprocess.run([program, "parameters", "--profile", profile], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"^adapter\.clock_khz = (\d+)", text, re.M)[1])


def main():
    program = sys.argv[1]
    wrong = []
    khz = {profile: clock_khz(program, profile) for profile in ("connectx3pro_40g", "connectx5_100g")}
    messages = MESSAGES + MORE
    messages += [(name + ", connectx5_100g", arguments + ["--profile", "connectx5_100g"])
                 for name, arguments in messages if "--profile" not in arguments and arguments[:2] != COLD]
    for name, arguments in messages:
        wrong += [name + ": " + f for f in faults(*stages(program, arguments), khz[profile_of(arguments)])]
    for line in wrong:
        print(line)

    whole, planted = stages(program, WARM + ["--sizes", "2", "--set", "adapter.parser.parser_cycles=17"])
    found = faults(whole, planted, khz["connectx3pro_40g"])
    # The parser's stage has the cycles until the headers are there as well.
    if len(found) != 1 or not found[0].startswith("b.adapter.parser1: parser takes "):
        wrong.append("planted: a parser of 17 cycles")
        print(wrong[-1], "is not all that was found:", found)
    for what, changed in (("a stage is left out", planted[1:]), ("one stands twice", planted + planted[-1:])):
        if not any("sum" in f for f in faults(whole, changed, 1)):
            wrong.append("planted: " + what)
            print(wrong[-1], "was not found")
    if not any("stands twice" in f for f in faults(whole, planted + planted[-1:], 1)):
        wrong.append("planted: a name that stands twice")
        print(wrong[-1], "was not found")
    print("%d messages, %d faults" % (len(messages), len(wrong)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
