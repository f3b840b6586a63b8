# SPDX-License-Identifier: Apache-2.0
"""What the packets of a capture leave in the memory of their receiver, by the packets alone."""
import socket
import struct
import zlib

RC, UC, UD = 0, 1, 3
SEND_FIRST, SEND_ONLY_IMM, WRITE_FIRST, WRITE_ONLY_IMM, READ_REQUEST, READ_FIRST, READ_ONLY = 0, 5, 6, 11, 12, 13, 16
FIRST = {0, 4, 5, 6, 10, 11, 13, 16}  # SEND, WRITE and READ RESPONSE: FIRST or ONLY
IMMEDIATE = {3, 5, 9, 11}
WITH_AETH = {13, 15, 16}
WITH_RETH = {6, 10, 11, 12}
REQ, DREQ, DREP = 0x10, 0x15, 0x16  # attributes of the connection manager's datagrams


def frames(path):
    with open(path, "rb") as f:
        data = f.read()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    at = 24
    while at + 16 <= len(data):
        length = struct.unpack(order + "I", data[at + 8:at + 12])[0]
        yield data[at + 16:at + 16 + length]
        at += 16 + length


def group_reports(path, host, group, kind):
    """IGMPv3 reports of a host, of one record of this kind and group: all bytes but the host's addresses and the checksum
    of the IP header, which has one of them in it."""
    found = []
    for frame in frames(path):
        if frame[12:14] != b"\x08\0" or frame[23] != 2 or frame[26:30] != socket.inet_aton(host):
            continue
        end = 14 + struct.unpack(">H", frame[16:18])[0]
        igmp = frame[14 + (frame[14] & 15) * 4:end]
        if igmp[0] == 0x22 and igmp[6:8] == b"\0\x01" and igmp[8] == kind and igmp[12:16] == socket.inet_aton(group):
            found.append((frame[:6] + frame[12:24] + frame[30:end]).hex())
    return found


class packet:
    """A RoCE v2 packet: `target` is the MAC address it goes to, `sender` the one it comes from."""

    def __init__(self, ends, bth):
        self.target, self.sender = ends[:6], ends[6:]
        self.transport, self.operation = bth[0] >> 5, bth[0] & 31
        self.qpn, self.psn = struct.unpack(">I", b"\0" + bth[5:8])[0], struct.unpack(">I", b"\0" + bth[9:12])[0]
        rest = bth[12:len(bth) - 4 - (bth[1] >> 4 & 3)]
        if self.transport == UD:
            rest = rest[8:]
        if self.operation in WITH_RETH:
            self.address, self.length = struct.unpack(">Q4xI", rest[:16])
            rest = rest[16:]
        if self.operation in IMMEDIATE:
            rest = rest[4:]
        if self.operation in WITH_AETH:
            rest = rest[4:]
        self.payload = rest


def packets(path):
    for f in frames(path):
        at = 18 if f[12:14] == b"\x81\x00" else 14
        kind = f[at - 2:at]
        if kind == b"\x08\x00" and f[at + 9] == 17:
            end = at + struct.unpack(">H", f[at + 2:at + 4])[0]
            at += (f[at] & 15) * 4
        elif kind == b"\x86\xdd" and f[at + 6] == 17:
            end = at + 40 + struct.unpack(">H", f[at + 4:at + 6])[0]
            at += 40
        else:
            continue
        if f[at + 2:at + 4] == struct.pack(">H", 4791):
            yield packet(f[:12], f[at + 8:end])


def farewell(path, mac):
    """How a host of this MAC address leaves its connections: (DREQs that it sends, DREPs that it gets, RC packets that it
    sends after the first DREQ)."""
    asked = answered = behind = 0
    for p in packets(path):
        mad = int.from_bytes(p.payload[16:18], "big") if p.transport == UD and p.qpn == 1 else 0
        to_it = p.target.hex(":") == mac
        asked += mad == DREQ and not to_it
        answered += mad == DREP and to_it
        behind += p.transport == RC and asked != 0 and not to_it
    return asked, answered, behind


def senders_of_connections(path):
    """MAC addresses from which datagrams have gone to QP1."""
    return {p.sender.hex(":") for p in packets(path) if p.transport == UD and p.qpn == 1}


def leaves_without_word(path, mac):
    """Whether to this MAC address a REQ has come, and no DREQ."""
    mads = [int.from_bytes(p.payload[16:18], "big") for p in packets(path)
            if p.transport == UD and p.qpn == 1 and p.target.hex(":") == mac]
    return REQ in mads and DREQ not in mads


class image:
    """Memory of one queue pair: messages of SEND take their places in turns, the others say where they go."""

    def __init__(self, stride, count, mtu):
        self.stride, self.count, self.mtu = stride, count, mtu
        self.memory = bytearray()
        self.base = self.offset = self.expected = None
        self.messages = 0
        self.asked = {}  # PSN of a READ response: its address

    def begin(self, psn):
        """A request has this PSN; the earliest one is where the connection begins."""
        if self.expected is None or 0 < (self.expected - psn) % (1 << 24) < 1 << 23:
            self.expected = psn

    def request(self, p):
        """Of the peer. What is not the next one of a reliable connection was refused, or is there already."""
        if p.transport == RC:
            if p.psn != self.expected:
                return
            self.expected = (p.psn + 1) % (1 << 24)
        if p.operation in FIRST and p.operation <= SEND_ONLY_IMM:
            self.offset = self.messages % self.count * self.stride
            self.messages += 1
        elif p.operation in FIRST:
            self.locate(p.address)
        self.put(p.payload)

    def ask(self, p):
        for i in range(max(-(-p.length // self.mtu), 1)):
            self.asked[(p.psn + i) % (1 << 24)] = p.address + i * self.mtu
        if self.base is None:
            self.base = p.address

    def response(self, p):
        self.locate(self.asked[p.psn])
        self.put(p.payload)

    def locate(self, address):
        if self.base is None:
            self.base = address
        self.offset = address - self.base

    def put(self, payload):
        end = self.offset + len(payload)
        self.memory.extend(bytes(max(end - len(self.memory), 0)))
        self.memory[self.offset:end] = payload
        self.offset = end

    def crc32(self, size, messages):
        text = b"".join(self.memory[i * self.stride:i * self.stride + size] for i in range(min(self.count, messages)))
        return zlib.crc32(text)


def images(path, mac, run, mtu):
    """By queue pair of the host `mac`, whose perftest run this was."""
    own = bytes.fromhex(mac.replace(":", ""))
    places = run["places"]
    found = {m["qpn"]: image(places["stride"], places["count"], mtu) for m in run["memory"]}
    asks = {m["peer_qpn"]: found[m["qpn"]] for m in run["memory"]}
    seen = list(packets(path))
    for p in seen:  # the first packet of a connection may have been lost: it comes again, behind others
        if p.target == own and p.qpn in found and p.transport == RC and p.operation <= WRITE_ONLY_IMM:
            found[p.qpn].begin(p.psn)
    for p in seen:
        if p.target != own:
            if p.operation == READ_REQUEST and p.qpn in asks:
                asks[p.qpn].ask(p)
        elif p.qpn in found:
            if p.operation <= WRITE_ONLY_IMM:
                found[p.qpn].request(p)
            elif READ_FIRST <= p.operation <= READ_ONLY:
                found[p.qpn].response(p)
    return found


def differences(path, mac, run, messages, mtu):
    """Queue pairs whose memory is not what the wire made of it, as text."""
    found = images(path, mac, run, mtu)
    wrong = []
    for m in run["memory"]:
        expected = found[m["qpn"]].crc32(run["message_bytes"], messages)
        if expected != m["crc32"]:
            wrong.append("queue pair %#x: CRC-32 of memory %08x, of the wire %08x" % (m["qpn"], m["crc32"], expected))
    return wrong
