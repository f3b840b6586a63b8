#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""READs of one queue pair take turns with their own responses at the READ engine. Where neither that nor the line limits,
the unit's service does: a quicker line must not make them slower, wherever the responses fall between the requests.

usage: check_read_stream.py PROGRAM
"""
import sys

from relaxations import run

RATES = (40000, 45000, 50000, 56000, 60000, 70000, 80000, 90000, 100000, 200000)


def rate(program, size, mbps):
    return run(program, ["--verb", "read", "--sizes", str(size), "--qps", "1", "--outs", "16", "--messages", "2000", "--set",
                         "adapter.port.rate_mbps=%u" % mbps])[0]


def main():
    program, faults = sys.argv[1], 0
    alone = rate(program, 8, 100000)
    for size in 512, 1000, 1024:
        last = 0
        for mbps in RATES:
            now = rate(program, size, mbps)
            if now < 0.99 * last:
                faults += 1
                print("%u B at %u Mb/s: %.3f M/s, and %.3f with a slower line" % (size, mbps, now, last))
            last = now
        if abs(last / alone - 1) > 0.01:
            faults += 1
            print("%u B: %.3f M/s at the quickest line, READs of 8 B %.3f" % (size, last, alone))
    print("%u faults" % faults)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
