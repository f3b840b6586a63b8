# SPDX-License-Identifier: Apache-2.0
"""Captures and RoCE packets, decoded from the standard's layouts: IBA volume 1, chapters 5, 7 and 9, annexes A16, A17."""
import struct
import zlib

VLAN, IPV4, IPV6, ROCE_V1 = 0x8100, 0x0800, 0x86dd, 0x8915
UDP, ROCE_PORT, GRH_NEXT_BTH = 17, 4791, 0x1b
RC, UC, RD, UD, CNP, XRC = 0, 1, 2, 3, 4, 5  # bits 7:5 of the opcode

# Operations, bits 4:0 of the opcode (table 38).
(SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM, WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST,
 WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM, READ_REQUEST, READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY, ACKNOWLEDGE,
 ATOMIC_ACKNOWLEDGE, COMPARE_SWAP, FETCH_ADD, RESYNC, SEND_LAST_INV, SEND_ONLY_INV) = range(24)

FIRSTS = {SEND_FIRST, WRITE_FIRST}
MIDDLES = {SEND_MIDDLE, WRITE_MIDDLE}
LASTS = {SEND_LAST, SEND_LAST_IMM, SEND_LAST_INV, WRITE_LAST, WRITE_LAST_IMM}
ONLYS = {SEND_ONLY, SEND_ONLY_IMM, SEND_ONLY_INV, WRITE_ONLY, WRITE_ONLY_IMM}
SENDS = {SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_LAST_INV, SEND_ONLY, SEND_ONLY_IMM, SEND_ONLY_INV}
IMMEDIATES = {SEND_LAST_IMM, SEND_ONLY_IMM, WRITE_LAST_IMM, WRITE_ONLY_IMM}
ATOMICS = {COMPARE_SWAP, FETCH_ADD}
READ_RESPONSES = {READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY}
RESPONSES = READ_RESPONSES | {ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE}
WITH_RETH = {WRITE_FIRST, WRITE_ONLY, WRITE_ONLY_IMM, READ_REQUEST}
WITH_AETH = {READ_FIRST, READ_LAST, READ_ONLY, ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE}
NAMES = ("send first,send middle,send last,send last imm,send only,send only imm,write first,write middle,write last,"
         "write last imm,write only,write only imm,read request,read response first,read response middle,"
         "read response last,read response only,acknowledge,atomic acknowledge,compare swap,fetch add,resync,"
         "send last inv,send only inv").split(",")
# Microseconds of the RNR timer by code (IBA 9.7.5.2.8, table 45).
RNR_US = [655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920, 2560, 3840, 5120, 7680, 10240,
          15360, 20480, 30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520]


def difference(a, b):
    """a - b of 24-bit sequence numbers, signed."""
    return ((a - b + (1 << 23)) & 0xffffff) - (1 << 23)


def plus(psn, count):
    return (psn + count) & 0xffffff


def frames(capture):
    """(time in ns, bytes without FCS) of a classic capture of whole Ethernet frames, in the order of the file.

    Where the link type says that there is an FCS, frames in which it is wrong are left out: nobody received them."""
    with open(capture, "rb") as f:
        data = f.read()
    for order in "<>":
        magic, _, _, _, _, _, kind = struct.unpack(order + "IHHiIII", data[:24])
        if magic in (0xa1b23c4d, 0xa1b2c3d4):
            break
    else:
        raise ValueError("%s: not a classic capture" % capture)
    fcs = kind >> 24 == 0x24  # the upper bits: there is one, of two times 16 bits
    if kind & 0x3ffffff != 1:
        raise ValueError("%s: not of Ethernet" % capture)
    scale, at = 1 if magic == 0xa1b23c4d else 1000, 24
    while at < len(data):
        seconds, part, length, whole = struct.unpack(order + "IIII", data[at:at + 16])
        if length != whole:
            raise ValueError("%s: a frame is cut" % capture)
        frame = data[at + 16:at + 16 + length]
        at += 16 + length
        if fcs:
            frame, end = frame[:-4], frame[-4:]
            if zlib.crc32(frame) != int.from_bytes(end, "little"):
                continue
        yield seconds * 10**9 + part * scale, frame


def write_frames(capture, records):
    with open(capture, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, 1))
        for time, frame in records:
            f.write(struct.pack("<IIII", time // 10**9, time % 10**9, len(frame), len(frame)) + frame)


class packet:
    """A RoCE packet. `bth` is the offset of the transport header in the frame, `end` that of the ICRC."""
    __slots__ = ("number", "time", "frame", "kind", "l3", "bth", "end", "source", "target", "problem", "opcode",
                 "service", "op", "solicited", "pad", "version", "key", "congestion", "qp", "ask", "psn", "reserved",
                 "va", "rkey", "length", "operands", "syndrome", "msn", "value", "srq", "source_qp", "data", "good_icrc",
                 "good_ip", "body")

    def name(self):
        return "%s psn %d" % (NAMES[self.op] if self.op < len(NAMES) else hex(self.opcode), self.psn)

    def is_response(self):
        return self.service in (RC, XRC) and self.op in RESPONSES

    def is_request(self):
        return self.service in (RC, XRC) and not self.is_response()

    def ends_message(self):
        return self.op in LASTS or self.op in ONLYS or self.op in ATOMICS or self.op == READ_REQUEST


def computed_icrc(frame, kind, l3, bth, end):
    """Table 26 and A16.4.3, A17.3.3: a link header of ones, what routers change as ones."""
    masked = bytearray(frame[l3:end])
    if kind == IPV4:
        ones = [1, 8, 10, 11, 26, 27]
    else:
        masked[0] |= 0x0f
        ones = [1, 2, 3, 7] + ([46, 47] if kind == IPV6 else [])
    for i in ones + [bth - l3 + 4]:
        masked[i] = 0xff
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(masked)))


def locate(frame):
    """(kind, offset of L3, of BTH, of the ICRC, problem) or None for what is not RoCE."""
    l3, kind = 14, struct.unpack(">H", frame[12:14])[0]
    if kind == VLAN:
        l3, kind = 18, struct.unpack(">H", frame[16:18])[0]
    if kind == IPV4:
        if frame[l3 + 9] != UDP or struct.unpack(">H", frame[l3 + 22:l3 + 24])[0] != ROCE_PORT:
            return None
        transport, total = l3 + 20, struct.unpack(">H", frame[l3 + 2:l3 + 4])[0]
    elif kind == IPV6:
        if frame[l3 + 6] != UDP or struct.unpack(">H", frame[l3 + 42:l3 + 44])[0] != ROCE_PORT:
            return None
        transport, total = l3 + 40, 40 + struct.unpack(">H", frame[l3 + 4:l3 + 6])[0]
    elif kind == ROCE_V1:
        transport, total = l3 + 40, 40 + struct.unpack(">H", frame[l3 + 4:l3 + 6])[0]
    else:
        return None
    problem, end = None, l3 + total - 4
    if kind == ROCE_V1:
        bth = transport
        if frame[l3 + 6] != GRH_NEXT_BTH:
            problem = "next header of the GRH is %#x" % frame[l3 + 6]
    else:
        bth = transport + 8
        if struct.unpack(">H", frame[transport + 4:transport + 6])[0] != end + 4 - transport:
            problem = "lengths of IP and UDP differ"
    if end + 4 > len(frame) or end < bth + 12:
        return kind, l3, bth, len(frame) - 4, "the length of L3 is not that of the frame"
    if any(frame[end + 4:]):
        problem = "the padding of Ethernet is not zero"
    return kind, l3, bth, end, problem


def decode(number, time, frame):
    """The packet in a frame, or None."""
    place = locate(frame) if len(frame) >= 58 else None
    if place is None:
        return None
    p = packet()
    p.number, p.time, p.frame = number, time, frame
    p.kind, p.l3, p.bth, p.end, p.problem = place
    addresses = {IPV4: (12, 16, 20)}.get(p.kind, (8, 24, 40))
    p.source = frame[p.l3 + addresses[0]:p.l3 + addresses[1]]
    p.target = frame[p.l3 + addresses[1]:p.l3 + addresses[2]]
    b, at = frame[p.bth:p.bth + 12], p.bth + 12
    p.opcode, p.service, p.op = b[0], b[0] >> 5, b[0] & 0x1f
    p.solicited, p.pad, p.version = b[1] >> 7, b[1] >> 4 & 3, b[1] & 15
    p.key, p.congestion, p.qp = b[2] << 8 | b[3], b[4], int.from_bytes(b[5:8], "big")
    p.ask, p.reserved, p.psn = b[8] >> 7, b[8] & 0x7f | b[4] & 0x3f, int.from_bytes(b[9:12], "big")
    p.va = p.rkey = p.length = p.operands = p.syndrome = p.msn = p.value = p.srq = p.source_qp = None
    if p.service == CNP:
        p.data = frame[at:p.end]
    else:
        if p.service == XRC and p.op not in RESPONSES:
            p.srq, at = int.from_bytes(frame[at + 1:at + 4], "big"), at + 4
        at = decode_extended(p, frame, at)
        p.data = frame[at:p.end - p.pad] if p.pad else frame[at:p.end]
        if at + p.pad > p.end:
            p.problem = p.problem or "too short for its headers"
    p.good_icrc = computed_icrc(frame, p.kind, p.l3, p.bth, p.end) == frame[p.end:p.end + 4]
    p.good_ip = p.kind != IPV4 or sum(struct.unpack(">10H", frame[p.l3:p.l3 + 20])) % 0xffff == 0  # RFC 1071
    p.body = frame[p.bth:p.bth + 8] + bytes([b[8] & 0x7f]) + frame[p.bth + 9:p.end]
    return p


def decode_extended(p, frame, at):
    if p.service == UD:
        p.source_qp, at = int.from_bytes(frame[at + 5:at + 8], "big"), at + 8
    if p.op in WITH_RETH and p.service != UD and len(frame) >= at + 16:
        (p.va, p.rkey, p.length), at = struct.unpack(">QII", frame[at:at + 16]), at + 16
    elif p.op in ATOMICS and len(frame) >= at + 28:
        (p.va, p.rkey, *p.operands), at = struct.unpack(">QIQQ", frame[at:at + 28]), at + 28
    elif p.op in WITH_AETH:
        p.syndrome, p.msn, at = frame[at], int.from_bytes(frame[at + 1:at + 4], "big"), at + 4
        if p.op == ATOMIC_ACKNOWLEDGE:
            p.value, at = int.from_bytes(frame[at:at + 8], "big"), at + 8
    if p.op in IMMEDIATES or p.op in (SEND_LAST_INV, SEND_ONLY_INV):
        at += 4
    return at


def packets(capture):
    """All RoCE packets of a capture; number is that of the frame, from 1."""
    decoded = (decode(i + 1, time, frame) for i, (time, frame) in enumerate(frames(capture)))
    return [p for p in decoded if p is not None]
