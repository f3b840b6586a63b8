#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plain frames beside RoCE give the same times and counters, whatever the kernel's order and whoever sleeps.

usage: check_standing.py TEST_PROGRAM
"""
import os
import subprocess
import sys

VARIANTS = ["", "again", "always_tick", "shuffled", "no_run_ahead", "all"]


def run(program, variant):
    environment = dict(os.environ, RNIC_VARIANT=variant)
    done = subprocess.run([program, "--gtest_filter=EthernetStanding.AllAtOnce"], capture_output=True, text=True,
                          env=environment)
    if done.returncode != 0:
        raise SystemExit("%s: exit status %d\n%s%s" % (variant, done.returncode, done.stdout, done.stderr))
    return done.stdout.split("begin of result\n")[1].split("end of result\n")[0].splitlines()


def main():
    wanted = run(sys.argv[1], VARIANTS[0])
    frames = [line for line in wanted if ".steering.frames " in line]
    if not frames or all(line.endswith(" 0") for line in frames):
        raise SystemExit("nothing was steered")
    failed = False
    for variant in VARIANTS[1:]:
        got = run(sys.argv[1], variant)
        different = [(a, b) for a, b in zip(wanted, got) if a != b]
        if different or len(got) != len(wanted):
            failed = True
            print("%s: %d lines differ, first: %r" % (variant, len(different), different[:3]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
