#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole messages take the picoseconds, stage by stage, and count what golden.json beside this file says.

usage: check_golden.py PROGRAM [--update]

Each difference is printed with message, stage, golden and present picoseconds. --update writes golden.json anew;
README.md says when that is right.
"""
import json
import os
import subprocess
import sys
import tempfile

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden.json")
WARM = ["--warm-up", "4"]   # the message is the fifth
COLD = ["--warm-up", "0"]   # the very first one: no cache on chip holds anything of it
# Name and arguments of `rnic latency`; profile connectx3pro_40g, RC and RoCE v2 over IPv4 where nothing else is said.
MESSAGES = [
    ("WRITE 2 B", WARM + ["--verb", "write", "--sizes", "2"]),
    ("WRITE 2 B, cold", COLD + ["--verb", "write", "--sizes", "2"]),
    ("WRITE 64 B inline by BlueFlame", WARM + ["--verb", "write", "--sizes", "64"]),
    ("WRITE 64 B inline by doorbell", WARM + ["--verb", "write", "--sizes", "64", "--set", "driver.blue_flame=none"]),
    ("WRITE 64 B not inline", WARM + ["--verb", "write", "--sizes", "64", "--inline", "0"]),
    ("WRITE 64 B not inline, cold", COLD + ["--verb", "write", "--sizes", "64", "--inline", "0"]),
    ("WRITE 1024 B", WARM + ["--verb", "write", "--sizes", "1024"]),
    ("WRITE 4096 B, four packets", WARM + ["--verb", "write", "--sizes", "4096", "--mtu", "1024"]),
    ("WRITE 64 B with immediate", WARM + ["--verb", "write_imm", "--sizes", "64"]),
    ("SEND 0 B", WARM + ["--verb", "send", "--sizes", "0"]),
    ("SEND 64 B", WARM + ["--verb", "send", "--sizes", "64"]),
    ("SEND 64 B, cold", COLD + ["--verb", "send", "--sizes", "64"]),
    ("SEND 4096 B, four packets", WARM + ["--verb", "send", "--sizes", "4096", "--mtu", "1024"]),
    ("READ 8 B", WARM + ["--verb", "read", "--sizes", "8"]),
    ("READ 4096 B, four packets", WARM + ["--verb", "read", "--sizes", "4096", "--mtu", "1024"]),
    ("READ 4096 B, cold", COLD + ["--verb", "read", "--sizes", "4096"]),
    ("compare and swap", WARM + ["--verb", "cas"]),
    ("fetch and add", WARM + ["--verb", "fadd"]),
    ("UC WRITE 64 B", WARM + ["--transport", "uc", "--verb", "write", "--sizes", "64"]),
    ("UD SEND 64 B", WARM + ["--transport", "ud", "--verb", "send", "--sizes", "64"]),
    ("XRC SEND 64 B", WARM + ["--transport", "xrc", "--verb", "send", "--sizes", "64"]),
    ("RoCE v1 WRITE 64 B, VLAN 7",
     WARM + ["--verb", "write", "--sizes", "64", "--roce", "v1", "--ip", "6", "--vlan", "7"]),
    ("connectx5_100g WRITE 64 B", WARM + ["--profile", "connectx5_100g", "--verb", "write", "--sizes", "64"]),
]
# Name and arguments of `rnic bandwidth`: messages that follow each other closely meet intervals of the scheduler and of
# answers that one alone does not see.
BURSTS = [
    ("64 WRITEs of 8 B, 8 queue pairs", ["--verb", "write", "--sizes", "8", "--inline", "220", "--set",
                                         "driver.blue_flame=all", "--set", "driver.post_send_ns=5"]),
    ("64 WRITEs of 256 B, 8 queue pairs", ["--verb", "write", "--sizes", "256", "--set", "driver.post_send_ns=5"]),
    ("64 SENDs of 64 B, 8 queue pairs", ["--verb", "send", "--sizes", "64", "--set", "driver.post_send_ns=5"]),
    ("64 READs of 64 B, 8 queue pairs", ["--verb", "read", "--sizes", "64"]),
    ("64 WRITEs of 4096 B both ways, 8 queue pairs", ["--verb", "write", "--sizes", "4096", "--bidirectional"]),
    ("64 fetch and adds, 8 queue pairs", ["--verb", "fadd"]),
]


def measure(program, arguments):
    """{end_to_end_ps, stages: [[block: stage, wait, ps], ...], counters: {block: {counter: number}}} of a message or burst."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "message.json")
        burst = "--warm-up" not in arguments
        what = ["bandwidth", "--messages", "64", "--qps", "8"] if burst else ["latency", "--iterations", "1"]
        command = [program] + what + ["--quiet", "--json", file] + arguments
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit("%s: exit status %d: %s" % (" ".join(command), done.returncode, done.stderr))
        with open(file) as f:
            result = json.load(f)
    row = result["rows"][0]
    counters = {}
    for name, value in sorted((result if burst else row)["statistics"].items()):
        if value == 0:
            continue
        block, counter = block_and_counter(name)
        counters.setdefault(block, {})[counter] = value
    if burst:
        return {"end_to_end_ps": row["elapsed_ps"], "stages": [], "counters": counters}
    return {"end_to_end_ps": row["end_to_end_ps"],
            "stages": [[s["block"] + ": " + s["stage"], s["wait"], s["ps"]] for s in row["stages"]],
            "counters": counters}


def block_and_counter(name):
    """a.adapter.requester.contexts.hits: block a.adapter.requester, counter contexts.hits."""
    parts = name.split(".")
    n = 3 if parts[1] == "adapter" else 2 if len(parts) > 2 else 1
    return ".".join(parts[:n]), ".".join(parts[n:])


def to_text(golden):
    """JSON with a stage a line and a block's counters a line."""
    messages = []
    for name, m in golden.items():
        stages = ["      " + json.dumps(s) for s in m["stages"]]
        counters = ["      %s: %s" % (json.dumps(block), json.dumps(c)) for block, c in m["counters"].items()]
        form = '  %s: {\n    "end_to_end_ps": %d,\n    "stages": [\n%s\n    ],\n    "counters": {\n%s\n    }\n  }'
        messages.append(form % (json.dumps(name), m["end_to_end_ps"], ",\n".join(stages), ",\n".join(counters)))
    return "{\n" + ",\n\n".join(messages) + "\n}\n"


def by_stage(stages):
    """{(name, wait, n-th of these): ps}: a message may pass a stage twice."""
    seen, out = {}, {}
    for name, wait, ps in stages:
        n = seen[(name, wait)] = seen.get((name, wait), 0) + 1
        out[(name, wait, n)] = ps
    return out


def stage_name(key):
    name, wait, n = key
    return name + (", waiting: " + wait if wait != "none" else "") + (", %d" % n if n > 1 else "")


def difference(name, golden, present):
    """Lines that say in what the message differs; none when it is the same."""
    lines = []
    old, new = by_stage(golden["stages"]), by_stage(present["stages"])
    for key in list(old) + [k for k in new if k not in old]:
        a, b = old.get(key), new.get(key)
        if a == b:
            continue
        lines.append("%s: %s: golden %s, now %s ps (%+d)" % (name, stage_name(key), "no such stage" if a is None else a,
                                                            "no such stage" if b is None else b, (b or 0) - (a or 0)))
    if not lines and golden["stages"] != present["stages"]:
        lines.append("%s: the stages come in another order: %s" % (name, ", ".join(s[0] for s in present["stages"])))
    if lines or golden["end_to_end_ps"] != present["end_to_end_ps"]:
        lines.append("%s: end to end: golden %d, now %d ps (%+d)" % (
            name, golden["end_to_end_ps"], present["end_to_end_ps"],
            present["end_to_end_ps"] - golden["end_to_end_ps"]))
    for block in sorted(set(golden["counters"]) | set(present["counters"])):
        a, b = golden["counters"].get(block, {}), present["counters"].get(block, {})
        for counter in sorted(set(a) | set(b)):
            if a.get(counter, 0) != b.get(counter, 0):
                lines.append("%s: counter %s.%s: golden %d, now %d" % (name, block, counter, a.get(counter, 0),
                                                                      b.get(counter, 0)))
    return lines


def main():
    program, update = sys.argv[1], "--update" in sys.argv[2:]
    present, lines = {}, []
    for name, arguments in MESSAGES + BURSTS:
        present[name] = m = measure(program, arguments)
        if m["stages"] and sum(ps for _, _, ps in m["stages"]) != m["end_to_end_ps"]:
            lines.append("%s: the stages do not add up to %d ps" % (name, m["end_to_end_ps"]))
    golden = {}
    if os.path.exists(GOLDEN):
        with open(GOLDEN) as f:
            golden = json.load(f)
    for name in list(golden) + [n for n in present if n not in golden]:
        if name not in golden or name not in present:
            lines.append("%s: only in %s" % (name, "this run" if name in present else "golden.json"))
        else:
            lines += difference(name, golden[name], present[name])
    print("\n".join(lines + ["%d messages, %d differences" % (len(present), len(lines))]))
    if update:
        with open(GOLDEN, "w") as f:
            f.write(to_text(present))
        print("golden.json is written anew: say in the commit why, and why that is nearer to hardware")
        return 0
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
