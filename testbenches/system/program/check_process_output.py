#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the tests' reader of programs reads: everything, whatever came together, and whatever the end was."""
import subprocess
import sys

from process_output import rest_of

# (what the program does behind its two lines, seconds, grace, what else it says, whether it is ended, its status)
CASES = [
    ("pass", 20, 0, "", False, 0),
    ("time.sleep(0.3); print('later', flush=True); sys.exit(3)", 20, 5, "later\n", False, 3),
    ("time.sleep(60)", 0.3, 0, "", True, -9),
    ("time.sleep(60)", 0.3, 20, "asked\n", True, 4),
    ("asks[:] = [0] * 9; time.sleep(60); time.sleep(60)", 0.3, 1, "", True, -9),
]
PROGRAM = """
import signal, sys, time
asks = []
def asked(*_):
    if not asks:
        print('asked', flush=True)
        sys.exit(4)
signal.signal(signal.SIGTERM, asked)
print('first\\nsecond', flush=True)
"""


def main():
    for work, seconds, grace, more, ended, status in CASES:
        process = subprocess.Popen([sys.executable, "-c", PROGRAM + work], stdout=subprocess.PIPE, text=True)
        first = process.stdout.readline()  # and the second one is in the reader's buffer
        said = rest_of(process, seconds, grace)
        assert first == "first\n" and said == ("second\n" + more, ended), (work, first, said)
        assert process.returncode == status, (work, process.returncode)
    return 0


if __name__ == "__main__":
    sys.exit(main())
