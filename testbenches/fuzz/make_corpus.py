#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes what the fuzzer begins with: make_corpus.py FOLDER writes FOLDER/<target>/<name>.

Most of it is cut from the captures of traces/; the rest are cases that went wrong once or may, built here so that they
can be read.
"""
import gzip
import pathlib
import struct
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TRACES = ROOT / "traces"
ETHERNET = 1
BTH = 14 + 20 + 8  # of RoCE v2 over IPv4, untagged


def read_capture(path):
    """[(nanoseconds, frame)]"""
    data = path.read_bytes()
    scale = 1 if data[:4] == b"\x4d\x3c\xb2\xa1" else 1000
    frames, at = [], 24
    while at < len(data):
        seconds, part, length, _ = struct.unpack("<IIII", data[at:at + 16])
        frames.append((seconds * 10**9 + part * scale, data[at + 16:at + 16 + length]))
        at += 16 + length
    return frames


def pcap(frames, nanoseconds=True, link_type=ETHERNET):
    magic, scale = (0xa1b23c4d, 1) if nanoseconds else (0xa1b2c3d4, 1000)
    out = struct.pack("<IHHiIII", magic, 2, 4, 0, 0, 65536, link_type)
    for at, frame in frames:
        out += struct.pack("<IIII", at // 10**9, at % 10**9 // scale, len(frame), len(frame)) + frame
    return out


def pcapng(frames):
    def block(kind, body):
        body += bytes(-len(body) % 4)
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    out = block(0x0a0d0d0a, struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1))
    out += block(1, struct.pack("<HHI", ETHERNET, 0, 65536) + struct.pack("<HHB3x", 9, 1, 9) + bytes(4))
    for at, frame in frames:
        out += block(6, struct.pack("<IIIII", 0, at >> 32, at & 0xffffffff, len(frame), len(frame)) + frame)
    return out


def with_icrc(frame):
    """The frame (RoCE v2 over IPv4) with lengths, header checksum and ICRC made right."""
    b = bytearray(frame)
    b[16:18] = struct.pack(">H", len(b) - 14)
    b[38:40] = struct.pack(">H", len(b) - 34)
    b[24:26] = bytes(2)
    total = sum(struct.unpack(">10H", b[14:34]))
    total = (total & 0xffff) + (total >> 16)
    total = (total & 0xffff) + (total >> 16)
    b[24:26] = struct.pack(">H", ~total & 0xffff)
    masked = bytearray(b"\xff" * 8 + b[14:-4])
    for at in (1, 8, 10, 11, 26, 27, 20 + 8 + 4):
        masked[8 + at] = 0xff
    b[-4:] = struct.pack("<I", zlib.crc32(bytes(masked)))
    return bytes(b)


def opcode(frame):
    return frame[BTH] if frame[12:14] == b"\x08\x00" and frame[36:38] == b"\x12\xb7" else None


# ---------------------------------------------------------------- from the captures

def wire_seeds():
    seen = set()
    for path in sorted(TRACES.glob("**/*.pcap")):
        for _, frame in read_capture(path):
            kind = (frame[12:14], opcode(frame), len(frame) % 4, len(frame) > 1000)
            if kind not in seen:
                seen.add(kind)
                yield f"{path.stem}_{len(seen)}", frame
    yield "pause", bytes.fromhex("0180c2000001 020000000001 8808 0001 ffff") + bytes(42)
    yield "priority_pause", bytes.fromhex("0180c2000001 020000000001 8808 0101 00ff") + b"\x12\x34" * 8 + bytes(26)
    yield "gid", b"fd00::1:2"
    yield "mac", b"02:00:00:00:00:01"


def captures():
    for path in sorted(TRACES.glob("**/*.pcap")):
        frames = [(at, f) for at, f in read_capture(path) if len(f) < 1200]
        yield path.stem, frames[:8]


def capture_seeds():
    for name, frames in captures():
        yield name, pcap(frames)
        yield name + "_ng", pcapng(frames[:6])
    yield "packed", gzip.compress(pcap(frames[:6], nanoseconds=False), mtime=0)
    yield "with_fcs", pcap([(at, f + struct.pack("<I", zlib.crc32(f))) for at, f in frames[:4]], link_type=0x24000001)


def cm_seeds():
    mads = [frame[BTH + 12 + 8:-4] for _, frame in read_capture(TRACES / "cm_rping_800B.pcap")
            if opcode(frame) == 0x64 and len(frame) > 300]
    for i, datagram in enumerate(mads):
        yield f"mad_{i}", datagram
    # settings, then: listen, and each datagram as one of a peer
    talk = bytes([10, 3, 5, 9, 0])
    for datagram in mads:
        talk += bytes([2, 0, 1]) + struct.pack(">H", 256) + datagram
    yield "talk", talk


def link_seeds():
    """Units of LLDP with the TLVs of DCBX, queries and reports of IGMP and MLD, and conversations of them."""
    def tlv(kind, value):
        return struct.pack(">H", kind << 9 | len(value)) + value

    def checksum(data):
        total = sum(struct.unpack(f">{len(data) // 2}H", data))
        while total >> 16:
            total = (total & 0xffff) + (total >> 16)
        return struct.pack(">H", ~total & 0xffff)

    mac, table = bytes.fromhex("020000000002"), bytes.fromhex("00010000 3c28000000000000 0202000000000000")
    unit = tlv(1, b"\4" + mac) + tlv(2, b"\3" + mac) + tlv(3, b"\0\x79") + tlv(5, b"peer") + tlv(7, bytes([0, 128, 0, 128]))
    for subtype, value in ((9, b"\x80" + table), (10, b"\0" + table), (11, b"\x88\x08"), (12, bytes.fromhex("00 618915 6412b7"))):
        unit += tlv(127, bytes.fromhex("0080c2") + bytes([subtype]) + value)
    unit += tlv(127, bytes.fromhex("00120f 04 05ee")) + tlv(0, b"")
    gone = tlv(1, b"\4" + mac) + tlv(2, b"\3" + mac) + tlv(3, b"\0\0") + tlv(0, b"")
    yield "unit", unit

    def igmp(body, to):
        body = body[:2] + checksum(body[:2] + bytes(2) + body[4:]) + body[4:]
        head = bytes.fromhex("46c0") + struct.pack(">H", 24 + len(body)) + bytes.fromhex("00004000 0102 0000 0a000009") + to + bytes.fromhex("94040000")
        return head[:10] + checksum(head) + head[12:] + body

    def mld(body, to):
        source = bytes.fromhex("fe80000000000000000000fffe000009")
        pseudo = source + to + struct.pack(">II", len(body), 58)
        body = body[:2] + checksum(pseudo + body) + body[4:]
        head = bytes.fromhex("60000000") + struct.pack(">H", 8 + len(body)) + b"\0\1" + source + to
        return head + bytes.fromhex("3a00050200000100") + body

    all4, all6 = bytes([224, 0, 0, 1]), bytes.fromhex("ff020000000000000000000000000001")
    queries = [(2, igmp(bytes.fromhex("1164000000000000 027d0000"), all4)), (2, igmp(bytes.fromhex("1164000000000000"), all4)),
               (2, igmp(bytes.fromhex("16000000e0000003"), bytes([224, 0, 0, 3]))),
               (3, mld(bytes.fromhex("820000002710 0000") + bytes(16) + bytes.fromhex("027d0000"), all6)),
               (3, mld(bytes.fromhex("820000002710 0000") + bytes(16), all6))]

    def heard(op, kind, rest):
        return bytes([op, kind, 1, 0]) + struct.pack(">H", len(rest)) + rest

    wait = struct.pack(">H", 300)
    yield "lldp", bytes([29, 0, 3, 4]) + heard(2, 1, unit) + b"\0" + wait + heard(2, 1, unit[:-2] + tlv(6, b"x") + unit[-2:]) + \
        b"\1\3abc" + heard(2, 1, gone) + b"\0" + wait
    end = struct.pack(">H", 0x8000) + mac + struct.pack(">HHHB3x", 9, 0x80, 1, 0x3d)
    lacpdu = b"\1\1" + b"\1\x14" + end + b"\2\x14" + end + b"\3\x10" + bytes(14) + bytes(52)
    marker = b"\2\1" + b"\1\x16" + bytes(20) + bytes(92)
    yield "lacp", b"\1" + b"\0\1\1\1" + b"\1\1\1\1" + b"".join(
        bytes([port, 2, len(unit)]) + unit + b"\0\0" + wait for unit in (lacpdu, marker, lacpdu) for port in (0, 1))
    for version in range(3):
        joins = bytes([0, 1, 1, 3, 0, 1, 0, 2]) + b"".join(heard(3, kind, q) + b"\2" + wait for kind, q in queries)
        yield f"groups_{version}", bytes([0, version, 1]) + joins + bytes([1, 1, 1, 3]) + b"\6\2" + wait + b"\7\2" + wait


def plan_seeds():
    for path in sorted((ROOT / "testbenches/system/faults/plans").glob("*.toml")):
        yield path.stem, path.read_bytes()


# ---------------------------------------------------------------- cases

def changed(frame, at, value):
    return frame[:at] + value + frame[at + len(value):]


def with_dest_qp(frame, number):
    return changed(frame, BTH + 5, struct.pack(">I", number)[1:])


def with_psn(frame, psn):
    return changed(frame, BTH + 9, struct.pack(">I", psn & 0xffffff)[1:])


def psn_of(frame):
    return int.from_bytes(frame[BTH + 9:BTH + 12], "big")


def replay_cases():
    """Captures that the replay once could not take."""
    send = [(at, f) for at, f in read_capture(TRACES / "rc_send_mtu1024_4096B.pcap") if opcode(f) is not None]
    short = [(at, with_icrc(f[:BTH + 12 + 64] + bytes(4)) if len(f) > 200 else f) for at, f in send[:24]]
    hole = [(at, with_icrc(with_psn(f, psn_of(f) + 0x10000)) if i > 8 else f) for i, (at, f) in enumerate(short)]
    yield "hole_of_65536_packets", pcap(hole)
    numbers = {}
    for number in (0, 1, 0x200, 0x207, 0xffffff):
        def renumbered(f):
            first = numbers.setdefault(number, f[BTH + 5:BTH + 8])
            return with_icrc(with_dest_qp(f, number)) if f[BTH + 5:BTH + 8] == first else f
        yield f"queue_pair_{number:#x}", pcap([(at, renumbered(f)) for at, f in short])
    for name, mac in (("zero", bytes(6)), ("multicast", bytes.fromhex("01005e000001")), ("broadcast", b"\xff" * 6)):
        yield f"destination_{name}", pcap([(at, mac + f[6:]) for at, f in short])
    read = [(at, f) for at, f in read_capture(TRACES / "rc_read_mtu1024_6000B.pcap") if opcode(f) is not None]
    first = next(i for i, (_, f) in enumerate(read) if opcode(f) == 0x0c)
    last = next(i for i, (_, f) in enumerate(read) if i > first and opcode(f) == 0x0f)
    one = read[first:last + 1]
    yield "one_read", pcap(one)
    # The same key again, where an address and its length go beyond the end of all addresses.
    packets = psn_of(one[-1][1]) + 1 - psn_of(one[0][1])
    again = []
    for at, f in one:
        f = with_psn(f, psn_of(f) + packets)
        if opcode(f) == 0x0c:
            f = changed(f, BTH + 12, struct.pack(">Q", 2**64 - 0x20))
        again.append((at + 10**7, with_icrc(f)))
    yield "read_beyond_the_end_of_addresses", pcap(one + again)


def exchange_seeds():
    pingpong = b"0000:000011:123456:00000000000000000000ffff0a000001"
    gid = b":".join(b"%02x" % b for b in bytes(10) + b"\xff\xff\x0a\x00\x00\x01")
    perftest = b"0000:0001:000011:123456:00001000:00007f0000001000:" + gid + b":00000000:"
    yield "exchange_pingpong", "one", pingpong
    yield "exchange_pingpong", "with_its_end", pingpong + b"\0"
    yield "exchange_perftest", "destination", b"\x80" + perftest
    first = b"6.06".ljust(16, b"\0") + struct.pack(">II", 4096, 64) + b"3\0"
    text = perftest.ljust(108, b"\0")
    report = struct.pack(">QQddd", 64, 1000, 1.0, 1.0, 1.0)
    structure = struct.pack(">IIIIIxxxxQ16sII", 0, 1, 0x11, 0x123456, 0x1000, 0x7f0000001000,
                            bytes(10) + b"\xff\xff\x0a\x00\x00\x01", 0, 0)
    yield "exchange_perftest", "over_tcp", b"\x09" + first + text * 2 + report + text
    yield "exchange_perftest", "over_rdma_cm", b"\x0a" + first + structure * 2 + report + structure


# ---------------------------------------------------------------- attacks (attack.cpp, attack_work.cpp)

RC, UC, UD, XRC = 0, 3, 4, 5
SEND, WRITE, READ, SWAP, ADD = 0, 2, 4, 6, 7  # post_verb


def actors(*services, receives=4):
    return bytes([len(services) - 1]) + b"".join(bytes([s, receives]) for s in services)


def verb(actor, which, length_code=4, key=31):
    return bytes([9, actor, which, *([] if which in (SWAP, ADD) else [length_code]), key, 0])


def rest(tenths_us):
    """In tenths of a microsecond up to 3.1, then in microseconds up to 32."""
    return bytes([14, 0, tenths_us if tenths_us < 32 else 31 + min(32, tenths_us // 10)])


def request(actor, operation, length_code=4, key=31, more=0):
    return bytes([5, 1, actor, operation, 0, length_code, key, more, 0])


def peers_request(actor, operation, length_code=4, key=31, more=0):
    """As request(), for work_requests, whose peer has no plain frames."""
    return bytes([5, actor, operation, 0, length_code, key, more, 0])


def answer_read(actor, which):
    return bytes([6, actor, which, 0]) + bytes(1)


def acknowledge(actor, which, syndrome=0):
    return bytes([7, actor, which, syndrome, 0, 0])


def words(actor, opcode_code, segments):
    """segments: (bytes below 64, number of the key); READ: 7, SEND: 4 of the opcodes in attack_work.cpp"""
    out = bytes([0, actor, opcode_code, 0] + ([31] if opcode_code == 7 else []) + [len(segments)])
    for length, key in segments:
        out += bytes([0x61, length, key, 0])
    return out


def attack_seeds():
    for name, service in (("rc", RC), ("uc", UC), ("ud", UD), ("xrc", XRC)):
        requests = b"".join(request(0, op) for op in (4, 10, 12, 19, 20, 0, 1, 2, 6, 8, 11))
        yield "frames_into_port", name, actors(service) + requests + rest(320)
        yield "frames_into_port", name + "_bad_key", actors(service) + request(0, 10, key=9) + rest(100)
        sends = b"".join(verb(0, which) for which in (SEND, WRITE, READ, SWAP, ADD)) + rest(300)
        answers = b"".join(acknowledge(0, i) for i in range(5)) + answer_read(0, 0) + rest(300)
        yield "frames_into_port", name + "_sends", actors(service) + sends + answers
        yield "work_requests", name + "_sends", actors(service) + sends + answers
        work = b"".join(words(0, code, [(40, k) for k in range(3)]) for code in range(18))
        yield "work_requests", name + "_descriptors", actors(service) + work + rest(320)
    # Answers of READs wait for the translation of what another queue pair sends, when their own one stops.
    for count in (2, 4):
        for ahead in (6, 12, 18, 24, 30):
            reads = words(0, 7, [(32, 31)]) * 3 + rest(200)
            busy = b"".join(words(1, 4, [(16, 1 + (i + k) % 5) for k in range(7)]) for i in range(count)) + rest(ahead)
            answers = b"".join(answer_read(0, i) for i in range(3)) + peers_request(0, 10, key=9)
            yield "work_requests", f"stops_with_answers_waiting_{count}_{ahead}", \
                actors(RC, RC) + reads + busy + answers + rest(320)
    # Objects, then: each command with the first mailbox, of the first object.
    commands = b"".join(bytes([2, 0, which, 0, 0, 0, 1]) for which in range(68))
    yield "commands", "each_with_objects", bytes([1]) + commands[:7 * 34]
    yield "commands", "each_with_objects_2", bytes([1]) + commands[7 * 34:]
    yield "commands", "each_before_bring_up", bytes([2]) + commands[:7 * 40]
    # A context that was read is written back, changed.
    for name, query, write in (("cq", 20, 18), ("qp", 30, 22), ("srq", 45, 43), ("mpt", 10, 9), ("eq", 17, 15)):
        number = {"qp": 0, "cq": 2, "mpt": 3, "srq": 4, "eq": 130}[name]
        back = bytes([2, 0, query, number, 0, 0, 0]) + bytes([0, 0, 0, 8, 2, 0xff, 0xff])
        yield "commands", "context_of_" + name, bytes([1]) + back + bytes([2, 0, write, number, 0, 0, 0]) * 2


def main():
    folder = pathlib.Path(sys.argv[1])
    seeds = [("wire_decode", n, b) for n, b in wire_seeds()]
    seeds += [("pcapng", n, b) for n, b in capture_seeds()]
    seeds += [("capture_to_plan", n, b) for n, b in capture_seeds()]
    seeds += [("capture_to_plan", n, b) for n, b in replay_cases()]
    # To send again what stands in a hole for 65 536 packets takes seconds.
    seeds += [("replay", n, b) for n, b in replay_cases() if not n.startswith("hole")]
    seeds += [("replay", n, pcap(frames)) for n, frames in captures()]
    seeds += [("cm_decode", n, b) for n, b in cm_seeds()]
    seeds += [("link_protocols", n, b) for n, b in link_seeds()]
    seeds += [("fault_plan", n, b) for n, b in plan_seeds()]
    seeds += list(exchange_seeds()) + list(attack_seeds())
    for target, name, content in seeds:
        (folder / target).mkdir(parents=True, exist_ok=True)
        (folder / target / name).write_bytes(content)


if __name__ == "__main__":
    main()
