# SPDX-License-Identifier: Apache-2.0
"""End-to-end flow control (IBA 9.7.7.2, codes: table 46): a message that takes a receive waits for one of the peer's.

Messages are counted as they begin; an answer's MSN says how many of them are done, its credits for how many more there
are receives. One message may go without, to find out."""
from wire import ATOMICS, FIRSTS, LASTS, ONLYS, READ_REQUEST, SENDS, WRITE_LAST_IMM, WRITE_ONLY_IMM

UNLIMITED = 31
COUNTS = [0, 1, 2, 3]
while len(COUNTS) < UNLIMITED:
    COUNTS.append(COUNTS[-2] * 2)  # 4 6 8 12 16 24 ... 32768


class credits:
    def __init__(self, report):
        self.report, self.takes = report, []  # of the messages begun so far: how many take a receive
        self.limit = None                     # of these; None: nothing was told, or nothing is limited
        self.counts = True

    def begins(self, p):
        """A new request packet."""
        if p.op in FIRSTS or p.op in ONLYS or p.op == READ_REQUEST or p.op in ATOMICS:
            before = self.takes[-1] if self.takes else 0
            takes = p.op in SENDS or p.op == WRITE_ONLY_IMM
            self.takes.append(before + takes)
            if takes and self.limit is not None and before + 1 > self.limit + 1:
                self.report("credits", p, "message %d that takes a receive, where there are %d" % (before + 1, self.limit))
        elif p.op == WRITE_LAST_IMM and self.takes:
            self.takes[-1] += 1

    def told(self, p):
        """An answer."""
        if p.syndrome is None or p.syndrome >> 5 != 0 or not self.counts:
            return
        if p.syndrome & 31 == UNLIMITED or p.msn > len(self.takes):  # or the capture begins in the middle
            self.counts, self.limit = False, None
            return
        done = self.takes[p.msn - 1] if p.msn else 0
        self.limit = max(self.limit or 0, done + COUNTS[p.syndrome & 31])
