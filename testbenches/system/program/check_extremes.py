#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is legal works: each number of `rnic parameters` at the smallest and at the largest value that the program calls
legal, one at a time. A run ends by itself with all messages, or says in one line which other parameter forbids it.

usage: check_extremes.py PROGRAM
"""
import concurrent.futures
import os
import re
import subprocess
import sys

SECONDS = 60
LATENCY = ["latency", "--sizes", "64,3000", "--iterations", "8", "--verb"]
# Several queue pairs at once; and datagrams, whose sender knows nothing of how long their way takes.
BOTH = [["bandwidth", "--sizes", "64,5000", "--qps", "3", "--messages", "60"],
        ["bandwidth", "--transport", "ud", "--verb", "send", "--sizes", "100", "--qps", "2", "--messages", "40"]]
SMALLEST, LARGEST = [LATENCY + ["send"]] + BOTH, [LATENCY + ["read"]] + BOTH


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=SECONDS)


def legal_range(program, name):
    """(smallest, largest), or None for words."""
    said = run(program, "latency", "--sizes", "64", "--set", name + "=-1000000000000").stderr
    found = re.search(r"expected (\d+) to (\d+)", said)
    return found.groups() if found else None


def attempt(program, name, value, arguments):
    """What is wrong, or nothing."""
    text = "%s=%s, %s" % (name, value, " ".join(arguments))
    try:
        done = run(program, *arguments, "--quiet", "--set", "%s=%s" % (name, value))
    except subprocess.TimeoutExpired:
        return "%s: no end" % text
    if done.returncode == 0:
        lost = re.search(r"lost .*\n.* (\d+)  \S", done.stdout)
        return "%s: %s are said to be lost" % (text, lost.group(1)) if lost and lost.group(1) != "0" else None
    lines = done.stderr.strip().splitlines()
    if done.returncode == 2 and len(lines) == 1 and "internal" not in lines[0]:
        return None
    return "%s: status %d, %s" % (text, done.returncode, done.stderr.strip())


def main():
    program = sys.argv[1]
    listed = run(program, "parameters").stdout
    names = [line.split(" = ")[0] for line in listed.splitlines() if re.search(r" = -?\d", line)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        ranges = dict(zip(names, pool.map(lambda n: legal_range(program, n), names)))
        jobs = []
        for name, both in ranges.items():
            if both is not None:
                jobs += [(name, both[0], arguments) for arguments in SMALLEST]
                jobs += [(name, both[1], arguments) for arguments in LARGEST]
        wrong = [w for w in pool.map(lambda j: attempt(program, *j), jobs) if w is not None]
    for w in wrong:
        print(w)
    print("%d runs of %d parameters, %d wrong" % (len(jobs), len(jobs) // 6, len(wrong)))
    return 1 if wrong or len(jobs) < 900 else 0


if __name__ == "__main__":
    sys.exit(main())
