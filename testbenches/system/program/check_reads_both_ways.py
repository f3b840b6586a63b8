#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Both hosts read from each other, and have atomics executed by each other, over more queue pairs than the responder has
places for requests and contexts: no request that waits for a place may hold up the responses that arrive behind it, or
each host waits for the other.

usage: check_reads_both_ways.py PROGRAM
"""
import json
import os
import subprocess
import sys
import tempfile

# Queue pairs, READs under way of each, messages of a host, goodput of both directions at least (Gb/s). Lines of 40 Gb/s
# give 76.5; 256 queue pairs have more contexts than fit on chip, which costs.
CASES = [(16, 16, 800, 72.0), (64, 4, 512, 72.0), (256, 2, 768, 40.0)]
# Queue pairs and atomics under way of each; messages of a host; rate of both directions at least (M/s). One unit makes
# 2.7 M/s; where requests wait in host memory, fewer.
ATOMICS = [(16, 16, 4000, 5.0), (64, 16, 8000, 3.5), (300, 16, 10000, 2.5)]
# Arguments of a soak in which nothing is lost, so nothing may be repeated either.
MIXES = [["--qps", "64", "--verbs", "cas,fadd", "--messages", "8000"],
         ["--qps", "256", "--verbs", "read,cas", "--depth", "16", "--messages", "4000"],
         ["--qps", "512", "--verbs", "read,write,cas,fadd", "--depth", "64", "--largest", "4096", "--messages", "16000"],
         ["--qps", "128", "--verbs", "read,write,fadd,send", "--messages", "4000",
          "--set", "adapter.responder.flows=4", "--set", "adapter.responder.read_queue=2"],
         # Each port is paused by the other host: what arrives may not wait for answers that cannot leave.
         ["--qps", "512", "--verbs", "write,read", "--depth", "1", "--largest", "16384", "--mtu", "256",
          "--messages", "2000", "--set", "adapter.responder.flows=2", "--set", "adapter.responder.contexts.entries=16",
          "--set", "adapter.responder.answer.waiting=1"]]
# With loss each queue pair's READs may be repeated, and repeated ones take places as well: everything arrives all the
# same, over few places and over few contexts. Time-outs are those of what was lost twice.
LOSSY = [["--qps", "64", "--verbs", "write,read", "--messages", "1500", "--reorder", "2",
          "--set", "adapter.responder.flows=8"],
         ["--qps", "512", "--verbs", "write,read", "--messages", "1500", "--drop", "2", "--set",
          "adapter.responder.flows=8"],
         ["--qps", "64", "--verbs", "write,read", "--messages", "1500", "--reorder", "2",
          "--set", "adapter.responder.flows=2"],
         ["--qps", "128", "--verbs", "write,read", "--messages", "600", "--reorder", "2",
          "--set", "adapter.responder.contexts.entries=32"],
         ["--qps", "512", "--verbs", "cas,read,write", "--messages", "3000", "--duplicate", "2", "--reorder", "2",
          "--set", "adapter.responder.flows=8", "--set", "adapter.responder.contexts.entries=16"]]
LOSSY_OF_ALL = ["--depth", "2", "--largest", "65536", "--ack-timeout", "12", "--mtu", "256", "--seed", "802102"]


def run(program, folder, arguments):
    path = os.path.join(folder, "run.json")
    try:
        done = subprocess.run([program] + arguments + ["--quiet", "--json", path, "--overwrite"], capture_output=True,
                              text=True, timeout=100)
    except subprocess.TimeoutExpired:
        return None, "stands still"
    if done.returncode != 0:
        return None, (done.stderr + done.stdout).strip()[-400:]
    with open(path) as f:
        return json.load(f), ""


def traffic(verb, size, pairs, depth, messages):
    return ["bandwidth", "--verb", verb, "--bidirectional", "--sizes", str(size), "--qps", str(pairs), "--depth",
            str(depth), "--messages", str(messages)]


def main():
    faults = []
    program = sys.argv[1]
    loads = [("READs", "goodput_gbps", c[3], traffic("read", 65536, *c[:3])) for c in CASES]
    loads += [("atomics", "rate_mpps", c[3], traffic("fadd", 8, *c[:3])) for c in ATOMICS]
    with tempfile.TemporaryDirectory() as folder:
        for of, figure, least, arguments in loads:
            what = "%s, %s" % (of, " ".join(arguments))
            result, error = run(program, folder, arguments)
            if result is None:
                faults.append("%s: %s" % (what, error))
                continue
            reached = result["rows"][0][figure]
            print("%s: %.1f" % (what, reached))
            if reached < least:
                faults.append("%s: %s %.1f, wanted %.1f" % (what, figure, reached, least))
        for mix in MIXES:
            result, error = run(program, folder, ["soak"] + mix)
            if result is None:
                faults.append("soak %s: %s" % (" ".join(mix), error))
                continue
            timeouts = sum(result["counters"][side + ".adapter.requester.timeouts"] for side in "ab")
            print("soak %s: %d time-outs" % (" ".join(mix), timeouts))
            if timeouts != 0:
                faults.append("soak %s: %d time-outs" % (" ".join(mix), timeouts))
        for mix in LOSSY:
            result, error = run(program, folder, ["soak"] + mix + LOSSY_OF_ALL)
            if result is None:
                faults.append("soak %s: %s" % (" ".join(mix), error))
                continue
            print("soak %s: %.1f ms" % (" ".join(mix), result["simulated_ps"] / 1e9))
    for f in faults:
        print(f, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
