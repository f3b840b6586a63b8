#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each capability that the firmware announces names the test that uses it (testbenches/unit/firmware/announced.csv),
and there is such a test: ctest has it under that name. unit/Announced.EveryBitHasATest looks whether the list is whole.

usage: check_announced.py LIST BUILD
"""
import json
import subprocess
import sys


def tests_of(build):
    run = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True,
                         check=True)
    return {test["name"] for test in json.loads(run.stdout)["tests"]}


def main(listed, build):
    known = tests_of(build)
    wrong = []
    rows = 0
    with open(listed) as file:
        for number, line in enumerate(file, 1):
            if line.startswith("#") or not line.strip():
                continue
            cells = line.rstrip("\n").split(",")
            if len(cells) != 6 or not cells[5]:
                wrong.append(f"{listed}:{number}: not mailbox,offset,bytes,mask,name,tests")
                continue
            rows += 1
            wrong += [f"{listed}:{number}: {cells[4]}: no test {test}" for test in cells[5].split()
                      if test not in known]
    if rows < 50 or len(known) < 1000:
        wrong.append(f"{rows} rows and {len(known)} tests are too few to believe")
    print("\n".join(wrong) if wrong else f"{rows} announcements, each with a test")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
