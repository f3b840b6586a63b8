#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Both hosts read from each other over more queue pairs than the responder has places for requests and contexts: no
request that waits for a place may hold up the responses that arrive behind it, or each host waits for the other.

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


def run(program, folder, pairs, depth, messages):
    path = os.path.join(folder, "run.json")
    done = subprocess.run([program, "bandwidth", "--verb", "read", "--bidirectional", "--sizes", "65536", "--qps",
                           str(pairs), "--depth", str(depth), "--messages", str(messages), "--quiet", "--json", path,
                           "--overwrite"], capture_output=True, text=True, timeout=100)
    if done.returncode != 0:
        return None, done.stderr.strip()
    with open(path) as f:
        return json.load(f), ""


def main():
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        for pairs, depth, messages, least in CASES:
            what = "%d queue pairs, %d READs of each under way" % (pairs, depth)
            try:
                result, error = run(sys.argv[1], folder, pairs, depth, messages)
            except subprocess.TimeoutExpired:
                faults.append(what + ": stands still")
                continue
            if result is None:
                faults.append("%s: %s" % (what, error))
                continue
            goodput = result["rows"][0]["goodput_gbps"]
            print("%s: %.1f Gb/s" % (what, goodput))
            if goodput < least:
                faults.append("%s: %.1f Gb/s, wanted %.1f" % (what, goodput, least))
    for f in faults:
        print(f, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
