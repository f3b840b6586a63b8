#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rnic bandwidth` names the resource that limits a run, and making another one narrow makes it name that one.

usage: check_limits.py PROGRAM
"""
import json
import os
import subprocess
import sys
import tempfile

# Arguments, and the beginning of the name in the rows' `limited_by`.
CASES = [
    # 60 ns of a processor a message: 16.7 million in a second and no more.
    (["--sizes", "64", "--qps", "16"], ["processor a"]),
    (["--sizes", "65536", "--qps", "16"], ["wire, a to b"]),
    (["--sizes", "65536", "--qps", "4", "--verb", "read"], ["wire, b to a"]),
    (["--sizes", "64", "--qps", "16", "--set", "driver.post_send_ns=200"], ["processor a"]),
    (["--sizes", "1024,65536", "--qps", "4", "--set", "adapter.pcie.width=1"], ["PCIe, ", "PCIe, "]),
    (["--sizes", "1024", "--qps", "4", "--set", "adapter.responder.write_cycles=900"], ["responder check of adapter b"]),
    (["--sizes", "64", "--qps", "1"], ["processing units of adapter a"]),
    (["--sizes", "64", "--qps", "4", "--set", "adapter.requester.wqe_cycles=900"], ["processing units of adapter a"]),
    (["--sizes", "64", "--qps", "1", "--depth", "1"], ["window"]),
    (["--sizes", "65536", "--qps", "4", "--cable", "100000", "--depth", "2"], ["window"]),
]


def rows(program, arguments):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "r.json")
        command = [program, "bandwidth", "--messages", "4000", "--quiet", "--json", file] + arguments
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit("%s: %s" % (" ".join(command), done.stderr))
        with open(file) as f:
            return json.load(f)["rows"]


def main():
    wrong = 0
    for arguments, expected in CASES:
        named = [row["limited_by"] for row in rows(sys.argv[1], arguments)]
        if len(named) != len(expected) or not all(n.startswith(e) for n, e in zip(named, expected)):
            print("%s: %s, expected %s" % (" ".join(arguments), named, expected))
            wrong += 1
    # Half the processor time a message, twice the rate: that it is named is not all, it is true.
    rate = {}
    for ns in (100, 200):
        row = rows(sys.argv[1], ["--sizes", "64", "--qps", "16", "--set", "driver.post_send_ns=%d" % ns])[0]
        rate[ns] = row["rate_mpps"]
    if not 1.8 < rate[100] / rate[200] < 2.05:
        print("the processor was named, but the rates are %s" % rate)
        wrong += 1
    print("%d of %d cases as expected" % (len(CASES) + 1 - wrong, len(CASES) + 1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
