# SPDX-License-Identifier: Apache-2.0
"""What a responder may answer to what it has received (IBA 9.7.3 to 9.7.7, adapter data plane C.5 to C.7)."""
import bisect
import collections

from requester_rules import count_of
from wire import (ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE, ATOMICS, LASTS, ONLYS, READ_FIRST, READ_LAST, READ_MIDDLE, READ_ONLY,
                  READ_REQUEST, SENDS, SEND_FIRST, WRITE_LAST_IMM, WRITE_ONLY_IMM, difference, plus)

TAKES_RECEIVE = {op for op in SENDS if op in ONLYS} | {SEND_FIRST, WRITE_LAST_IMM, WRITE_ONLY_IMM}
ACK, RNR, NAK = 0, 1, 3


class owed:
    """Responses to a READ request, or to a repetition of one. `restarts`: when the requester has gone back last, to
    what is before it or to itself, so that it may begin once more."""
    __slots__ = ("psn", "count", "length", "sent", "repeated", "restarts", "request")

    def __init__(self, p, count, repeated):
        self.psn, self.count, self.length, self.sent = p.psn, count, p.length, 0
        self.repeated, self.restarts, self.request = repeated, None, p

    def takes(self, psn):
        """Whether the response `psn` is its next one."""
        return self.sent < self.count and plus(self.psn, self.sent) == psn or self.restarts is not None and self.psn == psn

    def opcode(self, psn):
        i = difference(psn, self.psn)
        if self.count == 1:
            return READ_ONLY
        return READ_FIRST if i == 0 else READ_LAST if i == self.count - 1 else READ_MIDDLE


class responder:
    def __init__(self, report, mtu, options, first_psn):
        self.report, self.mtu, self.slack = report, mtu, options.slack_us * 1000
        self.origin = first_psn
        self.expected = 0    # offset from it
        self.first = []      # offsets of the accepted requests, with the number of completed messages behind each
        self.completed = []
        self.requests = []
        self.gaps = {}       # offset -> a sequence error that may be said
        self.rnr_at = None   # offset of the last receiver-not-ready
        self.unsure = None   # offset from which on it is not known which copies were accepted
        self.log = []        # requests as they came; `place`: offset -> where in it the accepted one is
        self.place = {}
        self.jobs = []       # READs in the order of their sequence numbers
        self.running = None  # that of which some responses were sent
        self.atomics = {}    # offset -> original value, None: not answered
        self.due = collections.deque()  # [next, end) offsets of what READs and atomics have not been answered yet
        self.base = None     # smallest and largest MSN before the first request
        self.again = collections.deque(maxlen=256)  # (time, offset) of requests that came again
        self.last_msn = self.last_ack = self.ended = None

    def offset(self, psn):
        return difference(psn, plus(self.origin, self.expected)) + self.expected

    # ---- what it receives

    def on_received(self, p):
        if len(self.log) > 8192:  # what is older is not refused any more
            del self.log[:4096]
            self.place = {at: i - 4096 for at, i in self.place.items() if i >= 4096}
        self.log.append(p)
        at, count = self.offset(p.psn), count_of(p, self.mtu)
        if at >= self.expected:
            self.follow(p, at, count, len(self.log) - 1)
            return
        self.again.append((p.time, at))
        if p.op == READ_REQUEST or p.op in ATOMICS:
            # The requester has gone back: what was under way for it or for what is behind it may begin once more.
            for j in self.jobs:
                if self.offset(j.psn) >= at:
                    j.restarts = p.time
        if p.op == READ_REQUEST:
            behind = (i for i, j in enumerate(self.jobs) if self.offset(j.psn) > at)
            self.jobs.insert(next(behind, len(self.jobs)), owed(p, count, True))

    def follow(self, p, at, count, place):
        if at == self.expected:
            self.place[at] = place
            self.accept(p, at, count)
        elif self.expected not in self.gaps:
            self.gaps[self.expected] = "after rnr" if self.rnr_at == self.expected else "open"

    def refuse(self, at):
        """The receiver was not ready for the accepted one; perhaps it was for a copy that came later."""
        self.take_back(at)
        self.rnr_at = at
        self.gaps.pop(at, None)
        for i in range(self.place.pop(at) + 1, len(self.log)):
            p = self.log[i]
            if self.offset(p.psn) >= self.expected:
                self.follow(p, self.offset(p.psn), count_of(p, self.mtu), i)
        if self.expected > at:
            self.unsure = at  # one of the copies was refused; a later one may have been as well

    def accept(self, p, at, count):
        self.gaps.pop(at, None) if self.gaps.get(at) == "said" else None
        ends = p.ends_message()
        self.first.append(at)
        self.completed.append((self.completed[-1] if self.completed else 0) + (1 if ends else 0))
        self.requests.append(p)
        self.expected = at + count
        if p.op == READ_REQUEST:
            self.jobs.append(owed(p, count, False))
            self.due.append([at, at + count])
        elif p.op in ATOMICS:
            self.atomics.setdefault(at, None)
            self.due.append([at, at + count])

    def take_back(self, at):
        """Requests from `at` on were received and not accepted."""
        i = bisect.bisect_left(self.first, at)
        del self.first[i:], self.completed[i:], self.requests[i:]
        self.expected = min(self.expected, at)
        self.jobs = [j for j in self.jobs if j.repeated or self.offset(j.psn) < at]
        self.atomics = {o: v for o, v in self.atomics.items() if o < at}
        self.due = collections.deque([begin, end] for begin, end in self.due if begin < at)

    def completed_through(self, at):
        """Messages that end at this offset or before; a READ ends when it is accepted."""
        i = bisect.bisect_right(self.first, at) - 1
        return self.completed[i] if i >= 0 else 0

    # ---- what it sends

    def on_sent(self, p):
        if self.ended is not None and p.time > self.ended + self.slack:
            self.report("after-error", p, "an answer behind a NAK that ends the connection")
        at = self.offset(p.psn)
        if p.op == ACKNOWLEDGE:
            self.on_acknowledge(p, at)
        elif p.op == ATOMIC_ACKNOWLEDGE:
            self.on_atomic(p, at)
        else:
            self.on_read(p, at)
        if p.msn is not None:
            self.check_msn(p, at)

    def on_acknowledge(self, p, at):
        kind = p.syndrome >> 5
        if at > self.expected or (kind == ACK and at == self.expected):
            if not (kind == ACK and at < 0):
                return self.report("ack-psn", p, "PSN %d was not received in order" % p.psn)
        if kind == ACK:
            again = any(offset <= at + 1 and p.time - time <= self.slack for time, offset in self.again)
            if self.last_ack is not None and at < self.last_ack and not again:
                self.report("ack-back", p, "an ACK of less than one before")
            self.last_ack = at
            if self.unsure is not None:
                self.unsure = None if at + 1 >= self.expected else max(self.unsure, at)
        else:
            self.on_refusal(p, at, kind)
        self.answered(p, at + 1 if kind == ACK else at)

    def on_refusal(self, p, at, kind):
        if kind == NAK and p.syndrome & 0x1f == 0:
            said = self.gaps.get(at)
            came = any(self.offset(q.psn) == at and p.time - q.time <= self.slack for q in self.log[-64:])
            if said is None and self.unsure is not None and at > self.unsure:
                if not came:
                    self.take_back(at)
            elif said is None:
                self.report("nak-psn", p, "no packet came early when PSN %d was expected" % p.psn)
            elif said == "said":
                self.report("nak-again", p, "a second sequence error for the same gap")
            elif said == "after rnr":
                self.report("nak-after-rnr", p, "a sequence error for a gap that receiver-not-ready has made")
            self.gaps[at] = "said"
            return
        request = next((r for o, r in zip(reversed(self.first), reversed(self.requests)) if o == at), None)
        if request is None and kind == RNR and self.rnr_at == at:
            self.report("rnr-again", p, "receiver-not-ready more often than there were requests")
        elif request is None:
            self.report("nak-psn", p, "no request was accepted with PSN %d" % p.psn)
        elif kind == RNR:
            if request.op not in TAKES_RECEIVE:
                self.report("rnr-psn", p, "frame %d needs no receive" % request.number)
            self.refuse(at)
        else:
            self.take_back(at)
        if kind == NAK:
            self.ended = p.time

    def on_atomic(self, p, at):
        if at not in self.atomics:
            return self.report("atomic", p, "no atomic was accepted with this PSN")
        if self.atomics[at] is not None and self.atomics[at] != p.value:
            self.report("atomic-value", p, "original value %#x, answered before with %#x" % (p.value, self.atomics[at]))
        self.atomics[at] = p.value
        self.answered(p, at, 1)

    def on_read(self, p, at):
        able = [j for j in self.jobs if j.takes(p.psn)]
        if not able:
            before = any(j.sent > 0 and difference(p.psn, j.psn) in range(j.sent) for j in self.jobs)
            return self.report("read-psn", p, "sent before and not asked for again" if before
                               else "no READ is owed this PSN")
        fitting = [j for j in able if j.opcode(p.psn) == p.op] or able
        job = self.running if self.running in fitting else fitting[0]
        left = self.running
        if left is not None and job is not left:
            if not (job.repeated and difference(job.psn, left.psn) < left.count or job.restarts is not None):
                self.report("read-order", p, "comes between the responses to frame %d" % left.request.number)
            left.sent = 0  # no requester can take it up in the middle
        if job.psn == p.psn:
            job.sent = 0
            if job.restarts is not None and p.time - job.restarts > self.slack:
                job.restarts = None  # else this one may have been under way before the request came
        self.check_read(p, job)
        job.sent += 1
        self.answered(p, at, 1)
        self.running = job
        if job.sent == job.count:
            self.running = None
            self.jobs = [j for j in self.jobs if j is not job]
        # A repetition that was not answered in its turn will not be.
        self.jobs = [j for j in self.jobs
                     if self.offset(j.psn) + j.count > at or p.time - j.request.time <= self.slack]

    def check_read(self, p, job):
        op = job.opcode(p.psn)
        if p.op != op:
            again = job.repeated and job.sent == 0 and p.op in (READ_MIDDLE, READ_LAST)
            self.report("read-restart" if again else "read-opcode", p, "response %d of %d to frame %d"
                        % (job.sent + 1, job.count, job.request.number))
        size = min(self.mtu or len(p.data), job.length - job.sent * (self.mtu or 0))
        if len(p.data) != size:
            self.report("read-length", p, "%d bytes, not %d, in response %d of %d to frame %d"
                        % (len(p.data), size, job.sent + 1, job.count, job.request.number))

    def answered(self, p, at, count=0):
        """Responses to READs and atomics leave in the order of their sequence numbers, each once before any that is
        behind it, whatever the requester has asked for again meanwhile."""
        if at >= 0 and self.due and self.due[0][0] < at:
            begin, end = self.due[0]
            self.report("order", p, "passes PSN %d, which the READ or atomic that ends before PSN %d is still owed"
                        % (plus(self.origin, begin), plus(self.origin, end)))
        while self.due and self.due[0][0] < at + count:
            self.due[0][0] = min(self.due[0][1], at + count)
            if self.due[0][0] == self.due[0][1]:
                self.due.popleft()

    def check_msn(self, p, at):
        """Completed messages: at least those up to the PSN, at most those received. A refused one is not among them."""
        refused = p.op == ACKNOWLEDGE and p.syndrome >> 5 != ACK
        low = self.completed_through(at - 1 if refused else at)
        high = low if refused and at >= self.expected else (self.completed[-1] if self.completed else 0)
        begin = (difference(p.msn, high & 0xffffff), difference(p.msn, low & 0xffffff))
        if self.last_msn is not None and difference(p.msn, self.last_msn) < 0:
            return self.report("msn-back", p, "MSN %d after %d" % (p.msn, self.last_msn))
        self.last_msn = p.msn
        if at < 0:
            return
        low_base, high_base = self.base or begin
        overlap = (max(low_base, begin[0]), min(high_base, begin[1]))
        if overlap[0] > overlap[1]:
            return self.report("msn", p, "MSN %d; %d to %d messages were completed, and %d to %d before the first seen"
                               % (p.msn, low, high, low_base, high_base))
        self.base = overlap
