# SPDX-License-Identifier: Apache-2.0
"""What a requester may send, given what it has sent and received before (IBA 9.7.2 to 9.7.5, adapter data plane C.6, C.8)."""
import bisect
import collections

from credit_rules import credits
from wire import (ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE, ATOMICS, FIRSTS, LASTS, MIDDLES, ONLYS, READ_REQUEST, RNR_US,
                   SENDS, WITH_RETH, difference, plus)


def count_of(p, mtu):
    """PSNs that a request takes (C.6)."""
    return max(1, -(-p.length // mtu)) if p.op == READ_REQUEST and p.length is not None and mtu else 1


class message_sequence:
    """Opcodes and lengths of consecutive new request packets."""

    def __init__(self, report):
        self.report, self.open, self.left = report, None, 0

    def take(self, p, mtu, known=True):
        family = p.op in SENDS
        if p.op in MIDDLES or p.op in LASTS:
            if self.open is None:
                if known:
                    self.report("sequence", p, "a message that has not begun")
            elif self.open != family:
                self.report("sequence", p, "SEND and WRITE in one message")
        elif self.open is not None:
            self.report("sequence", p, "a new message before the last packet of the one before")
        if p.op in FIRSTS or p.op in ONLYS:
            self.left = p.length if p.op in WITH_RETH else None
        if not family and self.left is not None and p.op not in ATOMICS and p.op != READ_REQUEST:
            self.left -= len(p.data)
            ends = p.op in LASTS or p.op in ONLYS
            if self.left < 0 or (ends and self.left != 0) or (not ends and self.left == 0):
                self.report("write-length", p, "%d bytes of the WRITE are left behind it" % self.left)
        self.open = family if p.op in FIRSTS or p.op in MIDDLES else None


class progress:
    """What a requester knows to be done.

    A response that passes the data of a READ says that they are lost; a requester may take them all the same when they
    are only late, or forget what comes until it has asked again. It may also forget what comes for packets that it has
    gone back over until it has sent them again. `forgets`: it does both."""

    def __init__(self, forgets):
        self.forgets, self.acknowledged, self.reads, self.waiting = forgets, 0, collections.deque(maxlen=512), []
        self.lost = None        # (offset of missing data, when that was seen)
        self.bases = [(-1, 0)]  # (time, offset of the oldest PSN that is still needed)

    def base(self):
        """An ACK does not stand for the data of a READ."""
        return min(self.acknowledged, self.waiting[0][1]) if self.waiting else self.acknowledged

    def base_before(self, time):
        i = bisect.bisect_right(self.bases, (time, 1 << 62)) - 1
        return self.bases[i][1] if i >= 0 else 0

    def wait_for(self, at, count, atomic):
        self.reads.append((at, at + count, atomic))
        self.waiting.append([at, at, at + count, atomic])  # first, next, end

    def take(self, time, at, data, atomic):
        """A response that stands for all before `at`; `data`: of the READ or atomic itself."""
        if self.lost is not None and self.forgets:
            return
        if data and self.waiting and self.waiting[0][1] == at - 1 and self.waiting[0][3] == atomic:
            self.waiting[0][1] = at
            if at == self.waiting[0][2]:
                self.waiting.pop(0)
        if self.waiting and at > self.waiting[0][1]:
            at = self.waiting[0][1]
            self.lost = (at, time)
        self.acknowledged = max(self.acknowledged, at)
        if self.base() > self.bases[-1][1]:
            self.bases.append((time, self.base()))

    def goes_back(self, at, since):
        """Sends again from `at` on, which says that all before is done; decided at `since` or later."""
        if not self.forgets:
            if self.lost is not None and at <= self.lost[0]:
                self.lost = None
            return
        self.lost = None
        kept = max(at, min(self.base(), self.base_before(since)))
        self.acknowledged = kept
        while self.bases[-1][1] > kept:
            self.bases.pop()
        self.waiting = [[first, max(first, kept), end, atomic] for first, end, atomic in self.reads if end > kept]

    def move(self, by):
        self.acknowledged -= by
        self.waiting = [[first - by, next - by, end - by, atomic] for first, next, end, atomic in self.waiting]
        self.reads = collections.deque(((first - by, end - by, atomic) for first, end, atomic in self.reads), 512)
        self.bases = [(time, at - by) for time, at in self.bases[-1000:]]
        self.lost = None


class requester:
    def __init__(self, report, mtu, options, reliable=True):
        self.report, self.mtu, self.reliable, self.policy = report, mtu, reliable, options.ack_policy
        self.depth = options.depth
        self.slack, self.reaction = options.slack_us * 1000, options.reaction_us * 1000
        self.sequence, self.credits = message_sequence(report), credits(report)
        self.origin = self.top = self.position = None  # first PSN seen; next new one; next of the present run
        self.sent = {}         # PSN -> first packet with it
        self.reads_at = []     # offsets from origin of READ requests, to find the one around a PSN
        self.quick, self.slow = progress(False), progress(True)
        self.doubt_until = -1  # whether it waits for a receiver is not known
        self.not_ready = None  # (PSN, when it came, until when)
        self.ended = None

    # ---- what it sends

    def on_sent(self, p):
        if self.origin is None:
            self.origin = self.top = self.position = p.psn
            self.sequence.open = (p.op in SENDS) if p.op in MIDDLES or p.op in LASTS else None
        count = count_of(p, self.mtu)
        new = p.psn == self.top
        if p.psn != self.position:
            self.check_jump(p)
        if self.reliable:
            self.check_allowed(p)
        if new:
            self.take_new(p, count)
        elif difference(p.psn, self.top) > 0:
            self.report("psn-gap", p, "PSN %d was expected" % self.top)
            self.take_new(p, count)
        elif self.reliable:
            self.check_repeat(p, count)
        else:
            self.report("psn-gap", p, "an unreliable connection repeats; PSN %d was expected" % self.top)
        self.position = plus(p.psn, count)

    def offset(self, psn):
        return difference(psn, self.top) + self.span()

    def span(self):
        return (self.top - self.origin) & 0xffffff

    def take_new(self, p, count):
        self.sequence.take(p, self.mtu)
        if self.reliable:
            self.credits.begins(p)
        if self.reliable and self.policy == "message" and not p.ask and (p.op in LASTS or p.op in ONLYS):
            self.report("ack-request", p, "the last packet of a message does not ask for an acknowledgement")
        self.sent[p.psn] = p
        self.top = p.psn
        if p.op == READ_REQUEST:
            self.reads_at.append(self.span())
        if p.op == READ_REQUEST or p.op in ATOMICS:
            for known in (self.quick, self.slow):
                known.wait_for(self.offset(p.psn), count, p.op in ATOMICS)
            if self.depth is not None and len(self.quick.waiting) > self.depth:
                self.report("depth", p, "%d READs and atomics are under way" % len(self.quick.waiting))
        self.top = plus(p.psn, count)
        if self.span() > 1 << 22:  # old packets are nobody's business any more; sequence numbers come again
            self.forget()

    def forget(self):
        move = 1 << 21
        self.origin = plus(self.origin, move)
        keep = self.span()
        self.sent = {psn: p for psn, p in self.sent.items() if 0 <= (psn - self.origin) & 0xffffff <= keep}
        self.reads_at = [o - move for o in self.reads_at if o >= move]
        self.quick.move(move)
        self.slow.move(move)

    def check_jump(self, p):
        """A run goes on one by one. It may leave out what was acknowledged meanwhile, and begin again further back, but
        not with what was acknowledged long before."""
        if difference(p.psn, self.top) > 0 or not self.reliable:
            return
        at = self.offset(p.psn)
        ahead = difference(p.psn, self.position) > 0
        if ahead:
            if at > self.quick.base():
                self.report("repeat-skips", p, "PSN %d was to be repeated first" % self.position)
        elif at < self.slow.base_before(p.time - self.slack):
            self.report("repeat-acknowledged", p, "what was acknowledged is repeated")
        for known in () if ahead else (self.quick, self.slow):
            known.goes_back(at, p.time - self.slack)

    def check_allowed(self, p):
        if self.ended is not None and p.time > self.ended + self.slack:
            self.report("after-error", p, "a request behind a NAK that ends the connection")
        if self.not_ready is None:
            return
        psn, came, until = self.not_ready
        if p.time >= until or difference(p.psn, psn) < 0:
            return
        if p.time > came + (self.reaction if p.psn == psn and p.psn != self.top else self.slack):
            self.report("rnr-wait", p, "sent %d ns before the receiver's timer for PSN %d has ended" % (until - p.time, psn))

    def check_repeat(self, p, count):
        first = self.sent.get(p.psn)
        if first is not None:
            # What is acknowledged belongs to the application again; its new bytes are of no use to anybody.
            if first.body != p.body and self.offset(p.psn) >= self.quick.base():
                self.report("repeat-differs", p, "differs from frame %d with the same PSN" % first.number)
            return
        original = self.read_around(p.psn)
        if original is None:
            if self.offset(p.psn) >= 0:
                self.report("repeat-differs", p, "a PSN that no request had")
        elif p.op != READ_REQUEST:
            self.report("repeat-differs", p, "takes a PSN of the READ in frame %d" % original.number)
        else:
            skipped = difference(p.psn, original.psn) * self.mtu
            if (p.va, p.rkey, p.length) != (original.va + skipped, original.rkey, original.length - skipped):
                self.report("reread", p, "does not ask for the rest of the READ in frame %d" % original.number)

    def read_around(self, psn):
        i = bisect.bisect_right(self.reads_at, self.offset(psn)) - 1
        if i < 0:
            return None
        original = self.sent[plus(self.origin, self.reads_at[i])]
        return original if difference(psn, original.psn) < count_of(original, self.mtu) else None

    # ---- what it receives

    def on_received(self, p):
        if self.origin is None:
            return
        self.credits.told(p)
        at = self.offset(p.psn)
        if p.op == ACKNOWLEDGE and p.syndrome >> 5 == 3 and p.syndrome & 0x1f != 0 and at >= self.quick.base():
            self.ended = p.time
        behind = 1 if p.op != ACKNOWLEDGE or p.syndrome >> 5 == 0 else 0  # a NAK acknowledges what is before it
        data, atomic = p.op != ACKNOWLEDGE, p.op == ATOMIC_ACKNOWLEDGE
        self.quick.take(p.time, min(at + behind, self.span()), data, atomic)
        if at < self.offset(self.position):
            self.slow.take(p.time, at + behind, data, atomic)
        if self.not_ready is not None and self.quick.base() > self.offset(self.not_ready[0]):
            self.not_ready = None
        if p.op == ACKNOWLEDGE and p.syndrome >> 5 == 1:
            self.take_not_ready(p, at)
        elif p.op == ACKNOWLEDGE and p.syndrome >> 5 == 3:
            self.doubt_until = max(self.doubt_until, p.time + self.slack)  # it goes back anyway

    def take_not_ready(self, p, at):
        """It counts when it is the first thing that went wrong, and for the first time."""
        end = p.time + RNR_US[p.syndrome & 0x1f] * 1000
        certain = at == self.slow.base() == self.quick.base() and at < self.offset(self.position)
        if not certain or self.slow.lost is not None:
            self.doubt_until = end + self.slack
        elif p.time >= self.doubt_until and p.psn in self.sent:
            if self.not_ready is None or self.not_ready[0] != p.psn or p.time >= self.not_ready[2]:
                self.not_ready = (p.psn, p.time, end)

    def finish(self, last):
        """At the end of a capture in which everything has ended well."""
        if self.reliable and self.origin is not None and self.quick.base() != self.span() and self.ended is None:
            self.report("unanswered", last, "%d PSNs are not acknowledged at the end" % (self.span() - self.quick.base()))
