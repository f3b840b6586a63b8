#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which ends of the guest's rping count as a complete run: needs no guest."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bench import lost_its_channel  # noqa: E402

PING, ERROR = "ping data: rdma-ping-%d: ABCDEF\n", "rdma_get_cm_event: Bad file descriptor\n"
TOLD = {side: side + " DISCONNECT EVENT...\n" for side in ("client", "server")}
# (status, text, whether it counts)
ENDS = [
    (255, PING % 0 + PING % 1 + TOLD["client"] + ERROR, True),  # to a terminal
    (255, TOLD["server"] + ERROR + "server " + PING % 0, True),  # to a file
    (255, TOLD["server"] + "wait for RDMA_READ_ADV state 10\n" + ERROR, True),
    (255, TOLD["server"] + "wait for RDMA_READ_ADV state 11\n" + ERROR, False),
    (1, TOLD["client"] + ERROR, False),
    (0, TOLD["client"], False),
    (255, ERROR, False),  # before the peer has left
    (255, ERROR + TOLD["client"], False),
    (255, TOLD["client"] + "data mismatch!\n" + ERROR, False),
    (255, TOLD["client"] + ERROR + "cq completion failed status 12\n", False),
    (255, "cma event RDMA_CM_EVENT_REJECTED, error 28\n", False),
    (255, TOLD["client"] + "rdma_get_cm_event: Invalid argument\n", False),
    (255, "", False),
]


def main():
    wrong = [e for e in ENDS if lost_its_channel(e[:2]) != e[2]]
    for status, text, counts in wrong:
        print("status %d and %r %s" % (status, text, "does not count" if counts else "counts"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
