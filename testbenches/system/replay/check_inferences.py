#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays captures whose content is defined, and checks what the program makes of them.

usage: check_inferences.py CASE PROGRAM TRACES
"""
import json
import mmap
import os
import resource
import shutil
import subprocess
import sys
import tempfile

from captures import *  # noqa: F403

HELD, PEER = Host(1), Host(2)
HELD_MAC = ":".join("%02x" % b for b in HELD.mac)


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


class Bench:
    def __init__(self, program, traces, directory):
        self.program, self.traces, self.directory = program, traces, directory

    def file(self, name):
        return os.path.join(self.directory, name)

    def run(self, path, *arguments, hold=HELD_MAC, status=0, gigabytes=4):
        """The report of a replay; the processor time and the memory that it took are in `seconds` and `megabytes`."""
        out = self.file("r.json")
        limit = gigabytes << 30
        more = () if hold is None else ("--hold", hold)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.Popen([self.program, "replay", path, "--expect", "none", "--json", out, "--overwrite", *more,
                                 *arguments],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        text, errors = done.communicate(timeout=250)
        expect(done.returncode == status, "%s: exit status %d: %s" % (path, done.returncode, errors.decode()[-500:]))
        if status:
            return errors.decode()
        report = json.load(open(out))
        used = resource.getrusage(resource.RUSAGE_CHILDREN)  # processor time: others may be busy on this machine
        report["seconds"] = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
        report["megabytes"], report["text"] = used.ru_maxrss / 1024, text.decode()
        expect(report["megabytes"] < limit / 2**20, "%s took %.0f MB" % (path, report["megabytes"]))
        return report

    def write(self, capture, name="c.pcap", **more):
        capture.write(self.file(name), **more)
        return self.file(name)


def connection(capture=None, **more):
    return Connection(capture or Capture(), HELD, PEER, **{"held_qpn": 0x111, "peer_qpn": 0x222, **more})


def account(report):
    """Every frame is rejected, injected or compared."""
    known = sum(report["rejected"].values()) + report["injected"] + report["expected_answers"]
    expect(known == report["frames"], "%d of %d frames accounted for" % (known, report["frames"]))


def all_matched(report, answers):
    account(report)
    expect(report["expected_answers"] == answers, "%d answers expected, not %d" % (report["expected_answers"], answers))
    expect(report["matched_answers"] == answers and report["differences"] == [], str(report["differences"][:4]))


def kinds(report):
    return [d["kind"] for d in report["differences"]]


def ranges(bench):
    """Addresses near the end of the address space do not wrap."""
    top = (1 << 64) - 0x20
    for first, second in ((0x7F1234567000, top), (0x1000, top), (top, 0x1000), (0x1000, (1 << 64) - 0x40), ((1 << 64) - 0x1000, 0x10)):
        c = connection()
        c.peer_read(first, 0x5500, content(0x20))
        c.peer_read(second, 0x5500, content(0x40))
        c.peer_read(first, 0x5500, content(0x20, 3))
        report = bench.run(bench.write(c.capture))
        account(report)
        expect(report["differences"] or (second + 0x40) >> 64 == 0, "a range that wraps was granted")
        for d in report["differences"]:
            expect(d["explanation"] not in ("", "no reason found"), str(d))
    for opcode, headers in ((SWAP, atomic((1 << 64) - 4, 0x5500, 1)), (WRITE_ONLY, reth((1 << 64) - 2, 0x5500, 8))):
        c = connection()
        c.peer_read(0x1000, 0x5500, content(0x20))
        c.from_peer(opcode, c.peer_psn, headers, content(8) if opcode == WRITE_ONLY else b"", ask=True)
        account(bench.run(bench.write(c.capture)))


def budget(bench):
    """A small capture that lacks much does not ask for much memory, and the report says what was left out."""
    capture = Capture(step=1000)
    for i in range(40):  # beginnings of WRITEs that the capture does not end, and holes of 60 000 packets in a message
        c = connection(capture, held_qpn=0x300 + i, peer_qpn=0x900 + i, held_psn=7, mtu=4096)
        c.from_held(WRITE_FIRST, 7, reth(0x1000, 0x77, 1 << 28), content(4096))
        if i % 2:
            c.from_held(WRITE_MIDDLE, 60000, b"", content(4096))
        c.peer_ack(0, psn=6)
    report = bench.run(bench.write(capture), "--timing", "fast", gigabytes=1)
    account(report)
    expect(any("spent" in note for note in report["notes"]), str(report["notes"]))
    texts = [d["explanation"] for d in report["differences"]]
    expect(not any(t in ("", "no reason found") for t in texts), str(texts[:3]))


def numbers(bench):
    """Every queue pair number serves; those that no connection can have are refused with a reason."""
    for numbers in ((0x200,), (0x207, 0x1FF, 0x208), (0x40200, 0x40000, 0x7F8), tuple(range(0xFF0, 0x1000)), (2, 0x17, 0xFFFFFE)):
        capture, answers = Capture(), 0
        for n in numbers:
            c = connection(capture, held_qpn=n, peer_qpn=n ^ 0x5000)
            for size in (10, 2000, 0):
                c.peer_send(content(size))
                c.held_ack()
                answers += 1
        all_matched(bench.run(bench.write(capture)), answers)
    for n in (0, 1, 0xFFFFFF):
        capture = Capture()
        for number in (n, 0x123):
            c = connection(capture, held_qpn=number, peer_qpn=number ^ 0x5000)
            c.peer_send(content(10))
            c.held_ack()
        report = bench.run(bench.write(capture))
        account(report)
        expect((report["matched_answers"], report["differences"]) == (1, []), str(report["differences"]))
        expect(["queue pair %#x" % n in why for why in report["rejected"]] == [True], str(report["rejected"]))


def addresses(bench):
    """Hosts that cannot be: no capture ends in an internal error."""
    group, nobody, broadcast = bytes.fromhex("01005e010203"), bytes(6), b"\xff" * 6
    strange = [Host(3, mac) for mac in (group, nobody, broadcast)] + [Host(3, ip=bytes(4)), Host(3, ip=bytes((239, 1, 2, 3)))]
    for held, peer, hold in [(h, PEER, None) for h in strange] + [(HELD, h, HELD_MAC) for h in strange] + [(strange[0], strange[1], None)]:
        c = Connection(Capture(), held, peer, 0x111, 0x222)
        c.peer_send(content(10))
        c.held_ack()
        c.held_send(content(10))
        for only in (None, "peer", "held"):
            capture = Capture()
            for at, data in c.capture.frames:
                if only is None or (data[6:12] == peer.mac) == (only == "peer"):
                    capture.add(data)
            report = bench.run(bench.write(capture), hold=None if only == "peer" else hold)
            account(report)
            for d in report["differences"]:
                expect(d["explanation"] not in ("", "no reason found"), str(d))


def reused(bench):
    """Numbers of queue pairs that come back are new connections, each with its own path MTU and sequence numbers."""
    capture, answers = Capture(), 0
    for mtu, psn, size in ((1024, 100, 3000), (256, 0x800000, 1000), (4096, 0x400000, 9000), (512, 0xFFFFF0, 20000)):
        c = connection(capture, peer_psn=psn, held_psn=psn ^ 0x345678, mtu=mtu)
        for seed in range(3):
            c.peer_send(content(size, seed))
            c.held_ack()
            c.peer_read(0x10000, 0x4400, content(size, seed))
            c.held_write(0x2000, 0x55, content(size, seed))
            c.peer_ack(seed + 1)
            answers += 1 + 2 * len(c.cut(content(size)))
    for timing in ("captured", "fast"):
        report = bench.run(bench.write(capture), "--timing", timing)
        all_matched(report, answers)
        expect([c["mtu"] for c in report["connections"]] == [1024, 256, 4096, 512], "MTUs")


def again(capture, data, at, changes):
    """A frame of a real capture once more, `at` nanoseconds, with bytes of its MAD changed: {offset: bytes}."""
    l3, udp, body = bytearray(data[14:34]), bytearray(data[34:42]), bytearray(data[42:-4])
    for offset, value in changes.items():
        body[20 + offset:20 + offset + len(value)] = value  # behind BTH and DETH
    capture.now = at
    return capture.add(data[:14] + bytes(l3 + udp + body) + icrc(l3, udp, body), 0)


REQ, REP, RTU, DREQ, DREP = 0x10, 0x13, 0x14, 0x15, 0x16
MTU_CODE = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}


def exchange(capture, mads, ids, psns, mtu, part):
    """The datagrams of rping's connection management, with other communication IDs, first PSNs and path MTU."""
    client, server = (struct.pack(">I", i) for i in ids)
    client_psn, server_psn = (p.to_bytes(3, "big") for p in psns)  # each is what the other side is to begin with
    changes = {
        REQ: {24: client, 68: server_psn, 24 + 50: bytes((MTU_CODE[mtu] << 4 | 7,))},
        REP: {24: server, 28: client, 44: client_psn},
        RTU: {24: client, 28: server}, DREQ: {24: client, 28: server}, DREP: {24: server, 28: client},
    }
    for kind in part:
        again(capture, mads[kind], capture.now + capture.step, changes[kind])


def dissected(path):
    """What tshark says of the exchanges: rows of (attribute, queue pair, PSN, path MTU); nothing without tshark."""
    if not shutil.which("tshark"):
        return None
    fields = "infiniband.mad.attributeid cm.req.localqpn cm.req.startpsn cm.req.pppmtu cm.rep.localqpn cm.rep.startpsn _ws.malformed"
    command = ["tshark", "-r", path, "-Y", "infiniband.mad", "-T", "fields"]
    for f in fields.split():
        command += ["-e", "infiniband." + f if f.startswith("cm.") else f]
    lines = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode().splitlines()
    rows = []
    for line in lines:
        attribute, req_qpn, req_psn, mtu, rep_qpn, rep_psn, bad = line.split("\t")
        expect(not bad, "tshark: " + line)
        rows.append(tuple(int(x, 16) for x in (attribute, req_qpn or rep_qpn or "0", req_psn or rep_psn or "0", mtu or "0")))
    return rows


def managed(bench):
    """The datagrams of rping's connection (real ones, with other PSNs) set up the same two queue pairs again: only they
    tell where one connection ends, for PSNs go on, go back or are the same."""
    real = open(os.path.join(bench.traces, "cm_rping_800B.pcap"), "rb").read()
    at, frames = 24, []
    while at < len(real):
        length = struct.unpack_from("<I", real, at + 8)[0]
        frames.append(real[at + 16:at + 16 + length])
        at += 16 + length
    mads = {struct.unpack_from(">H", f, 42 + 20 + 16)[0]: f for f in frames if f[12:14] == b"\x08\x00" and f[42] == 0x64}
    expect(sorted(mads) == [REQ, REP, RTU, DREQ, DREP], "exchanges of rping: %s" % sorted(mads))
    qpn = int.from_bytes(mads[REQ][42 + 20 + 24 + 32:][:3], "big")
    client, server = (Host(0, mads[k][6:12], mads[k][26:30]) for k in (REQ, REP))
    rounds = ((1024, 5000, 90000), (256, 5040, 90010), (4096, 4990, 89000), (1024, 5000, 90000), (512, 5000, 90000))
    for set_up in (True, False):
        capture, answers, rows = Capture(), {client.mac: 0, server.mac: 0}, []
        for number, (mtu, client_psn, server_psn) in enumerate(rounds):
            ids = (0x1000 + number, 0x2000 + number)
            if set_up:
                exchange(capture, mads, ids, (client_psn, server_psn), mtu, (REQ, REP, RTU))
                rows += [(REQ, qpn, server_psn, MTU_CODE[mtu]), (REP, qpn, client_psn, 0), (RTU, 0, 0, 0)]
            begin = len(capture.frames)
            c = Connection(capture, server, client, qpn, qpn, peer_psn=client_psn, held_psn=server_psn, mtu=mtu, ports=(0xC018, 0xC018))
            for seed in range(3):
                c.peer_send(content(2 * mtu + 30, seed + number))
                c.held_ack()
                c.peer_read(0x10000, 0x4400 + 256 * number, content(3 * mtu, seed + number))
                c.held_write(0x2000, 0x55, content(mtu + 9, seed + number))
                c.peer_ack(seed + 1)
            for _, f in capture.frames[begin:]:
                answers[f[6:12]] += 1
            if set_up:
                exchange(capture, mads, ids, (client_psn, server_psn), mtu, (DREQ, DREP))
                rows += [(DREQ, 0, 0, 0), (DREP, 0, 0, 0)]
        path = bench.write(capture)
        expect(dissected(path) in (None, rows), "tshark: %s" % dissected(path))
        for held in (server, client):
            for timing in ("captured", "fast"):
                report = bench.run(path, "--timing", timing, hold=":".join("%02x" % b for b in held.mac))
                if not set_up:
                    expect(report["matched_answers"] < answers[held.mac], "the exchanges tell nothing")
                    continue
                all_matched(report, answers[held.mac])
                expect([c["mtu"] for c in report["connections"]] == [r[0] for r in rounds], str(report["connections"]))
                expect(report["rejected"] == {"management datagrams (queue pair 1)": 5 * len(rounds)}, str(report["rejected"]))


def lacking(bench):
    """One packet that the file lacks, or has only the beginning of, does not end a connection."""
    def fill(c):
        c.mtu = 512
        first = c.peer_send(content(1800))
        c.held_ack()
        first += c.peer_write(0x3000, 0x4400, content(1500))
        c.held_ack()
        first += c.peer_send(content(100))
        c.held_ack()
        c.held_read(0x9000, 0x88, content(1800), 1)
        c.held_write(0x9000, 0x88, content(1800))
        c.peer_ack(2)
        c.peer_read(0x3000, 0x4400, content(1200))
        first += c.peer_write(0x3000, 0x4400, content(20))
        c.held_ack()
        first += c.peer_send(content(700))
        c.held_ack()
        return first
    whole = connection()
    fill(whole)
    total = len(whole.capture.frames)
    all_matched(bench.run(bench.write(whole.capture)), sum(f[6:12] == HELD.mac for _, f in whole.capture.frames))
    for timing in ("captured", "fast"):
        for lost in range(2, total - 3):
            report = bench.run(bench.write(whole.capture, drop=(lost,)), "--timing", timing)
            account(report)
            gone = sum(d["kind"] == "answer that did not come" for d in report["differences"])
            where = "frame %d is not there: %s" % (lost, report["differences"][:3])
            expect(report["expected_answers"] - report["matched_answers"] <= 4, where)  # what the lost frame itself held
            for d in report["differences"]:
                expect(d["explanation"] not in ("", "no reason found"), where)
            if whole.capture.frames[lost - 1][1][6:12] == PEER.mac:
                acknowledges = whole.capture.frames[lost - 1][1][42] == ACK
                expect(gone == 0 and (acknowledges or any("made up" in n for n in report["notes"])), where + str(report["notes"]))
    for snap in (80, 96, 128, 400):
        report = bench.run(bench.write(whole.capture, snap=snap))
        account(report)
        answers = sum(f[6:12] == HELD.mac for _, f in whole.capture.frames)
        expect(report["matched_answers"] == answers, "snap length %d: %s" % (snap, report["differences"][:3]))
        expect(any("cut by the capture" in n for n in report["notes"]), str(report["notes"]))


def transmissions(bench):
    """An answer belongs to one transmission of its question."""
    c = connection()
    c.peer_send(content(10))
    c.held_ack()
    lost = c.peer_send(content(20))[0]  # behind the point of capture
    again = c.from_peer(SEND_ONLY, c.peer_psn - 1, b"", content(20), ask=True, wait=5 * MS)
    answer = c.held_ack()
    late = c.peer_send(content(30))[0]  # its answer is slow: it crosses the repetition
    twice = c.from_peer(SEND_ONLY, c.peer_psn - 1, b"", content(30), ask=True, wait=5 * MS)
    first, second = c.held_ack(wait=1 * US), c.held_ack(ended=0)
    for timing in ("captured", "fast"):
        report = bench.run(bench.write(c.capture), "--timing", timing)
        account(report)
        packets = {p["frame"]: p for p in report["packets"]}
        expect(all(packets[n]["result"] in ("matched", "acknowledged together") for n in (answer, first, second)), str(packets))
        if timing == "captured":
            for question, reply in ((again, answer), (late, first), (twice, second)):
                expect(packets[question]["at_ps"] < packets[reply]["at_ps"], "frame %d answers %d" % (reply, question))
            expect(packets[first]["at_ps"] < packets[twice]["at_ps"], "the late answer is to the first transmission")
        if timing == "fast":
            continue
        extra = [d for d in report["differences"] if d["kind"] == "answer that the real host did not give"]
        expect(len(extra) == 1 and "repetition" in extra[0]["explanation"], str(report["differences"]))
    expect(lost < again, "order")

    c = connection(mtu=256)  # a READ whose second half is asked for again, and answered as Soft-RoCE does
    data = content(1000)
    c.from_peer(READ, c.peer_psn, reth(0x1000, 0x77, 1000), ask=True)
    c.answer(c.from_held, c.peer_psn, data, 1)
    c.from_peer(READ, c.peer_psn + 2, reth(0x1200, 0x77, 1000 - 512), ask=True, wait=5 * MS)
    c.from_held(READ_MIDDLE, c.peer_psn + 2, b"", data[512:768])
    c.from_held(READ_LAST, c.peer_psn + 3, aeth(0x1F, 1), data[768:])
    report = bench.run(bench.write(c.capture))
    account(report)
    expect(report["matched_answers"] == 5, str(report["differences"]))
    expect(["begun again" in d["explanation"] for d in report["differences"]] == [True], str(report["differences"]))


def no_difference(report, answers, but=()):
    account(report)
    left = [d for d in report["differences"] if not any(b in d["explanation"] for b in but)]
    expect(left == [], str(left[:4]))
    expect(report["matched_answers"] == answers, "%d answers matched, not %d" % (report["matched_answers"], answers))


def receives(bench):
    """Receives that came late, were too short, or could not be used."""
    for size in (10, 3000):
        c = connection()
        for _ in range(3):
            c.peer_send(content(size))
            c.held_ack()
        answers = 3
        for repetitions in (1, 3):
            psn = c.peer_psn
            c.peer_send(content(size))
            c.held_ack(psn=psn, syndrome=RNR | 14, ended=0)  # 1.92 ms
            answers += 2
            for _ in range(repetitions - 1):
                c.capture.now += 2 * MS
                c.peer_psn = psn
                c.peer_send(content(size))
                c.held_ack(psn=psn, syndrome=RNR | 14, ended=0)
                answers += 1
            c.capture.now += 2 * MS
            c.peer_psn = psn
            c.peer_send(content(size))
            c.held_ack()
            c.peer_send(content(size))
            c.held_ack()
            answers += 1
        for timing in ("captured", "fast"):
            report = bench.run(bench.write(c.capture), "--timing", timing)
            no_difference(report, answers)
    c = connection()  # as Linux's Soft-RoCE does: a sequence NAK for each packet that was under way behind the first
    psn = c.peer_psn
    c.peer_send(content(3000))
    c.held_ack(psn=psn, syndrome=RNR | 14, ended=0)
    c.held_ack(psn=psn, syndrome=NAK_SEQUENCE, ended=0)
    c.held_ack(psn=psn, syndrome=NAK_SEQUENCE, ended=0)
    c.capture.now += 2 * MS
    c.peer_psn = psn
    c.peer_send(content(3000))
    c.held_ack()
    report = bench.run(bench.write(c.capture))
    no_difference(report, 2, ("after its RNR NAK",))
    expect(len(report["differences"]) == 2, str(report["differences"]))
    for syndrome in (NAK_INVALID, NAK_OPERATION):
        for size in (1, 10, 3000):
            c = connection()
            c.peer_send(content(5))
            c.held_ack()
            psn = c.peer_psn
            c.peer_send(content(size))
            c.held_ack(psn=psn, syndrome=syndrome, ended=0)
            c.from_peer(SEND_ONLY, c.peer_psn, b"", content(5), ask=True)
            for timing in ("captured", "fast"):
                no_difference(bench.run(bench.write(c.capture), "--timing", timing), 2)


def rights(bench):
    """A request that was refused for its key, its range or its right is refused, and others are not."""
    granted = lambda c: c.peer_read(0x10000, 0x5500, content(3000))
    cases = {
        "a key that nobody has": (WRITE_ONLY, reth(0x10000, 0x6600, 10)),
        "a range behind the region": (WRITE_ONLY, reth(0x10000 + 3000, 0x5500, 10)),
        "a range across the end": (READ, reth(0x10000 + 2000, 0x5500, 2000)),
        "a right": (WRITE_ONLY, reth(0x10010, 0x5500, 10)),
        "another right": (ADD, atomic(0x10010, 0x5500, 1)),
        "a key that has ended": (READ, reth(0x10000, 0x5500, 100)),
    }
    for syndrome in (NAK_ACCESS, NAK_INVALID):
        for name, (opcode, headers) in cases.items():
            if syndrome == NAK_INVALID and not name.endswith("right"):
                continue
            c = connection()
            granted(c)
            c.from_peer(opcode, c.peer_psn, headers, content(10) if opcode == WRITE_ONLY else b"", ask=True)
            c.held_ack(psn=c.peer_psn, syndrome=syndrome, ended=0)
            for timing in ("captured", "fast"):
                report = bench.run(bench.write(c.capture), "--timing", timing)
                expect(report["matched_answers"] == 4 and report["differences"] == [], "%s: %s" % (name, report["differences"]))


def rekeyed(bench):
    """Keys that differ in their low byte only, one after the other: each leads to memory of its own, and has its time."""
    def both(c, answers, name):
        for timing in ("captured", "fast"):
            report = bench.run(bench.write(c.capture), "--timing", timing)
            expect(report["matched_answers"] == report["expected_answers"] == answers and report["differences"] == [],
                   "%s, %s: %s %s" % (name, timing, report["differences"][:3], report["notes"]))

    def ended(c, opcode, headers, payload=b""):
        c.from_peer(opcode, c.peer_psn, headers, payload, ask=True)
        c.held_ack(psn=c.peer_psn, syndrome=NAK_ACCESS, ended=0)

    c, answers = connection(), 0
    for i in range(6):  # registered again without a word on the wire, at other places, with other lengths and rights
        begin, key, data = 0x10000 * (6 - i) + 77 * i, 0x5500 + i, content(500 * (i + 1), i)
        c.peer_read(begin, key, data)
        answers += len(c.cut(data))
        if i % 2:
            c.peer_write(begin + 10, key, content(200, i + 9))
            c.held_ack()
            answers += 1
    ended(c, READ, reth(0x60000, 0x5500, 100))  # the first one
    both(c, answers + 1, "the first key at the end")

    c, answers = connection(), 0
    for i in range(600):  # keys that SENDs end; after 256 they come again, for other memory
        begin, key, data = 0x1000 + 0x2000 * i, 0x5500 + i % 256, content(100 + i, i)
        c.peer_write(begin, key, data)
        c.held_ack()
        c.from_peer(SEND_ONLY_INV, c.peer_psn, ieth(key), content(16), ask=True)
        c.peer_psn += 1
        c.held_ack()
        answers += 2
    ended(c, WRITE_ONLY, reth(begin, key, 10), content(10))
    both(c, answers + 1, "invalidated keys")

    capture = Capture()  # two connections by turns: what the first has counted is there when its key is again
    one, two = connection(capture, ports=(0xC001, 0xC002)), connection(capture, held_qpn=0x333, peer_qpn=0x444, ports=(0xC003, 0xC004))
    for i in range(5):
        one.from_peer(ADD, one.peer_psn, atomic(0x2000, 0x5501, 3), ask=True)
        one.from_held(ATOMIC_ACK, one.peer_psn, aeth(0x1F, i + 1) + struct.pack(">Q", 40 + 3 * i))
        one.peer_psn += 1
        two.peer_read(0x2000, 0x5502, content(64, i))
    both(one, 10, "by turns")

    capture = Capture()  # a key that was not there yet when another connection asked for it
    early, late = connection(capture, ports=(0xC001, 0xC002)), connection(capture, held_qpn=0x333, peer_qpn=0x444, ports=(0xC003, 0xC004))
    ended(early, READ, reth(0x2000, 0x5501, 64))
    late.peer_read(0x2000, 0x5501, content(64))
    report = bench.run(bench.write(capture))
    all_matched(report, 2)

    capture = Capture()  # places of a table of 2^17 keys that far keys have in common
    c = connection(capture)
    for key in (0x01000100, 0x05000100, 0x01000100):
        c.peer_read(0x3000, key, content(2000, key >> 24))
    both(c, 6, "far keys")


def requester(bench):
    """The held host's own requests, refused or put off by its peer."""
    for syndrome, name in ((NAK_ACCESS, "access"), (NAK_INVALID, "invalid"), (NAK_OPERATION, "operation")):
        c = connection()
        c.held_send(content(10))
        c.peer_ack(1)
        c.held_write(0x1000, 0x99, content(10))
        c.peer_ack(1, syndrome=syndrome)
        no_difference(bench.run(bench.write(c.capture)), 2)
    c = connection()
    c.held_send(content(10))
    c.peer_ack(1)
    c.held_send(content(2000))
    c.peer_ack(1, psn=c.held_psn - 2, syndrome=RNR | 12)
    c.held_psn -= 2
    c.capture.now += 1 * MS
    c.held_send(content(2000))
    c.peer_ack(2)
    for timing in ("captured", "fast"):
        no_difference(bench.run(bench.write(c.capture), "--timing", timing), 5)


def many(bench):
    """A thousand connections with equal sequence numbers, a hundred thousand frames, at the capture's times."""
    capture = Capture(step=0)
    lanes = [connection(capture, held_qpn=0x400 + i, peer_qpn=0x8000 + i, ports=(0xC001, 0xC001)) for i in range(1020)]
    answers = 0
    for seed in range(49):
        for c in lanes:
            capture.now += 2 * US
            c.peer_send(content(100, seed))
        for c in lanes:
            capture.now += 2 * US
            c.held_ack()
            answers += 1
    report = bench.run(bench.write(capture), gigabytes=1)
    expect(len(capture.frames) > 99000, "frames")
    expect(len(report["connections"]) == 1020, "%d connections" % len(report["connections"]))
    expect(all(c["peer_qpn"] - c["held_qpn"] == 0x7C00 for c in report["connections"]), "pairs")
    expect(report["matched_answers"] == answers, str(report["differences"][:3]))
    print("%d frames: %.1f s, %.0f MB" % (len(capture.frames), report["seconds"], report["megabytes"]))
    expect(report["seconds"] < 20, "%.1f s" % report["seconds"])


def idle(bench):
    """A minute in which nothing happens costs nothing, whatever state the queue pairs are in."""
    c = connection()
    c.held_send(content(10))
    c.peer_ack(1)
    c.held_write(0x1000, 0x99, content(10))
    c.peer_ack(1, syndrome=NAK_ACCESS)
    c.capture.now += 60 * 1000 * MS
    other = connection(c.capture, held_qpn=0x123, peer_qpn=0x456)
    other.peer_send(content(10))
    other.held_ack()
    report = bench.run(bench.write(c.capture))
    print("%.1f s" % report["seconds"])
    no_difference(report, 3)
    expect(report["seconds"] < 1.5, "%.1f s" % report["seconds"])


def reading_takes_memory():
    """Whether pages that were never written are this process's own once they are read: some kernels have no zero page."""
    def resident():
        with open("/proc/self/statm", encoding="ascii") as f:
            return int(f.read().split()[1])

    pages = 4096
    with mmap.mmap(-1, pages * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as untouched:
        before = resident()
        for page in range(pages):
            _ = untouched[page * mmap.PAGESIZE]
        return resident() - before > pages // 2


def large(bench):
    """READs of 1 GiB of which the capture has little."""
    c = connection(mtu=4096)
    c.from_peer(READ, c.peer_psn, reth(0x1000, 0x77, 1 << 30), ask=True)
    c.from_held(READ_FIRST, c.peer_psn, aeth(0x1F, 1), content(4096))
    report = bench.run(bench.write(c.capture), gigabytes=2 if reading_takes_memory() else 1)
    account(report)
    expect(report["matched_answers"] == 1, str(report["differences"][:2]))
    print("%.1f s, %.0f MB" % (report["seconds"], report["megabytes"]))


def datagrams(bench):
    """Datagrams of the held host are sent again, those that it got are delivered; groups as well."""
    group = Host(9, bytes.fromhex("01005e010203"), bytes((239, 1, 2, 3)))
    third = Host(5)
    capture, answers, bytes_in = Capture(), 0, 0
    for i in range(5):
        for peer, qpn in ((PEER, 0x222), (third, 0x333)):
            capture.add(frame(peer, HELD, UD | SEND_ONLY, 0x111, 70 + i, deth(0x1234, qpn), content(100 + i)))
            capture.add(frame(HELD, peer, UD | SEND_ONLY, qpn, 500 + answers, deth(0x777, 0x111), content(50 + i)))
            answers += 1
            bytes_in += 140 + i
        capture.add(frame(PEER, group, UD | SEND_ONLY, 0xFFFFFF, 900 + i, deth(0x1234, 0x222), content(30)))
        capture.add(frame(HELD, group, UD | SEND_ONLY, 0xFFFFFF, 500 + answers, deth(0x1234, 0x111), content(30)))
        answers += 1
        bytes_in += 70
    capture.add(frame(PEER, HELD, UD | SEND_ONLY, 1, 3, deth(0x80010000, 1), content(256)))
    for timing in ("captured", "fast"):
        report = bench.run(bench.write(capture), "--timing", timing)
        all_matched(report, answers)
        expect(report["rejected"] == {"management datagrams (queue pair 1)": 1}, str(report["rejected"]))
        c = report["connections"][0]
        expect((c["transport"], c["deliveries"], c["delivered_bytes"]) == ("UD", 15, bytes_in), str(c))
    for held in ("52:54:00:00:00:0a", "52:54:00:00:00:0b"):
        report = bench.run(os.path.join(bench.traces, "ud_send_1000B.pcap"), hold=held)
        all_matched(report, 15)
        expect(report["connections"][0]["deliveries"] == 15, str(report["connections"]))
        report = bench.run(os.path.join(bench.traces, "uc_send_mtu512_2000B.pcap"), hold=held)
        all_matched(report, 60)
        expect(report["connections"][0]["deliveries"] == 15, str(report["connections"]))
    c = connection(service=UC, mtu=512)  # of three messages the second lacks a packet
    lost = [c.peer_send(content(1500)) for _ in range(3)][1][1]
    report = bench.run(bench.write(c.capture, drop=(lost,)))
    account(report)
    expect((report["connections"][0]["deliveries"], report["differences"]) == (2, []), str(report["differences"]))


def masked(bench):
    """Masked atomics, of both hosts (opcodes and masks are this model's)."""
    swap = lambda value, compare, mask: atomic(0x2000, 0x77, value, compare) + struct.pack(">QQ", mask, mask)
    original = lambda value, msn: aeth(0x1F, msn) + struct.pack(">Q", value)
    c = connection()
    found = 0x1234
    for i in range(4):
        opcode = 0xC0 | (SWAP if i % 2 else ADD)
        headers = swap(i, found, 0xFF) if i % 2 else atomic(0x2000, 0x77, 5, 0x80)
        c.from_peer(opcode, c.peer_psn, headers, ask=True)
        c.from_held(ATOMIC_ACK, c.peer_psn, original(found, i + 1))
        c.peer_psn += 1
        c.from_held(opcode, c.held_psn, headers, ask=True)
        c.from_peer(ATOMIC_ACK, c.held_psn, original(found, i + 1))
        c.held_psn += 1
        found = (found & ~0xFF | i) if i % 2 else found + 5
    for timing in ("captured", "fast"):
        all_matched(bench.run(bench.write(c.capture), "--timing", timing), 8)


def frames_of(path):
    data, at = open(path, "rb").read(), 24
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        yield data[at + 16:at + 16 + length]
        at += 16 + length


def xrc(bench):
    """XRC: halves that answer, with the shared receive queues that are named, and halves that ask."""
    # The adapter's own runs, held on either side: every answer again.
    for verb, sizes in (("send_imm", "10,3000"), ("send", "0,5000"), ("write_imm", "64,3000"), ("write", "3000"), ("read", "5000"),
                        ("cas", None), ("fadd", None)):
        path = bench.file("own.pcap")
        subprocess.run([bench.program, "bandwidth", "--transport", "xrc", "--verb", verb, "--messages", "12", "--qps", "3",
                        "--bidirectional", "--quiet", "--pcap", path, "--overwrite"] + (["--sizes", sizes] if sizes else []),
                       stdout=subprocess.DEVNULL, check=True, timeout=60)
        macs = {f[6:12] for f in frames_of(path)}
        for held in macs:
            for timing in ("captured", "fast"):
                report = bench.run(path, "--timing", timing, hold=":".join("%02x" % b for b in held))
                account(report)
                sent = sum(f[6:12] == held for f in frames_of(path))
                where = "%s, held %s, %s: " % (verb, held.hex(), timing)
                expect(report["expected_answers"] == report["matched_answers"] == sent, where + str(report["differences"][:3]))
                expect({c["transport"] for c in report["connections"]} == {"XRC"}, where + str(report["connections"]))
                expect(len(report["connections"]) == len({(f[6:12], f[47:50]) for f in frames_of(path)}) // 2, where + "pairs")

    def target(capture, srqn, **more):
        return XrcConnection(capture, HELD, PEER, srqn=srqn, **{"held_qpn": 0x111, "peer_qpn": 0x222, **more})

    def good(c, answers, name):
        for timing in ("captured", "fast"):
            report = bench.run(bench.write(c.capture), "--timing", timing)
            expect(report["matched_answers"] == report["expected_answers"] == answers and report["differences"] == [],
                   "%s, %s: %s %s" % (name, timing, report["differences"][:3], report["notes"]))

    for qpn in (0x111, 0x800111):  # adapters differ in whether the number of such a queue pair has a bit of its own
        c, answers = target(Capture(), 0x4321, held_qpn=qpn), 0
        for i in range(8):
            c.srqn = (0x4321, 0x77, 5)[i % 3]
            c.peer_send(content(10 + 500 * i, i))
            c.held_ack()
            c.peer_write(0x10000, 0x4400, content(100), last_headers=struct.pack(">I", i))
            c.held_ack()
            c.peer_read(0x10000, 0x4400, content(2000, i))
            c.from_peer(ADD, c.peer_psn, atomic(0x20000, 0x4500, 7), ask=True)
            c.from_held(ATOMIC_ACK, c.peer_psn, aeth(0x1F, c.held_msn + 1) + struct.pack(">Q", 9 + 7 * i))
            c.peer_psn, c.held_msn, answers = c.peer_psn + 1, c.held_msn + 1, answers + 5
        good(c, answers, "three queues, queue pair %#x" % qpn)

    c = target(Capture(), 0x50)  # a queue that is empty for a while, twice, and one that is not
    for late in (False, True, False, True):
        psn = c.peer_psn
        if late:
            c.peer_send(content(3000))
            c.held_ack(psn=psn, syndrome=RNR | 14, ended=0)
            c.capture.now += 2 * MS
            c.peer_psn = psn
        c.peer_send(content(3000))
        c.held_ack()
        c.srqn = 0x51
        c.peer_send(content(20))
        c.held_ack()
        c.srqn = 0x50
    good(c, 10, "late receives")

    for opcode, headers in ((SEND_ONLY, b""), (WRITE_ONLY, reth(0x10000, 0x4400, 10)), (READ, reth(0x10000, 0x4400, 10))):
        c = target(Capture(), 0x60)  # a queue that does not exist
        c.peer_send(content(100))
        c.held_ack()
        c.peer_read(0x10000, 0x4400, content(100))
        c.peer_write(0x10000, 0x4400, content(100))
        c.held_ack()
        c.srqn = 0x61
        c.from_peer(opcode, c.peer_psn, headers, b"" if opcode == READ else content(10), ask=True)
        c.held_ack(psn=c.peer_psn, syndrome=NAK_INVALID, ended=0)
        good(c, 4, "a queue that does not exist")
    c = target(Capture(), 0x60)  # a receive that is too short
    c.peer_send(content(100))
    c.held_ack()
    psn = c.peer_psn
    c.peer_send(content(2000))
    c.held_ack(psn=psn + 1, syndrome=NAK_INVALID, ended=0)
    good(c, 2, "a receive that is too short")

    capture = Capture()  # both ask, over queue pairs of their own; the queues that the held host names are its peer's
    asked, asking = target(capture, 0x70), target(capture, 0x999999, held_qpn=0x333, peer_qpn=0x444, held_psn=100)
    answers = 0
    for i in range(5):
        asked.peer_send(content(1500, i))
        asking.srqn = 0x999999 + i
        asking.held_send(content(2500, i))
        asked.held_ack()
        asking.peer_ack(2 * i + 1)
        asking.held_read(0x9000, 0x88, content(1800, i), 2 * i + 2)
        answers += 5
    good(asked, answers, "both ask")

    path = bench.file("own.pcap")  # an answer with another number makes its queue pair look like one that came back
    subprocess.run([bench.program, "bandwidth", "--transport", "xrc", "--verb", "send_imm", "--messages", "8", "--qps", "2",
                    "--sizes", "10,3000", "--bidirectional", "--quiet", "--pcap", path, "--overwrite"],
                   stdout=subprocess.DEVNULL, check=True, timeout=60)
    frames = list(frames_of(path))
    for damaged in [i for i, f in enumerate(frames) if f[42] == XRC | ACK][::5]:
        capture = Capture()
        for i, f in enumerate(frames):
            if i == damaged:
                body = f[42:51] + (67584).to_bytes(3, "big") + f[54:-4]
                f = f[:42] + body + icrc(f[14:34], f[34:42], body)
            capture.add(f)
        for held in {f[6:12] for f in frames}:
            account(bench.run(bench.write(capture), hold=":".join("%02x" % b for b in held)))

    c = target(Capture(), 0x10000)  # more than the adapter has
    c.peer_send(content(10))
    c.held_ack()
    report = bench.run(bench.write(c.capture))
    account(report)
    expect(any("shared receive queue" in why for why in report["rejected"]), str(report["rejected"]))


def contradictions(bench):
    """What READs found is held against what WRITEs had left, and the report names the first answer that differs."""
    address, key = 0x1FF0, 0x5500  # over the end of a page

    def report_of(capture):
        report = bench.run(bench.write(capture))
        account(report)
        expect(report["differences"] == [], str(report["differences"][:3]))
        wrong = report["contradicting_reads"]
        expect(("first is frame %d;" % (wrong or [0])[0] in report["text"]) == bool(wrong), report["text"][-600:])
        return wrong

    def written(found, what=lambda c, data: None, size=3000):
        c, data = connection(), content(size)
        c.peer_write(address, key, data)
        c.held_ack()
        what(c, data)
        return c, c.peer_read(address, key, found(data))

    spoilt = lambda at: lambda data: data[:at] + bytes((data[at] ^ 1,)) + data[at + 1:]
    c, _ = written(lambda data: data)
    expect(report_of(c.capture) == [], "the same bytes")
    for at, back in ((0, 2), (15, 2), (16, 2), (1024, 1), (2999, 0)):
        c, last = written(spoilt(at))
        expect(report_of(c.capture) == [last - back], "byte %d" % at)

    def again(c, data):
        c.peer_write(address + 100, key, content(50, 9))
        c.held_ack()

    c, last = written(lambda data: data, again)  # the second WRITE is not there
    expect(report_of(c.capture) == [last - 2], "the first WRITE's bytes")
    c, _ = written(lambda data: data[:100] + content(50, 9) + data[150:], again)
    expect(report_of(c.capture) == [], "the second WRITE's bytes")

    def counted(c, data):
        c.from_peer(ADD, c.peer_psn, atomic(address + 16, key, 1), ask=True)
        c.from_held(ATOMIC_ACK, c.peer_psn, aeth(0x1F, c.held_msn + 1) + data[16:24][::-1])
        c.peer_psn, c.held_msn = c.peer_psn + 1, c.held_msn + 1

    c, _ = written(lambda data: data[:16] + bytes((data[16] + 1,)) + data[17:], counted)
    expect(report_of(c.capture) == [], "an atomic in between")

    def other(answered, found):  # another connection writes; its acknowledgement comes before or behind the READ
        capture = Capture()
        one, two = (connection(capture, held_qpn=n, peer_qpn=n + 1, ports=(n, n + 1)) for n in (0x111, 0x333))
        one.peer_write(address, key, content(64))
        one.held_ack()
        two.peer_write(address, key, content(64, 5))
        if answered:
            two.held_ack()
        last = one.peer_read(address, key, content(64, found))
        if not answered:
            two.held_ack()
        expect(report_of(capture) == ([last] if answered and found == 1 else []), "another connection %s" % ((answered, found),))

    for answered in (False, True):
        for found in (1, 5):
            other(answered, found)


def orders(bench):
    """Atomics of two queue pairs that were under way together: either order is right, a wrong sum is not."""
    def run_of(found, serial=False):
        capture = Capture(step=20)
        lanes = [connection(capture, held_qpn=n, peer_qpn=n + 1, ports=(n, n + 1)) for n in (0x111, 0x333)]

        def answer(c, value):
            c.from_held(ATOMIC_ACK, c.peer_psn, aeth(0x1F, c.held_msn + 1) + struct.pack(">Q", value))
            c.peer_psn, c.held_msn = c.peer_psn + 1, c.held_msn + 1

        for values in found:
            capture.now += 50 * US
            for c, add, value in zip(lanes, (3, 10), values):
                c.from_peer(ADD, c.peer_psn, atomic(0x2000, 0x77, add), ask=True)
                if serial:
                    capture.now += 50 * US
                    answer(c, value)
                    capture.now += 50 * US
            if not serial:
                for c, value in zip(lanes, values):
                    answer(c, value)
        report = bench.run(bench.write(capture))
        account(report)
        return report

    first = [(100, 103), (113, 116)]
    all_matched(run_of(first), 4)
    for found in ([(110, 100), (123, 113)], [(100, 103), (123, 113)], [(110, 100), (113, 116)]):
        report = run_of(found)
        expect(report["differences"] != [] and report["fatal_differences"] == 0, str(report["differences"]))
        expect(all("another order" in d["explanation"] for d in report["differences"]), str(report["differences"]))
    # The adapter's own run, in which four queue pairs of each host share a word.
    path = bench.file("own.pcap")
    subprocess.run([bench.program, "soak", "--messages", "1500", "--qps", "4", "--verbs", "fadd", "write", "send", "--largest", "4096",
                    "--quiet", "--pcap", path, "--overwrite"], stdout=subprocess.DEVNULL, check=True, timeout=100)
    for held in {f[6:12] for f in frames_of(path)}:
        for timing in ("captured", "fast"):
            report = bench.run(path, "--timing", timing, hold=":".join("%02x" % b for b in held))
            account(report)
            expect(report["fatal_differences"] == 0, "%s, %s: %s" % (held.hex(), timing, report["differences"][:3]))

    # One after the other: their order is known, and what is found otherwise somebody else has left there.
    all_matched(run_of(first, serial=True), 4)
    all_matched(run_of([(110, 100), (123, 113)], serial=True), 4)


def pkeys(bench):
    """Partitions that the adapter is not in: it drops what is sent in them, and the report says so."""
    for key, good in ((0xFFFF, True), (0x7FFF, True), (0x8001, False), (0x1234, False)):
        c = connection()
        for i in range(3):
            c.peer_send(content(100), pkey=key)
            c.held_ack()
        report = bench.run(bench.write(c.capture))
        account(report)
        expect((report["matched_answers"] == 3) == good, "%#x: %d" % (key, report["matched_answers"]))
        texts = [d["explanation"] for d in report["differences"]]
        expect(good or (texts and all("P_Key %#06x" % key in t for t in texts)), str(texts))
    c = connection()  # only the second one: the adapter then asks for it
    for i in range(4):
        c.peer_send(content(100), pkey=0x9999 if i == 1 else 0xFFFF)
        c.held_ack()
    report = bench.run(bench.write(c.capture))
    account(report)
    texts = [d["explanation"] for d in report["differences"]]
    expect(any("P_Key 0x9999" in t for t in texts) and not any("not in the capture, so" in t for t in texts), str(texts))


def unknown(bench):
    """What no packet tells is told as made up."""
    c = connection()
    c.peer_send(content(10))
    report = bench.run(bench.write(c.capture))
    one = report["connections"][0]
    expect((one["held_qpn_known"], one["peer_qpn_known"], one["mtu_known"]) == (True, False, False), str(one))
    expect("an unknown one" in report["text"] and "(assumed: no packet shows it)" in report["text"], report["text"][-900:])
    c = connection()
    c.held_send(content(3000))
    report = bench.run(bench.write(c.capture))
    one = report["connections"][0]
    expect((one["held_qpn_known"], one["peer_qpn_known"], one["mtu_known"]) == (False, True, True), str(one))
    expect("(made up)" in report["text"] and "assumed" not in report["text"], report["text"][-900:])
    c = Connection(Capture(), HELD, HELD, 0x111, 0x222)  # both ends of one address
    c.peer_send(content(10))
    c.held_ack()
    report = bench.run(bench.write(c.capture))
    account(report)
    expect(report["connections"] == [] and [n for why, n in report["rejected"].items() if "one MAC address" in why] == [2],
           str(report["rejected"]))


CASES = {f.__name__: f for f in (contradictions, orders, pkeys, unknown, ranges, budget, numbers, addresses, reused, managed, lacking, transmissions, receives, rights, rekeyed, requester,
                                 many, idle, large, datagrams, masked, xrc)}


def main():
    case, program, traces = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        CASES[case](Bench(program, traces, directory))


main()
