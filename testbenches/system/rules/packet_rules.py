# SPDX-License-Identifier: Apache-2.0
"""What a packet must be by itself (adapter data plane C.1 to C.5, C.9)."""
from wire import (ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE, ATOMICS, CNP, FIRSTS, LASTS, MIDDLES, ONLYS, RC, READ_FIRST, READ_LAST,
                  READ_MIDDLE, READ_ONLY, READ_REQUEST, RESPONSES, SENDS, UC, UD, WRITE_LAST_IMM, WRITE_ONLY_IMM, XRC,
                  SEND_ONLY, SEND_ONLY_IMM)

MTUS = (256, 512, 1024, 2048, 4096)
RC_OPS = FIRSTS | MIDDLES | LASTS | ONLYS | ATOMICS | RESPONSES | {READ_REQUEST}
UC_OPS = {op for op in FIRSTS | MIDDLES | LASTS | ONLYS if op < READ_REQUEST}
KNOWN = {RC: RC_OPS, XRC: RC_OPS, UC: UC_OPS, UD: {SEND_ONLY, SEND_ONLY_IMM}, CNP: {1}}
WITHOUT_DATA = ATOMICS | {READ_REQUEST, ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE}
NOT_EMPTY = LASTS | {READ_LAST}
MAY_SOLICIT = {op for op in SENDS if op in LASTS or op in ONLYS} | {WRITE_LAST_IMM, WRITE_ONLY_IMM}
NAK_CODES = 5


def check_packet(p, report):
    if p.problem:
        report("length", p, p.problem)
    if not p.good_icrc:
        report("icrc", p, "the ICRC is wrong")
    if p.op not in KNOWN.get(p.service, ()):
        return report("opcode", p, "unknown opcode %#x" % p.opcode)
    if p.version != 0 or p.reserved != 0:
        report("header", p, "version or reserved bits are not 0")
    if p.service == CNP:
        return check_notification(p, report)
    if p.pad != -len(p.data) & 3:
        report("pad", p, "%d bytes of padding behind %d" % (p.pad, len(p.data)))
    if any(p.frame[p.end - p.pad:p.end]):
        report("pad", p, "padding that is not zero")
    if p.solicited and p.op not in MAY_SOLICIT:
        report("solicited", p, "solicited event in a packet that ends no receive")
    if p.ask and (p.service in (UC, UD) or p.is_response()):
        report("ask", p, "asks for an acknowledgement that nobody owes")
    if p.op in WITHOUT_DATA and p.data:
        report("length", p, "%d bytes in a packet without payload" % len(p.data))
    if p.op in NOT_EMPTY and not p.data:
        report("length", p, "a last packet without payload")
    if p.syndrome is not None:
        check_syndrome(p, report)


def check_syndrome(p, report):
    kind, code = p.syndrome >> 5, p.syndrome & 0x1f
    if kind not in (0, 1, 3):
        report("syndrome", p, "syndrome %#x has a reserved type" % p.syndrome)
    elif kind == 3 and code >= NAK_CODES:
        report("syndrome", p, "NAK code %d is reserved" % code)
    elif kind != 0 and p.op != ACKNOWLEDGE:
        report("syndrome", p, "a response with data that is no ACK: %#x" % p.syndrome)


def check_notification(p, report):
    """RoCE v2 congestion notification, A17.9.3: opcode 0x81, BECN, no number, 16 bytes of zero."""
    if p.congestion & 0x40 == 0 or p.ask or p.psn or p.pad or p.solicited or p.data != bytes(16):
        report("notification", p, "a congestion notification with other fields")


def mtu_of(packets, report):
    """Path MTU of a connection from the packets that must be full. None when there is none."""
    full = {}
    for p in packets:
        if p.op in FIRSTS or p.op in MIDDLES or p.op in (READ_FIRST, READ_MIDDLE):
            full.setdefault(len(p.data), p)
    longest = max((len(p.data) for p in packets), default=0)
    if not full:
        return next((m for m in MTUS if m >= longest), MTUS[-1]) if longest > 0 else None
    # The length that most have: one packet that is wrong does not make the others wrong.
    counts = {size: sum(1 for p in packets if p.op in (READ_FIRST, READ_MIDDLE) or p.op in FIRSTS or p.op in MIDDLES
                        if len(p.data) == size) for size in full}
    mtu = max(counts, key=lambda size: (size in MTUS, counts[size]))
    if mtu not in MTUS:
        report("mtu", full[mtu], "%d bytes in a packet that is not the last" % mtu)
    for size, p in full.items():
        if size != mtu:
            report("mtu", p, "%d bytes in a packet that must have the path MTU of %d" % (size, mtu))
    for p in packets:
        if len(p.data) > mtu and (p.op in LASTS or p.op in ONLYS or p.op in (READ_LAST, READ_ONLY)):
            report("mtu", p, "%d bytes are more than the path MTU of %d" % (len(p.data), mtu))
    return mtu
