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
    """Responses to a READ request, or to a repetition of one."""
    __slots__ = ("psn", "count", "length", "sent", "repeated", "request")

    def __init__(self, p, count, repeated):
        self.psn, self.count, self.length, self.sent = p.psn, count, p.length, 0
        self.repeated, self.request = repeated, p


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
        self.jobs = []       # READs in the order of their requests
        self.atomics = {}    # offset -> original value, None: not answered
        self.unanswered = []  # offsets behind READs and atomics whose answer must come before later ones
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
        if p.op == READ_REQUEST:
            self.jobs.append(owed(p, count, True))
            # The requester has gone back: what was under way for it or for what is behind it may be given up.
            self.unanswered = [o for o in self.unanswered if o <= at]

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
            self.unanswered.append(at + count)
        elif p.op in ATOMICS:
            self.atomics.setdefault(at, None)
            self.unanswered.append(at + count)

    def take_back(self, at):
        """Requests from `at` on were received and not accepted."""
        i = bisect.bisect_left(self.first, at)
        del self.first[i:], self.completed[i:], self.requests[i:]
        self.expected = min(self.expected, at)
        self.jobs = [j for j in self.jobs if j.repeated or self.offset(j.psn) < at]
        self.atomics = {o: v for o, v in self.atomics.items() if o < at}
        self.unanswered = [o for o in self.unanswered if o <= at]

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
        missing = [o for o in self.unanswered if o <= (at + 1 if kind == ACK else at)]
        if missing and at >= 0:
            self.report("order", p, "passes the answer to the READ or atomic that ends before PSN %d"
                        % plus(self.origin, missing[0]))
            self.unanswered = [o for o in self.unanswered if o not in missing]

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
        self.answered(p, at, at + 1)

    def on_read(self, p, at):
        job = next((j for j in self.jobs if plus(j.psn, j.sent) == p.psn and j.sent < j.count), None)
        if job is None:
            job = next((j for j in self.jobs if j.sent > 0 and difference(p.psn, j.psn) in range(j.sent)), None)
            if job is None:
                return self.report("read-psn", p, "no READ is owed this PSN")
            return self.report("read-psn", p, "sent before and not asked for again")
        if job is not self.jobs[0]:
            left = self.jobs[0]
            if left.sent and not (job.repeated and difference(job.psn, left.psn) < left.count):
                self.report("read-order", p, "comes between the responses to frame %d" % left.request.number)
            # What was to be answered before it: again by another request, or never.
            self.jobs = self.jobs[self.jobs.index(job):]
        self.check_read(p, job)
        job.sent += 1
        if job.sent == job.count:
            self.answered(p, self.offset(job.psn), self.offset(job.psn) + job.count)
            self.jobs = [j for j in self.jobs if j is not job]

    def check_read(self, p, job):
        if job.count == 1:
            op = READ_ONLY
        else:
            op = READ_FIRST if job.sent == 0 else READ_LAST if job.sent == job.count - 1 else READ_MIDDLE
        if p.op != op:
            again = job.repeated and job.sent == 0 and p.op in (READ_MIDDLE, READ_LAST)
            self.report("read-restart" if again else "read-opcode", p, "response %d of %d to frame %d"
                        % (job.sent + 1, job.count, job.request.number))
        size = min(self.mtu or len(p.data), job.length - job.sent * (self.mtu or 0))
        if len(p.data) != size:
            self.report("read-length", p, "%d bytes, not %d, in response %d of %d to frame %d"
                        % (len(p.data), size, job.sent + 1, job.count, job.request.number))

    def answered(self, p, begin, end):
        before = [o for o in self.unanswered if o <= begin]
        if before:
            self.report("order", p, "passes the answer to the READ or atomic that ends before PSN %d"
                        % plus(self.origin, before[0]))
        self.unanswered = [o for o in self.unanswered if o > end or o in before and o > begin]

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
