# SPDX-License-Identifier: Apache-2.0
"""Builds RoCE packets and capture files from the standard's tables alone, for cases with defined content."""
import struct
import zlib

SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM = range(6)
WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM = range(6, 12)
SEND_LAST_INV, SEND_ONLY_INV = 22, 23
READ, READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY, ACK, ATOMIC_ACK, SWAP, ADD = range(12, 21)
RC, UC, UD, XRC = 0x00, 0x20, 0x60, 0xA0
RNR, NAK_SEQUENCE, NAK_INVALID, NAK_ACCESS, NAK_OPERATION = 0x20, 0x60, 0x61, 0x62, 0x63
US, MS = 1000, 1000000


class Host:
    def __init__(self, number, mac=None, ip=None):
        self.mac = mac or bytes((0x52, 0x54, 0, 0, 1, number))
        self.ip = ip or bytes((10, 0, 7, number))


def icrc(l3, udp, body):
    """CRC-32 over the packet with everything that may change on the way set to ones (IBA annex A17)."""
    l3, udp, body = bytearray(l3), bytearray(udp), bytearray(body)
    l3[1] = l3[8] = l3[10] = l3[11] = 0xFF
    udp[6:8] = b"\xff\xff"
    body[4] = 0xFF
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(l3) + bytes(udp) + bytes(body)))


def frame(source, to, opcode, qpn, psn, headers=b"", payload=b"", ask=False, solicited=False, port=0xC000, ttl=64, tos=0,
          pkey=0xFFFF):
    """A RoCE v2 frame over IPv4, without FCS."""
    pad = -len(payload) % 4
    body = struct.pack(">BBHII", opcode, (0x80 if solicited else 0) | pad << 4, pkey, qpn, (1 << 31 if ask else 0) | psn & 0xFFFFFF)
    body += headers + payload + b"\0" * pad
    length = 20 + 8 + len(body) + 4
    l3 = bytearray(struct.pack(">BBHHHBBH4s4s", 0x45, tos, length, 0, 0x4000, ttl, 17, 0, source.ip, to.ip))
    total = sum(struct.unpack(">10H", bytes(l3)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    l3[10:12] = struct.pack(">H", total ^ 0xFFFF)
    udp = struct.pack(">HHHH", port, 4791, length - 20, 0)
    return to.mac + source.mac + b"\x08\x00" + bytes(l3) + udp + body + icrc(l3, udp, body)


def reth(address, key, length):
    return struct.pack(">QII", address & (1 << 64) - 1, key, length)


def aeth(syndrome, msn):
    return struct.pack(">I", syndrome << 24 | msn & 0xFFFFFF)


def ieth(key):
    return struct.pack(">I", key)


def atomic(address, key, swap_add, compare=0):
    return struct.pack(">QIQQ", address, key, swap_add, compare)


def deth(qkey, source_qpn):
    return struct.pack(">II", qkey, source_qpn)


def content(size, seed=1):
    """Bytes that tell their place."""
    return bytes((seed * 31 + i * 7 + (i >> 8)) & 0xFF for i in range(size))


class Capture:
    """Frames in order, `step` nanoseconds apart unless told otherwise."""

    def __init__(self, step=20 * US):
        self.now, self.step, self.frames = 0, step, []

    def add(self, data, wait=None):
        self.now += self.step if wait is None else wait
        self.frames.append((self.now, data))
        return len(self.frames)  # its number as reports have it

    def write(self, path, snap=1 << 16, drop=()):
        """`drop`: numbers of frames that the file lacks."""
        with open(path, "wb") as out:
            out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
            for number, (at, data) in enumerate(self.frames, 1):
                if number not in drop:
                    kept = data[:snap]
                    out.write(struct.pack("<IIII", at // 10**9, at % 10**9, len(kept), len(data)) + kept)


class Connection:
    """A reliable connection between the host that is held and its peer: the packets of both, numbered as they go.

    peer_*: what the peer sends; held_*: what the held host sends. Every one returns the number of the (last) frame."""

    def __init__(self, capture, held, peer, held_qpn, peer_qpn, peer_psn=100, held_psn=5000, mtu=1024, service=RC, ports=None):
        self.capture, self.held, self.peer = capture, held, peer
        self.held_qpn, self.peer_qpn = held_qpn, peer_qpn
        self.peer_psn, self.held_psn, self.mtu, self.service = peer_psn, held_psn, mtu, service
        self.ports = ports or (0xC000 + peer_qpn % 0x3FFF, 0xC000 + held_qpn % 0x3FFF)
        self.held_msn = 0

    def from_peer(self, opcode, psn, headers=b"", payload=b"", wait=None, **more):
        return self.capture.add(frame(self.peer, self.held, self.service | opcode, self.held_qpn, psn, headers, payload,
                                      port=self.ports[0], **more), wait)

    def from_held(self, opcode, psn, headers=b"", payload=b"", wait=None, **more):
        return self.capture.add(frame(self.held, self.peer, self.service | opcode, self.peer_qpn, psn, headers, payload,
                                      port=self.ports[1], **more), wait)

    def cut(self, payload):
        return [payload[i:i + self.mtu] for i in range(0, len(payload), self.mtu)] or [b""]

    def message(self, send, psn, base, payload, headers=b"", ask=True, last_headers=b"", **more):
        """The packets of a SEND (base SEND_FIRST) or WRITE (base WRITE_FIRST); `headers`: of the first packet."""
        parts, numbers = self.cut(payload), []
        for i, part in enumerate(parts):
            last = i == len(parts) - 1
            if len(parts) == 1:
                opcode = base + 4
            else:
                opcode = base if i == 0 else base + 2 if last else base + 1
            if last and last_headers:
                opcode += 1
            numbers.append(send(opcode, psn + i, (headers if i == 0 else b"") + (last_headers if last else b""), part,
                                ask=ask and last, **more))
        return numbers

    def peer_send(self, payload, **more):
        numbers = self.message(self.from_peer, self.peer_psn, SEND_FIRST, payload, **more)
        self.peer_psn += len(numbers)
        return numbers

    def peer_write(self, address, key, payload, **more):
        numbers = self.message(self.from_peer, self.peer_psn, WRITE_FIRST, payload, reth(address, key, len(payload)), **more)
        self.peer_psn += len(numbers)
        return numbers

    def held_send(self, payload, **more):
        numbers = self.message(self.from_held, self.held_psn, SEND_FIRST, payload, **more)
        self.held_psn += len(numbers)
        return numbers

    def held_write(self, address, key, payload, **more):
        numbers = self.message(self.from_held, self.held_psn, WRITE_FIRST, payload, reth(address, key, len(payload)), **more)
        self.held_psn += len(numbers)
        return numbers

    def held_ack(self, psn=None, syndrome=0x1F, ended=1, wait=None):
        """Of the peer's last packet, or of `psn`; `ended`: messages that have ended since the answer before."""
        self.held_msn += ended
        return self.from_held(ACK, self.peer_psn - 1 if psn is None else psn, aeth(syndrome, self.held_msn), wait=wait)

    def peer_ack(self, msn, psn=None, syndrome=0x1F, wait=None):
        return self.from_peer(ACK, self.held_psn - 1 if psn is None else psn, aeth(syndrome, msn), wait=wait)

    def answer(self, send, psn, payload, msn, skip=()):
        """A READ's answer; `skip`: packets that are not there."""
        parts, number = self.cut(payload), 0
        for i, part in enumerate(parts):
            first, last = i == 0, i == len(parts) - 1
            opcode = READ_ONLY if first and last else READ_FIRST if first else READ_LAST if last else READ_MIDDLE
            if i not in skip:
                number = send(opcode, psn + i, aeth(0x1F, msn) if first or last else b"", part)
        return number

    def peer_read(self, address, key, payload, **more):
        """The peer's READ with its answer."""
        psn = self.peer_psn
        self.from_peer(READ, psn, reth(address, key, len(payload)), ask=True)
        self.peer_psn += len(self.cut(payload))
        self.held_msn += 1
        return self.answer(self.from_held, psn, payload, self.held_msn, **more)

    def held_read(self, address, key, payload, msn, **more):
        """The held host's READ with the peer's answer."""
        psn = self.held_psn
        self.from_held(READ, psn, reth(address, key, len(payload)), ask=True)
        self.held_psn += len(self.cut(payload))
        return self.answer(self.from_peer, psn, payload, msn, **more)


class XrcConnection(Connection):
    """One half of XRC: what is asked of the queue pair of the other side names a shared receive queue, `srqn`."""

    def __init__(self, *hosts, srqn, **more):
        super().__init__(*hosts, service=XRC, **more)
        self.srqn = srqn

    def named(self, opcode, headers):
        return headers if READ_FIRST <= opcode <= ATOMIC_ACK else struct.pack(">I", self.srqn) + headers

    def from_peer(self, opcode, psn, headers=b"", payload=b"", wait=None, **more):
        return super().from_peer(opcode, psn, self.named(opcode, headers), payload, wait, **more)

    def from_held(self, opcode, psn, headers=b"", payload=b"", wait=None, **more):
        return super().from_held(opcode, psn, self.named(opcode, headers), payload, wait, **more)
