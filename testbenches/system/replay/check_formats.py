#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captures as other tools and places make them: link types, interfaces, tags, copies, streams, and broken files.

usage: check_formats.py CASE PROGRAM TRACES
"""
import gzip
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

from check_replay import HOSTS, expect, icrc_right, records, roce
from check_report import Replay, changed, sender, write_pcap

ETHERNET, RAW, SLL, SLL2, USB = 1, 101, 113, 276, 189
READ = "rc_read_mtu1024_6000B"  # 86 frames, 84 of RoCE; host A answers 72
ANSWERS = 72


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def sll(frame, capturing):
    """As a cooked capture on `capturing` has it (tcpdump.org, LINKTYPE_LINUX_SLL)."""
    kind = 4 if sender(frame) == capturing else 0
    return struct.pack(">HHH6s2x", kind, 1, 6, frame[6:12]) + frame[12:]


def sll2(frame, capturing):
    kind = 4 if sender(frame) == capturing else 0
    return frame[12:14] + struct.pack(">HIHBB6s2x", 0, 3, 1, kind, 6, frame[6:12]) + frame[14:]


def raw(frame):
    return frame[14:]


def classic(path, link, frames, order="<", magic=0xA1B23C4D, snap=262144):
    unit = 1 if magic == 0xA1B23C4D else 1000
    out = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, link)
    for at, frame in frames:
        out += struct.pack(order + "IIII", at // 10**9, at % 10**9 // unit, len(frame), len(frame)) + frame
    open(path, "wb").write(out)
    return path


def block(kind, body, order="<"):
    return struct.pack(order + "II", kind, len(body) + 12) + body + struct.pack(order + "I", len(body) + 12)


def option(code, value, order="<"):
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order="<"):
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(link, options=b"", order="<", snap=262144):
    return block(1, struct.pack(order + "HHI", link, 0, snap) + options, order)


def packet(number, units, frame, order="<", options=b""):
    return block(6, struct.pack(order + "IIIII", number, units >> 32, units & 0xFFFFFFFF, len(frame), len(frame)) + frame
                 + bytes(-len(frame) % 4) + options, order)


def tshark_agrees(path, frames):
    """That the file we made is what we mean is for another program to say."""
    text = subprocess.run(["tshark", "-r", path, "-T", "fields", "-e", "infiniband.bth.opcode"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60).stdout.decode()
    expect(sum(bool(line) for line in text.splitlines()) == frames, path + ": tshark sees other RoCE frames")


def check_answers(replay, where, answers=ANSWERS, packets=84):
    expect(replay.report is not None, where + ": " + replay.error)
    r = replay.report
    expect(r["roce_frames"] == packets, "%s: %d RoCE frames" % (where, r["roce_frames"]))
    expect((r["expected_answers"], r["matched_answers"]) == (answers, answers),
           "%s: %d of %d answers" % (where, r["matched_answers"], r["expected_answers"]))
    expect(r["differences"] == [] and replay.status == 0, where + ": " + str(r["differences"][:3]))


def check_links(program, traces, directory):
    """Cooked captures on either host and raw IP: every answer is found."""
    frames = records(os.path.join(traces, READ + ".pcap"))
    ip = [(at, f) for at, f in frames if roce(f)]
    for name, link, make in (("sll", SLL, sll), ("sll2", SLL2, sll2)):
        for capturing in HOSTS:
            path = classic(os.path.join(directory, name + ".pcap"), link, [(at, make(f, capturing)) for at, f in frames])
            tshark_agrees(path, 84)
            for hold in HOSTS:
                got = Replay(program, directory, [path, "--hold", hold])
                check_answers(got, "%s on %s, %s held" % (name, capturing, hold), ANSWERS if hold == HOSTS[0] else 12)
                expect(got.report["frame_notes"]["cooked"] == 86 and got.report["frame_notes"]["invented_macs"] == 0, str(got.report["frame_notes"]))
                expect("86 frames were captured cooked" in got.text, got.text[-800:])
        # Only what host B sent: of host A no frame tells the address, but where it captured.
        one = [(at, make(f, HOSTS[0])) for at, f in ip if sender(f) == HOSTS[1]]
        got = Replay(program, directory, [classic(path, link, one)])
        expect(got.report["injected"] == 12 and got.report["frame_notes"]["invented_macs"] == 12, str(got.report["frame_notes"]))
    path = classic(os.path.join(directory, "raw.pcap"), RAW, [(at, raw(f)) for at, f in ip])
    tshark_agrees(path, 84)
    got = Replay(program, directory, [path])
    check_answers(got, "raw IP")
    expect(got.report["held"] == "02:00:0a:00:00:01", got.report["held"])
    check_answers(Replay(program, directory, [path, "--hold", "10.0.0.1"]), "raw IP, by address")
    six = [(at, raw(f)) for at, f in records(os.path.join(traces, "rc_send_ipv6_mtu256_1500B.pcap"))]
    check_answers(Replay(program, directory, [classic(path, 229, six)]), "raw IPv6", 70, 140)
    for link, word in ((USB, "USB_LINUX"), (147, "147")):
        got = Replay(program, directory, [classic(path, link, frames)])
        expect(got.status == 2 and word in got.error and len(got.error.splitlines()) == 1, got.error)


def check_interfaces(program, traces, directory):
    """pcapng: interfaces of several link types, time units and snapshot lengths, both byte orders, two sections, FCS."""
    frames = records(os.path.join(traces, READ + ".pcap"))
    path = os.path.join(directory, "mixed.pcapng")
    for order in "<>":
        out = section(order) + interface(ETHERNET, option(9, b"\x09", order), order)
        out += interface(SLL, option(9, b"\x06", order), order, 2000) + interface(SLL2, option(9, b"\x9e", order), order)
        out += interface(RAW, option(9, b"\x0a", order) + option(14, struct.pack(order + "q", 1000), order), order)
        out += interface(USB, b"", order)
        for i, (at, f) in enumerate(frames):
            makes = ((0, at, f), (1, at // 1000, sll(f, HOSTS[0])), (2, (at // 10**9 << 30) + (at % 10**9 << 30) // 10**9, sll2(f, HOSTS[1])),
                     (3, (at - 1000 * 10**9) * 10, raw(f)))
            out += packet(*(makes[i % 4] if roce(f) else makes[0]), order)
            if i == 40:  # another section begins, whose interfaces are counted anew; one of another kind is in between
                out += packet(4, at // 1000, b"\0" * 64, order) + section(order) + interface(ETHERNET, option(9, b"\x09", order), order)
                out += interface(SLL, b"", order) + interface(SLL2, option(9, b"\x9e", order), order)
                out += interface(RAW, option(9, b"\x0a", order) + option(14, struct.pack(order + "q", 1000), order), order)
                out += block(0x0BAD, b"skip", order) + block(5, b"\0" * 12, order)
        open(path, "wb").write(out)
        tshark_agrees(path, 84)
        got = Replay(program, directory, [path])
        check_answers(got, "interfaces, order " + order)
        expect(got.report["frame_notes"]["interfaces"] == 9 and got.report["rejected"]["link type not read: USB_LINUX"] == 1, str(got.report))
        expect(got.report["frame_notes"]["start_ns"] == frames[0][0] and not got.report["frame_notes"]["damage"], str(got.report["frame_notes"]))
        # Whatever the unit, the times of questions and answers are those of the capture, to a microsecond.
        plain = Replay(program, directory, [os.path.join(traces, READ + ".pcap")])
        for a, b in zip(got.report["latency_compared"], plain.report["latency_compared"]):
            expect(a["count"] == b["count"] and abs(a["captured"]["max_ps"] - b["captured"]["max_ps"]) < 2_000_000, "%s and %s" % (a, b))
    # Made by another program.
    for name, make in (("a", lambda f: sll(f, HOSTS[0])), ("b", lambda f: f)):
        classic(os.path.join(directory, name + ".pcap"), SLL if name == "a" else ETHERNET,
                [(at, make(f)) for i, (at, f) in enumerate(frames) if (i % 2 == 0) == (name == "a")])
    merged = os.path.join(directory, "merged.pcapng")
    subprocess.run(["mergecap", "-w", merged, os.path.join(directory, "a.pcap"), os.path.join(directory, "b.pcap")], check=True, timeout=60)
    check_answers(Replay(program, directory, [merged]), "mergecap")
    # FCS by the interface and by the frame, right and wrong.
    out = section() + interface(ETHERNET, option(9, b"\x09") + option(13, b"\x04"))
    for i, (at, f) in enumerate(frames):
        good = struct.pack("<I", zlib.crc32(f))
        out += packet(0, at, f + (good if i else bytes(4)))
    open(path, "wb").write(out)
    got = Replay(program, directory, [path])
    expect(got.report["rejected"].get("wrong FCS") == 1 and got.report["matched_answers"] == ANSWERS, str(got.report["rejected"]))
    out = section() + interface(ETHERNET, option(9, b"\x09"))
    for at, f in frames:
        out += packet(0, at, f + struct.pack("<I", zlib.crc32(f)), "<", option(2, struct.pack("<I", 4 << 5)))
    open(path, "wb").write(out)
    check_answers(Replay(program, directory, [path]), "FCS by the frame")
    out = section() + interface(ETHERNET) + b"".join(block(3, struct.pack("<I", len(f)) + f + bytes(-len(f) % 4)) for _, f in frames)
    open(path, "wb").write(out)
    check_answers(Replay(program, directory, [path]), "simple packets without times")


def tagged(frame, *tags):
    return frame[:12] + b"".join(struct.pack(">HH", kind, vid) for kind, vid in tags) + frame[12:]


def check_tags(program, traces, directory):
    """802.1ad and QinQ: the adapter sees the inner tag, the others are taken off, and the report says so."""
    frames = records(os.path.join(traces, READ + ".pcap"))
    path, out = os.path.join(directory, "tags.pcap"), os.path.join(directory, "out.pcap")
    for tags, inner, stripped in ((((0x8100, 7),), 7, 0), (((0x88A8, 100), (0x8100, 7)), 7, 86), (((0x8100, 100), (0x8100, 7)), 7, 86),
                                  (((0x9100, 1), (0x88A8, 2), (0x8100, 3)), 3, 86), (((0x88A8, 100),), None, 86)):
        write_pcap(path, [(at, tagged(f, *tags)) for at, f in frames])
        tshark_agrees(path, 84)
        got = Replay(program, directory, [path, "--output", out, "--overwrite"])
        check_answers(got, str(tags))
        expect(got.report["frame_notes"]["outer_tags"] == stripped, str(got.report["frame_notes"]))
        expect(("%d frames had outer VLAN tags" % stripped in got.text) == (stripped != 0), got.text[-800:])
        for _, f in records(out):
            vid = struct.unpack(">H", f[14:16])[0] & 0xFFF if f[12:14] == b"\x81\x00" else None
            expect(vid == inner and f[12:14] not in (b"\x88\xa8", b"\x91\x00"), "%s: %s on the wire" % (tags, vid))


def rewritten(frame, ttl=None, macs=None):
    frame = bytearray(frame)
    if macs:
        frame[0:6], frame[6:12] = macs
    if ttl:
        frame[22] = ttl
        frame[24:26] = b"\0\0"
        total = sum(struct.unpack(">10H", bytes(frame[14:34])))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        frame[24:26] = struct.pack(">H", total ^ 0xFFFF)
    return bytes(frame)


def check_copies(program, traces, directory):
    """What mirror ports add is told apart from what a host sends again."""
    path = os.path.join(directory, "copies.pcap")
    frames = [(at, f) for at, f in records(os.path.join(traces, READ + ".pcap")) if roce(f)]
    router = [mac("52:54:00:00:00:f1"), mac("52:54:00:00:00:f2")]
    host = {HOSTS[i]: mac(HOSTS[i]) for i in (0, 1)}

    def at_a(f):  # the link of host A and the router's port there, before or behind the hop
        mine = sender(f) == HOSTS[0]
        return rewritten(f, 64 if mine else 63, (router[0], host[HOSTS[0]]) if mine else (host[HOSTS[0]], router[0]))

    def at_b(f):
        mine = sender(f) == HOSTS[1]
        return rewritten(f, 64 if mine else 63, (router[1], host[HOSTS[1]]) if mine else (host[HOSTS[1]], router[1]))

    cases = {
        "same": lambda at, f: [(at, f), (at + 900, f)],
        "other tag": lambda at, f: [(at, tagged(f, (0x8100, 5))), (at + 1500, tagged(f, (0x8100, 6)))],
        "tag and none": lambda at, f: [(at, f), (at + 15000, tagged(f, (0x8100, 6)))],
        "three times": lambda at, f: [(at, f), (at + 400, f), (at + 700, rewritten(f, 12))],
        "routed": lambda at, f: [(at, at_a(f)), (at + 2000, at_b(f))] if sender(f) == HOSTS[0] else [(at, at_b(f)), (at + 2000, at_a(f))],
    }
    for name, make in cases.items():
        write_pcap(path, sorted((c for at, f in frames for c in make(at, f)), key=lambda c: c[0]))
        for hold, answers in (("10.0.0.1", ANSWERS), ("10.0.0.2", 12)):
            got = Replay(program, directory, [path, "--hold", hold])
            check_answers(got, name + ", " + hold, answers)
            copies = got.report["frames"] - 84
            expect(got.report["frame_notes"]["copies"] == copies and "%d frames are copies" % copies in got.text, name)
    # One link has seen all, the other nearly all; a few only the second one has.
    missed = 0
    out = []
    for i, (at, f) in enumerate(frames):
        out += [(at + 2000, at_b(f))] if i in (10, 30) else [(at, at_a(f))] if i % 9 == 0 else [(at, at_a(f)), (at + 2000, at_b(f))]
        missed += i in (10, 30)
    write_pcap(path, out)
    got = Replay(program, directory, [path, "--hold", "10.0.0.1"])
    check_answers(got, "seen on one link only")
    expect(got.report["frame_notes"]["readdressed"] == missed, str(got.report["frame_notes"]))
    # Real retransmissions: none is a copy. Every frame twice: as many as the capture has.
    for name in ("rc_send_loss2pct_mtu1024_8000B", "rc_send_loss2pct_mtu1024_8000B.rx"):
        source = os.path.join(traces, name + ".pcap")
        plain = Replay(program, directory, [source])
        expect(plain.report["frame_notes"]["copies"] == 0, name + ": a retransmission is no copy")
        lossy = records(source)
        write_pcap(path, [c for at, f in lossy for c in ((at, f), (at + 700, f))])
        got = Replay(program, directory, [path])
        expect(got.report["frame_notes"]["copies"] == len(lossy), "%s: %s" % (name, got.report["frame_notes"]))
        for key in ("expected_answers", "matched_answers", "missing_answers", "extra_answers", "injected"):
            expect(got.report[key] == plain.report[key], "%s: %s: %d and %d" % (name, key, got.report[key], plain.report[key]))
    # A packet again within two microseconds, behind a NAK that asks for it.
    sends = [(at, f) for at, f in records(os.path.join(traces, "rc_send_mtu1024_4096B.pcap"))]
    first = next(i for i, (_, f) in enumerate(sends) if roce(f)[2][0] == 0x02)  # SEND Last
    ack = next(f for _, f in sends if roce(f)[2][0] == 0x11 and roce(f)[2][9:12] == roce(sends[first][1])[2][9:12])

    def refuse(body):
        body[12] = 0x60

    at, f = sends[first]
    again = [(at + 800, changed(ack, refuse)), (at + 1600, f)]
    write_pcap(path, sends[:first + 1] + again + sends[first + 1:])
    got = Replay(program, directory, [path])
    expect(got.report["frame_notes"]["copies"] == 0, "a packet that was asked for again is no copy")
    write_pcap(path, sends[:first + 1] + again[1:] + sends[first + 1:])
    got = Replay(program, directory, [path])
    expect(got.report["frame_notes"]["copies"] == 1, "a packet that nobody asked for again is a copy")


def check_streams(program, traces, directory):
    """Standard input, FIFOs and process substitution, packed or not; time units and byte orders of classic files."""
    source = os.path.join(traces, READ + ".pcap")
    data, frames = open(source, "rb").read(), records(source)
    for content in (data, gzip.compress(data)):
        check_answers(Replay(program, directory, ["-"], input=content), "standard input")
    with open(source, "rb") as file:
        check_answers(Replay(program, directory, ["-"], stdin=file), "standard input, a file")
    got = Replay(program, directory, ["-"], stdin=subprocess.DEVNULL)
    expect((got.status, got.error) == (2, "rnic: standard input: is empty\n"), got.error)
    fifo = os.path.join(directory, "fifo")
    os.mkfifo(fifo)
    feeder = subprocess.Popen(["dd", "if=" + source, "of=" + fifo, "bs=1000", "status=none"])
    check_answers(Replay(program, directory, [fifo]), "FIFO")
    expect(feeder.wait(timeout=20) == 0, "the FIFO was not read to its end")
    text = subprocess.run(["bash", "-c", '"$0" replay --quiet <(gzip -c "$1")', program, source], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120)
    expect(text.returncode == 0 and b"matched 72 " in text.stdout, text.stderr.decode())
    path = os.path.join(directory, "c.pcap")
    for order in "<>":
        for magic in (0xA1B2C3D4, 0xA1B23C4D):
            check_answers(Replay(program, directory, [classic(path, ETHERNET, frames, order, magic)]), "%s %x" % (order, magic))


def check_icrc(program, traces, directory):
    """--ignore-icrc takes what an anonymiser or an offload left, and makes it right on the wire."""
    frames = records(os.path.join(traces, READ + ".pcap"))
    path, out = os.path.join(directory, "anonymous.pcap"), os.path.join(directory, "out.pcap")

    def anonymous(f):  # other addresses; neither the header's checksum nor the ICRC follows
        if not roce(f):
            return f
        f = bytearray(f)
        for at in (26, 30):
            f[at:at + 3] = b"\xac\x10\x05"
        return bytes(f)

    write_pcap(path, [(at, anonymous(f)) for at, f in frames])
    got = Replay(program, directory, [path])
    expect(got.report["rejected"].get("IPv4 header checksum is wrong") == 84, str(got.report["rejected"]))
    got = Replay(program, directory, [path, "--ignore-icrc", "--output", out, "--hold", "172.16.5.1"])
    check_answers(got, "anonymous")
    notes = got.report["frame_notes"]
    expect((notes["icrc_made_new"], notes["checksum_made_new"]) == (84, 84), str(notes))
    expect("84 frames had a wrong ICRC" in got.text and "84 frames had a wrong IPv4 header checksum" in got.text, got.text[-900:])
    expect(all(icrc_right(*roce(f)) for _, f in records(out)), "wrong ICRC on the wire")
    some = [(at, f[:-4] + bytes(4) if i % 3 == 0 and roce(f) else f) for i, (at, f) in enumerate(frames)]
    write_pcap(path, some)
    spoiled = sum(i % 3 == 0 and roce(f) is not None for i, (_, f) in enumerate(frames))
    got = Replay(program, directory, [path, "--expect", "none"])
    expect(got.report["rejected"]["bad icrc"] == spoiled, str(got.report["rejected"]))
    got = Replay(program, directory, [path, "--ignore-icrc"])
    check_answers(got, "some ICRCs")
    expect(got.report["frame_notes"]["icrc_made_new"] == spoiled, str(got.report["frame_notes"]))


def check_broken(program, traces, directory):
    """Files that end anywhere, lengths and times that cannot be, and what is no file: a report or one line, never more."""
    source = os.path.join(traces, "rc_atomic_fetchadd.pcap")
    frames, data = records(source), open(source, "rb").read()
    ng = section() + interface(ETHERNET, option(9, b"\x09")) + b"".join(packet(0, at, f) for at, f in frames)
    path = os.path.join(directory, "broken")

    def try_it(content, where, statuses=(0, 1, 2)):
        open(path, "wb").write(content)
        got = Replay(program, directory, [path])
        expect(got.status in statuses, "%s: exit status %d: %s" % (where, got.status, got.error))
        if got.status == 2:
            expect(len(got.error.splitlines()) == 1 and got.error.startswith("rnic: " + path), where + ": " + got.error)
        return got

    for n in list(range(0, 120)) + list(range(120, len(ng), 97)):
        got = try_it(ng[:n], "pcapng cut at %d" % n)
        if got.status != 2 and n < len(ng):
            whole = n >= 48 + 20 and any(n == end for end in block_ends(ng))
            expect(bool(got.report["frame_notes"]["damage"]) != whole, "cut at %d: %s" % (n, got.report["frame_notes"]))
    packed = gzip.compress(data)
    for n in (1, 5, 11, len(packed) // 2, len(packed) - 9, len(packed) - 1):
        try_it(packed[:n], "gzip cut at %d" % n)
    spoiled = bytearray(packed)
    spoiled[len(spoiled) // 2] ^= 0xFF
    try_it(bytes(spoiled), "gzip with a wrong byte")
    head = section() + interface(ETHERNET)
    at, f = frames[0]
    for name, tail in (("interface that is not there", packet(7, 1, f)), ("packet without an interface", b""), ("length 0", struct.pack("<II", 6, 0)),
                       ("length of 4 GB", struct.pack("<II", 6, 0xFFFFFFFC)), ("length that is odd", struct.pack("<II", 6, 33) + bytes(25)),
                       ("two lengths", packet(0, 1, f)[:-4] + bytes(4)), ("packet longer than its block", block(6, struct.pack("<IIIII", 0, 0, 0, 500, 500))),
                       ("short interface", block(1, b"")), ("short packet", block(6, b"1234")), ("no magic", struct.pack("<III", 0x0A0D0D0A, 28, 7) + bytes(16))):
        got = try_it((section() + packet(0, 1, f)) if not tail else head + packet(0, 1, f) + tail, name)
        expect(got.status == 2 or "block at byte" in got.report["frame_notes"]["damage"], name)
    # Frames of no length, of one byte, cut ones; times that no clock has.
    zero = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1) + struct.pack("<IIII", 1, 1, 0, 0) + struct.pack("<IIII", 1, 1, 0, 900)
    got = try_it(zero + data[24:], "frames of no length", (0,))
    expect(got.report["frames"] == 32 and got.report["matched_answers"] == 15, "frames of no length")
    late = [(t, f) for t, f in zip((0, 2**63 - 1, 5, 2**64 - 1, 2**40, 0), (f for _, f in frames))] + [(2**64 - 1, f) for _, f in frames[6:]]
    for resolution in (b"\x09", b"\x00", b"\x06", b"\x7f", b"\x80", b"\xff", b"\xa3"):
        out = section() + interface(ETHERNET, option(9, resolution)) + b"".join(packet(0, t, f) for t, f in late)
        got = try_it(out, "times with resolution %s" % resolution, (0, 1))
        expect(got.report["roce_frames"] + got.report["frame_notes"]["copies"] == 30, str(got.report["frame_notes"]))
        for name in ("o.pcap", "o.pcapng"):
            done = Replay(program, directory, [path, "--output", os.path.join(directory, name), "--overwrite", "--expect", "none"])
            expect(done.status == 0, name + ": " + done.error)
            subprocess.run(["capinfos", os.path.join(directory, name)], check=True, stdout=subprocess.DEVNULL, timeout=60)
    for offset in (-2**63, 2**63 - 1, -1):
        try_it(section() + interface(ETHERNET, option(14, struct.pack("<q", offset))) + b"".join(packet(0, t, f) for t, f in frames), "offset", (0, 1))
    for bad in (directory, "/dev/null", os.path.join(directory, "none"), "/proc/self/mem"):
        got = Replay(program, directory, [bad])
        expect(got.status == 2 and len(got.error.splitlines()) == 1 and bad in got.error, bad + ": " + got.error)
    short = classic(path, ETHERNET, frames)
    cut = os.path.join(directory, "cut.pcapng")
    subprocess.run(["editcap", "-s", "40", short, cut], check=True, timeout=60)
    got = Replay(program, directory, [cut, "--expect", "none"])
    expect(got.status == 0 and got.report["frames"] == 30, "cut by editcap: " + got.error)


def block_ends(data):
    at = 0
    while at < len(data):
        at += struct.unpack_from("<I", data, at + 4)[0]
        yield at


def main():
    case, program, traces = sys.argv[1:]
    for tool in ("tshark", "mergecap", "editcap", "capinfos"):
        expect(shutil.which(tool), tool + " is needed (package tshark)")
    with tempfile.TemporaryDirectory() as directory:
        {"links": check_links, "interfaces": check_interfaces, "tags": check_tags, "copies": check_copies, "streams": check_streams,
         "icrc": check_icrc, "broken": check_broken}[case](program, traces, directory)


if __name__ == "__main__":
    main()
