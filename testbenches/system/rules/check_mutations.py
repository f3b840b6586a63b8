#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks each rule once in captures of real traffic: the checker must say so, and nothing before it was broken.

usage: check_mutations.py TRACES
"""
import os
import re
import struct
import sys
import tempfile

import check_rules
import wire

SEND, SEND6, WRITE, READ = ("rc_send_mtu1024_4096B", "rc_send_ipv6_mtu256_1500B", "rc_write_mtu1024_20000B",
                            "rc_read_mtu1024_6000B")
ATOMIC, LOSS, UC, CNP = ("rc_atomic_fetchadd", "rc_send_loss2pct_mtu1024_8000B", "external/uc_send_only_connectx_scapy",
                         "external/cnp_connectx4lx_scapy")
US = 1000


class trace:
    """Packets that can be changed; what is sent and what arrives of it."""

    def __init__(self, folder, name):
        load = lambda n: [(p.time, p.frame) for p in wire.packets(os.path.join(folder, n + ".pcap"))]
        self.sent = load(name)
        self.received = load(name + ".rx") if name == LOSS else None
        self.packets = [wire.decode(i, t, f) for i, (t, f) in enumerate(self.sent)]

    def find(self, *ops, nth=0, **fields):
        """Index of the nth packet with one of these operations."""
        places = [p.number for p in self.packets if p.op in ops and all(getattr(p, k) == v for k, v in fields.items())]
        return places[nth]

    def edit(self, index, right=True, **fields):
        self.sent[index] = (self.sent[index][0], edited(self.packets[index], right, **fields))

    def edit_sent(self, index, **fields):
        """Once more."""
        time, frame = self.sent[index]
        self.sent[index] = (time, edited(wire.decode(index, time, frame), True, **fields))

    def cut(self, index, count):
        """Bytes from the end of the payload."""
        p = self.packets[index]
        f = bytearray(p.frame[:p.end - count] + bytes(4))
        for at in [(p.l3 + 2, p.l3 + 24)] if p.kind == wire.IPV4 else [(p.l3 + 4, p.l3 + 44)]:
            for a in at:
                f[a:a + 2] = struct.pack(">H", struct.unpack(">H", f[a:a + 2])[0] - count)
        self.sent[index] = (p.time, edited(wire.decode(0, 0, bytes(f) + bytes(max(0, 60 - len(f)))), True))

    def insert(self, behind, index, after=1 * US, **fields):
        """A changed copy of a packet, so long after another one."""
        at = self.sent[behind][0] + after
        place = next((i for i, (t, _) in enumerate(self.sent) if t > at), len(self.sent))
        self.sent.insert(place, (at, edited(self.packets[index], True, **fields)))

    def findings(self, folder):
        names = []
        for frames in (self.sent, self.received):
            names.append(os.path.join(folder, "%d.pcap" % len(names)) if frames else None)
            if frames:
                wire.write_frames(names[-1], frames)
        options = check_rules.arguments(["-", "--complete", "--depth", "1"])  # the traces' READs come one by one
        _, _, report = check_rules.check(names[0], names[1], options)
        return report.list


def edited(p, right, **fields):
    f, b = bytearray(p.frame), p.bth
    extended = b + 12 + (4 if p.service == wire.XRC else 0)
    for name, value in fields.items():
        if name == "opcode":
            f[b] = value
        elif name == "flags":
            f[b + 1] = value
        elif name == "byte4":
            f[b + 4] = value
        elif name == "qp":
            f[b + 5:b + 8] = value.to_bytes(3, "big")
        elif name == "ask":
            f[b + 8] = f[b + 8] & 0x7f | value << 7
        elif name == "psn":
            f[b + 9:b + 12] = (value & 0xffffff).to_bytes(3, "big")
        elif name == "syndrome":
            f[extended] = value
        elif name == "msn":
            f[extended + 1:extended + 4] = (value & 0xffffff).to_bytes(3, "big")
        elif name == "value":
            f[extended + 4:extended + 12] = value.to_bytes(8, "big")
        elif name == "va":
            f[extended:extended + 8] = value.to_bytes(8, "big")
        elif name == "length":
            f[extended + 12:extended + 16] = value.to_bytes(4, "big")
        elif name == "last_byte":
            f[p.end - 1] ^= value
        elif name == "udp_length":
            f[b - 4:b - 2] = value.to_bytes(2, "big")
        else:
            raise KeyError(name)
    if right:
        f[p.end:p.end + 4] = wire.computed_icrc(bytes(f), p.kind, p.l3, p.bth, p.end)
    return bytes(f)


MUTATIONS = []


def breaks(rule, name):
    def add(function):
        MUTATIONS.append((rule, name, function))
        return function
    return add


# ---- a packet by itself

@breaks("icrc", SEND)
def _(t):
    t.edit(t.find(wire.SEND_MIDDLE), right=False, last_byte=1)


@breaks("header", SEND)
def _(t):
    t.edit(t.find(wire.SEND_MIDDLE), byte4=1)


@breaks("opcode", SEND)
def _(t):
    t.edit(t.find(wire.SEND_MIDDLE), opcode=0x1f)


@breaks("pad", UC)
def _(t):
    t.edit(0, last_byte=1)


@breaks("pad", SEND)
def _(t):
    t.cut(t.find(wire.SEND_LAST), 2)


@breaks("solicited", SEND)
def _(t):
    t.edit(t.find(wire.SEND_FIRST), flags=0x80)


@breaks("ask", SEND)
def _(t):
    t.edit(t.find(wire.ACKNOWLEDGE), ask=1)


@breaks("length", SEND)
def _(t):
    t.cut(t.find(wire.SEND_LAST), 1024)


@breaks("length", SEND)
def _(t):
    p = t.packets[t.find(wire.SEND_LAST)]
    t.edit(p.number, udp_length=struct.unpack(">H", p.frame[p.bth - 4:p.bth - 2])[0] - 4)


@breaks("mtu", SEND)
def _(t):
    t.cut(t.find(wire.SEND_MIDDLE), 4)


@breaks("mtu", READ)
def _(t):
    t.cut(t.find(wire.READ_MIDDLE, nth=3), 8)


@breaks("credits", SEND)
def _(t):
    """The peer has no receives, and the answer to the message that finds out comes late."""
    first = t.packets[t.find(wire.ACKNOWLEDGE)]
    answers = [p for p in t.packets if p.op == wire.ACKNOWLEDGE and p.qp == first.qp]
    for p in answers:
        t.edit(p.number, syndrome=0)
    del t.sent[answers[len(answers) // 2].number]


@breaks("syndrome", SEND)
def _(t):
    t.edit(t.find(wire.ACKNOWLEDGE), syndrome=0x45)


@breaks("syndrome", SEND)
def _(t):
    t.edit(t.find(wire.ACKNOWLEDGE), syndrome=0x6a)


@breaks("syndrome", READ)
def _(t):
    t.edit(t.find(wire.READ_LAST), syndrome=0x21)


@breaks("notification", CNP)
def _(t):
    t.edit(0, byte4=0)


# ---- requester

@breaks("psn-gap", SEND)
def _(t):
    del t.sent[t.find(wire.SEND_MIDDLE, nth=4)]


@breaks("psn-gap", "uc_send_mtu512_2000B")
def _(t):
    del t.sent[t.find(wire.SEND_MIDDLE, nth=4)]


@breaks("sequence", SEND)
def _(t):
    t.edit(t.find(wire.SEND_MIDDLE, nth=2), opcode=wire.SEND_FIRST)


@breaks("sequence", SEND)
def _(t):
    t.edit(t.find(wire.SEND_MIDDLE, nth=2), opcode=wire.WRITE_MIDDLE)


@breaks("write-length", WRITE)
def _(t):
    t.edit(t.find(wire.WRITE_FIRST, nth=2), length=20001)


@breaks("ack-request", WRITE)
def _(t):
    t.edit(t.find(wire.WRITE_LAST), ask=0)


def repeats(t):
    """Indices of packets that repeat one, of the longest run."""
    seen, runs = set(), [[]]
    for p in t.packets:
        if p.is_request() and (p.qp, p.psn) in seen:
            runs[-1].append(p.number)
        elif p.is_request():
            seen.add((p.qp, p.psn))
            runs.append([])
    return max(runs, key=len)


@breaks("repeat-differs", LOSS)
def _(t):
    t.edit(repeats(t)[1], last_byte=1)


@breaks("repeat-skips", LOSS)
def _(t):
    del t.sent[repeats(t)[1]]


@breaks("repeat-acknowledged", SEND)
def _(t):
    t.insert(len(t.sent) - 1, t.find(wire.SEND_FIRST), after=1000 * US)


@breaks("reread", READ)
def _(t):
    request = t.packets[t.find(wire.READ_REQUEST)]
    t.insert(request.number, request.number, psn=request.psn + 2, length=request.length - 2048)


@breaks("after-error", SEND)
def _(t):
    t.edit(t.find(wire.ACKNOWLEDGE, nth=3), syndrome=0x62)


@breaks("rnr-wait", SEND)
def _(t):
    t.edit(t.find(wire.ACKNOWLEDGE, nth=3), syndrome=0x20)


@breaks("unanswered", WRITE)
def _(t):
    del t.sent[t.find(wire.ACKNOWLEDGE, nth=-1)]


# ---- responder

@breaks("ack-psn", SEND)
def _(t):
    p = t.packets[t.find(wire.ACKNOWLEDGE, nth=3)]
    t.edit(p.number, psn=p.psn + 3)


@breaks("ack-back", SEND)
def _(t):
    p = t.packets[t.find(wire.ACKNOWLEDGE, nth=5)]
    t.edit(p.number, psn=p.psn - 6)


@breaks("nak-psn", SEND)
def _(t):
    p = t.packets[t.find(wire.ACKNOWLEDGE, nth=3)]
    t.edit(p.number, syndrome=0x60, psn=p.psn + 1)


@breaks("nak-again", LOSS)
def _(t):
    nak = t.find(wire.ACKNOWLEDGE, syndrome=0x60)
    t.insert(nak, nak)


@breaks("rnr-psn", WRITE)
def _(t):
    p = t.packets[t.find(wire.ACKNOWLEDGE)]
    t.edit(p.number, syndrome=0x21, psn=p.psn - 3)


@breaks("rnr-again", SEND)
def _(t):
    nak = t.find(wire.ACKNOWLEDGE, nth=-1)
    t.edit(nak, syndrome=0x21)
    t.insert(nak, nak, syndrome=0x21)


@breaks("nak-after-rnr", SEND)
def _(t):
    p = t.packets[t.find(wire.ACKNOWLEDGE, nth=0)]
    t.edit(p.number, syndrome=0x21)
    later = next(q for q in t.packets[p.number:] if q.is_request() and q.source == p.target)
    t.insert(later.number, p.number, syndrome=0x60)


@breaks("atomic", ATOMIC)
def _(t):
    p = t.packets[t.find(wire.ATOMIC_ACKNOWLEDGE, nth=3)]
    t.edit(p.number, psn=p.psn + 2)


@breaks("atomic-value", ATOMIC)
def _(t):
    answer = t.packets[t.find(wire.ATOMIC_ACKNOWLEDGE, nth=3)]
    t.insert(answer.number, answer.number, value=answer.value + 1)


def ahead(t, *ops):
    """The second request leaves before the answer to the first has come."""
    first, second = t.find(*ops), t.find(*ops, nth=1)
    del t.sent[second]
    t.insert(first, second)


@breaks("depth", READ)
def _(t):
    ahead(t, wire.READ_REQUEST)


@breaks("depth", ATOMIC)
def _(t):
    ahead(t, *wire.ATOMICS)


@breaks("read-psn", READ)
def _(t):
    again = t.find(wire.READ_MIDDLE, nth=2)
    t.insert(again, again, after=1)


@breaks("read-psn", READ)
def _(t):
    p = t.packets[t.find(wire.READ_MIDDLE, nth=-1)]
    t.edit(p.number, psn=p.psn + 7)


@breaks("read-opcode", READ)
def _(t):
    t.edit(t.find(wire.READ_FIRST), opcode=wire.READ_ONLY)


@breaks("read-length", READ)
def _(t):
    t.cut(t.find(wire.READ_LAST), 4)


@breaks("read-restart", READ)
def _(t):
    request, last = t.packets[t.find(wire.READ_REQUEST)], t.packets[t.find(wire.READ_LAST)]
    end = last.number
    t.insert(end, end, after=3)
    t.insert(end, request.number, after=2, psn=last.psn, va=request.va + 5 * 1024, length=request.length - 5 * 1024)


@breaks("read-order", READ)
def _(t):
    second = t.packets[t.find(wire.READ_REQUEST, nth=1)]
    middle = t.find(wire.READ_MIDDLE, nth=1)
    begins = t.find(wire.READ_FIRST, nth=1)
    del t.sent[begins], t.sent[second.number]
    t.insert(middle, begins, after=3)
    t.insert(middle, second.number, after=2)


@breaks("order", READ)
def _(t):
    last, first = t.packets[t.find(wire.READ_LAST)], t.find(wire.READ_REQUEST)
    ack = wire.decode(0, 0, last.frame)
    t.cut(last.number, len(last.data))
    ack = wire.decode(0, 0, t.sent[last.number][1])
    t.sent[last.number] = (last.time, last.frame)
    t.sent.insert(first + 1, (t.sent[first][0] + 1, edited(ack, True, opcode=wire.ACKNOWLEDGE)))


@breaks("order", READ)
def _(t):
    """A READ whose answers were given up when the requester went back to the one before it."""
    second = t.packets[t.find(wire.READ_REQUEST, nth=1)]
    before, last = t.packets[t.find(wire.READ_REQUEST)], t.packets[t.find(wire.READ_LAST)]
    end = t.find(wire.READ_LAST, nth=1)
    del t.sent[second.number + 1:end + 1]
    t.insert(second.number, last.number, after=3, opcode=wire.READ_ONLY)
    t.insert(second.number, before.number, after=2, psn=last.psn, va=before.va + 5 * 1024, length=before.length - 5 * 1024)


@breaks("order", ATOMIC)
def _(t):
    """An atomic's answer overtakes that to a READ which was asked for again."""
    request = t.packets[t.find(wire.FETCH_ADD, nth=5)]
    t.cut(request.number, 12)
    t.edit_sent(request.number, opcode=wire.READ_REQUEST, length=8)
    del t.sent[t.find(wire.ATOMIC_ACKNOWLEDGE, nth=5)]
    t.sent.insert(request.number + 1, (request.time + 1 * US, t.sent[request.number][1]))


@breaks("read-psn", READ)
def _(t):
    """Responses go on behind the beginning of a repetition."""
    middle, first = t.find(wire.READ_MIDDLE, nth=1), t.find(wire.READ_FIRST)
    request = t.find(wire.READ_REQUEST)
    t.insert(middle, first, after=3)
    t.insert(middle, request, after=2)


@breaks("msn", WRITE)
def _(t):
    p = t.packets[t.find(wire.ACKNOWLEDGE, nth=2)]
    t.edit(p.number, msn=p.msn + 1)


@breaks("msn-back", WRITE)
def _(t):
    p = t.packets[t.find(wire.ACKNOWLEDGE, nth=2)]
    t.edit(p.number, msn=p.msn - 2)


@breaks("unasked", SEND)
def _(t):
    t.edit(t.find(wire.ACKNOWLEDGE, nth=2), qp=0x999)


def main():
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        before = {}
        for rule, name, mutate in MUTATIONS:
            t = trace(sys.argv[1], name)
            if name not in before:
                before[name] = {f.rule for f in t.findings(folder)} - set(check_rules.KNOWN["soft-roce"])
                if before[name]:
                    faults.append("%s is not clean to begin with: %s" % (name, before[name]))
            mutate(t)
            found = {f.rule for f in t.findings(folder)}
            if rule not in found:
                faults.append("%s in %s is not found, but %s" % (rule, name, sorted(found)))
    told = set()
    for source in ("packet_rules.py", "requester_rules.py", "responder_rules.py", "check_rules.py"):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), source)) as f:
            told |= set(re.findall(r'(?:report\(|")"?([a-z-]+)", (?:p|request|last|full|sent)\b', f.read()))
    faults += ["no mutation breaks " + rule for rule in sorted(told - {m[0] for m in MUTATIONS})]
    for fault in faults:
        print(fault)
    print("%d mutations of %d rules, %d faults" % (len(MUTATIONS), len({m[0] for m in MUTATIONS}), len(faults)))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
