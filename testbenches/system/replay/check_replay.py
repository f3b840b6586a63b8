#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays captures with the program and checks what it reports and writes.

usage: check_replay.py agree|captures|connections|damaged|formats|mistakes|partial|refusals PROGRAM TRACES
"""
import gzip
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

HOSTS = ("52:54:00:00:00:0a", "52:54:00:00:00:0b")
COMPLETE = {  # frames, RoCE frames, frames of RC and UC that A and B sent
    "rc_send_mtu1024_4096B": (120, 120, 60, 60),
    "rc_write_mtu1024_20000B": (168, 168, 8, 160),
    "rc_read_mtu1024_6000B": (86, 84, 72, 12),
    "rc_send_ipv6_mtu256_1500B": (140, 140, 70, 70),
    "uc_send_mtu512_2000B": (120, 120, 60, 60),
    "rc_atomic_fetchadd": (30, 30, 15, 15),
    "cm_rping_800B": (55, 53, 24, 24),
}
LOSSY = ("rc_send_loss2pct_mtu1024_8000B", "rc_send_loss2pct_mtu1024_8000B.rx")


def fail(text):
    raise AssertionError(text)


def expect(condition, text):
    if not condition:
        fail(text)


def run(program, arguments):
    return subprocess.run([program, "replay", "--expect", "none"] + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)


def records(path):
    """(nanoseconds, frame) of a classic pcap file."""
    data = open(path, "rb").read()
    magic = struct.unpack_from("<I", data)[0]
    expect(magic in (0xA1B23C4D, 0xA1B2C3D4), path + ": no pcap")
    unit = 1 if magic == 0xA1B23C4D else 1000
    at, out = 24, []
    while at < len(data):
        seconds, part, kept, _ = struct.unpack_from("<IIII", data, at)
        out.append((seconds * 10**9 + part * unit, data[at + 16:at + 16 + kept]))
        at += 16 + kept
    return out


def roce(frame):
    """(L3 header, UDP header or nothing, BTH onwards with ICRC) of a RoCE frame of either version, or None."""
    at = 18 if frame[12:14] == b"\x81\x00" else 14
    kind = struct.unpack_from(">H", frame, at - 2)[0]
    if kind == 0x0800 and frame[at + 9] == 17 and frame[at + 22:at + 24] == b"\x12\xb7":
        end = at + struct.unpack_from(">H", frame, at + 2)[0]
        return frame[at:at + 20], frame[at + 20:at + 28], frame[at + 28:end]
    end = at + 40 + struct.unpack_from(">H", frame, at + 4)[0]
    if kind == 0x86DD and frame[at + 6] == 17 and frame[at + 42:at + 44] == b"\x12\xb7":
        return frame[at:at + 40], frame[at + 40:at + 48], frame[at + 48:end]
    if kind == 0x8915 and frame[at + 6] == 0x1B:
        return frame[at:at + 40], b"", frame[at + 40:end]
    return None


def icrc(l3, udp, body):
    """ICRC of IBA 7.8.1 and annex A17: CRC-32 over the packet with everything that may change on the way set to ones."""
    l3, udp, body = bytearray(l3), bytearray(udp), bytearray(body)
    if len(l3) == 20:
        l3[1] = l3[8] = 0xFF
        l3[10] = l3[11] = 0xFF
    else:
        l3[0] |= 0x0F
        l3[1] = l3[2] = l3[3] = 0xFF
        l3[7] = 0xFF
    udp[6:8] = b"\xff\xff" if udp else b""
    body[4] = 0xFF
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(l3) + bytes(udp) + bytes(body)))


def icrc_right(l3, udp, rest):
    return icrc(l3, udp, rest[:-4]) == rest[-4:]


def malformed(path):
    """Whether tshark takes every frame of the file as RoCE and none as malformed; None without tshark."""
    if not shutil.which("tshark"):
        return None
    # Its guess at what a SEND carries (RPC) calls payloads of a byte malformed.
    text = subprocess.run(["tshark", "-r", path, "--disable-protocol", "rpcordma", "-T", "fields", "-e", "infiniband.bth.opcode",
                           "-e", "_ws.malformed"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode()
    lines = text.splitlines()
    return "alformed" in text or len(lines) != len(records(path)) or not all(l.split("\t")[0] for l in lines)


def check_written(path, held, report, capture):
    """The capture of the run: every ICRC right, and what the adapter sent is what the real host sent."""
    mac = bytes.fromhex(held.replace(":", ""))
    sent, came, last = {}, 0, 0
    for at, frame in records(path):
        expect(at >= last, "time runs back in " + path)
        last = at
        parts = roce(frame)
        expect(parts is not None, "a frame of the run is not RoCE")
        expect(icrc_right(*parts), "wrong ICRC at %d ns" % at)
        if frame[6:12] == mac:
            key = parts[2][0], parts[2][5:8], parts[2][9:12]  # opcode, queue pair, PSN
            sent.setdefault(key, []).append(frame)
        else:
            came += 1
    expect(came == report["injected"], "%d frames came, %d were injected" % (came, report["injected"]))
    original = {}
    for _, frame in records(capture):
        parts = roce(frame)
        if parts is None or frame[6:12] != mac or parts[2][0] & 0xE0 not in (0x00, 0x20):
            continue
        original.setdefault((parts[2][0], parts[2][5:8], parts[2][9:12]), []).append(frame)
    return sent, original


def check_stages(report):
    for row in report["latency"]:
        expect(sum(s["ps"] for s in row["stages"]) == row["end_to_end_ps"], "stages do not sum to " + row["answer"])
    for p in report["packets"]:
        stages = p.get("answer", {}).get("stages")
        if stages is not None:
            expect(sum(s["ps"] for s in stages) == p["answer"]["latency_ps"], "stages of frame %d" % p["frame"])


def replay(program, traces, name, held, timing, directory):
    capture = os.path.join(traces, name + ".pcap")
    out, written = os.path.join(directory, "r.json"), os.path.join(directory, "r.pcap")
    done = run(program, [capture, "--hold", held, "--timing", timing, "--json", out, "--output", written, "--overwrite"])
    expect(done.returncode == 0, "%s: exit status %d: %s" % (name, done.returncode, done.stderr.decode()))
    report = json.load(open(out))
    check_stages(report)
    sent, original = check_written(written, held, report, capture)
    return report, sent, original, written


def check_complete(program, traces, name, held, timing, directory):
    frames, packets, of_a, of_b = COMPLETE[name]
    wanted = of_a if held == HOSTS[0] else of_b
    report, sent, original, written = replay(program, traces, name, held, timing, directory)
    where = "%s, %s, %s: " % (name, held, timing)
    expect((report["frames"], report["roce_frames"]) == (frames, packets), where + "frames")
    expect(report["expected_answers"] == wanted, where + "%d answers expected" % report["expected_answers"])
    expect(report["matched_answers"] == wanted, where + "%d answers matched" % report["matched_answers"])
    expect(report["differences"] == [], where + str(report["differences"][:3]))
    expect(report["injected"] == of_a + of_b - wanted, where + "injected")
    expect(sum(report["rejected"].values()) == frames - of_a - of_b, where + str(report["rejected"]))
    expect(sent.keys() == original.keys(), where + "other packets were sent")
    for key, frames_of_key in sent.items():
        for mine, real in zip(frames_of_key, original[key]):
            mine, real = roce(mine)[2], roce(real)[2]
            skip = 16 if key[0] & 0x1F in range(0x0D, 0x13) and key[0] & 0x1F != 0x0E else 12  # AETH has free credits
            expect(mine[skip:-4] == real[skip:-4], where + "payload of PSN " + key[2].hex())
    for p in report["packets"]:  # every question of the peer has an answer whose time is known by stage
        if not p["from_held"] and " RDMA READ Request" in p["packet"] or p["packet"].startswith("RC SEND Only") and not p["from_held"]:
            expect(p["answer"]["stages"], where + "no stages for frame %d" % p["frame"])
    return written


def check_lossy(program, traces, name, held, timing, directory):
    report, _, _, _ = replay(program, traces, name, held, timing, directory)
    where = "%s, %s, %s: " % (name, held, timing)
    kinds = {d["kind"] for d in report["differences"]}
    expect(report["matched_answers"] >= report["expected_answers"] * 9 // 10, where + "few answers matched")
    expect(kinds, where + "a capture with losses cannot be matched altogether")
    for wrong in ("other payload", "other opcode", "completion in error", "request that could not be posted"):
        expect(wrong not in kinds, where + wrong)
    if name.endswith(".rx"):  # what was delivered shows the holes, so the adapter must ask for them as the real host did
        naks = [p for p in report["packets"] if p["from_held"] and "NAK PSN sequence error" in p["packet"]]
        expect(all(p["result"] == "matched" for p in naks), where + "a sequence error was not answered by NAK")


def check_captures(program, traces, directory):
    for name in COMPLETE:
        for held in HOSTS:
            for timing in ("captured", "fast"):
                written = check_complete(program, traces, name, held, timing, directory)
        expect(not malformed(written), name + ": tshark")
    for name in LOSSY:
        for held in HOSTS:
            for timing in ("captured", "fast"):
                check_lossy(program, traces, name, held, timing, directory)
    # Without --hold the host that mostly answers is held: the server of the READs.
    out = os.path.join(directory, "default.json")
    done = run(program, [os.path.join(traces, "rc_read_mtu1024_6000B.pcap"), "--json", out])
    expect(done.returncode == 0 and json.load(open(out))["held"] == HOSTS[0], "default host")
    first = open(out).read()
    done = run(program, [os.path.join(traces, "rc_read_mtu1024_6000B.pcap"), "--json", out, "--overwrite"])
    expect(open(out).read() == first, "two runs differ")
    for name in ("ud_send_1000B",):  # counted or replayed, never an error
        out = os.path.join(directory, name + ".json")
        done = run(program, [os.path.join(traces, name + ".pcap"), "--json", out])
        expect(done.returncode == 0, name + ": " + done.stderr.decode())
        report = json.load(open(out))
        expect(sum(report["rejected"].values()) + report["injected"] + report["expected_answers"] == 30, name + ": frames lost")


REFUSED = {  # frames, RoCE frames; verdicts other than ACK that A and B gave
    "rc_rnr_mtu512": (90, 89, {"RNR NAK": 3, "NAK PSN sequence error": 3}, {"RNR NAK": 15, "NAK PSN sequence error": 9}),
    "rc_access_errors": (35, 35, {}, {"NAK remote access error": 8}),
    "rc_window_rebound": (34, 34, {}, {"NAK remote access error": 1}),
    "rc_invalid_requests": (17, 16, {}, {"NAK invalid request": 1, "NAK remote operational error": 3, "RNR NAK": 3}),
}
RNR, SEQUENCE, KIND = 0x20, 0x60, 0x60


def habits(capture, mac):
    """Numbers of the frames in which Soft-RoCE does otherwise than the standard, and why: sequence NAKs behind its own RNR
    NAK, and requests that it sends again although an RNR NAK of a later packet has acknowledged them."""
    found, not_ready, waiting = {}, False, {}
    for number, (_, frame) in enumerate(records(capture), 1):
        parts = roce(frame)
        if parts is None:
            continue
        opcode, psn, qpn = parts[2][0], int.from_bytes(parts[2][9:12], "big"), parts[2][5:8]
        mine = frame[6:12] == mac
        syndrome = parts[2][12] if opcode == 0x11 else None
        if syndrome is None:
            if mine and opcode < 0x0D and psn < waiting.get(qpn, 0):
                found[number] = "began again before the packet that the NAK names"
        elif mine:
            if syndrome == SEQUENCE and not_ready:
                found[number] = "after its RNR NAK"
            not_ready = syndrome & KIND == RNR or (not_ready and syndrome == SEQUENCE)
        else:  # one connection at a time, with the same number at both ends
            waiting[qpn] = psn if syndrome & KIND == RNR else 0
    return found


def check_refusals(program, traces, directory):
    """Two Soft-RoCE guests whose receives come late or whose requests are refused: all that the standard asks for comes."""
    for name, (frames, packets, *verdicts) in REFUSED.items():
        name = "errors/" + name
        for held, wanted in zip(HOSTS, verdicts):
            mac = bytes.fromhex(held.replace(":", ""))
            capture = os.path.join(traces, name + ".pcap")
            answers = sum(f[6:12] == mac for _, f in records(capture) if roce(f) is not None)
            known = habits(capture, mac)
            for timing in ("captured", "fast"):
                report, _, _, written = replay(program, traces, name, held, timing, directory)
                where = "%s, %s, %s: " % (name, held, timing)
                expect((report["frames"], report["roce_frames"]) == (frames, packets), where + "frames")
                expect(report["expected_answers"] == answers, where + "%d answers expected" % report["expected_answers"])
                expect(report["matched_answers"] == answers - len(known), where + "%d of %d answers matched: %s" %
                       (report["matched_answers"], answers, report["differences"][:3]))
                told = {d["frame"]: d["explanation"] for d in report["differences"]}
                expect(told.keys() == known.keys() and len(report["differences"]) == len(known), where + str(told))
                for frame, why in known.items():
                    expect(why in told[frame], where + "frame %d: %s" % (frame, told[frame]))
                given = {}
                for p in report["packets"]:
                    for verdict in ("RNR NAK", "NAK PSN", "NAK invalid", "NAK remote access", "NAK remote operational"):
                        if p["from_held"] and " " + verdict in p["packet"] and p["result"] == "matched":
                            given[verdict] = given.get(verdict, 0) + 1
                named = {k: v for k, v in wanted.items() if k != "NAK PSN sequence error"}
                expect(given == {next(v for v in ("RNR NAK", "NAK invalid", "NAK remote access", "NAK remote operational")
                                      if k.startswith(v)): n for k, n in named.items()}, where + str(given))
                expect(not malformed(written), where + "tshark")


def check_damaged(program, traces, directory):
    """Cut files, flipped bits and garbage give a report or one clear line, never a crash or a hang."""
    dice = random.Random(1)
    path = os.path.join(directory, "damaged.pcap")
    out = os.path.join(directory, "damaged.json")
    for name in ("rc_send_mtu1024_4096B", "rc_read_mtu1024_6000B", "cm_rping_800B"):
        data = open(os.path.join(traces, name + ".pcap"), "rb").read()
        cases = [data[:n] for n in (0, 3, 23, 24, 30, 100, len(data) // 3, len(data) // 2, len(data) - 1)]
        cases.append(data[:24] + b"".join(struct.pack("<IIII", *r[:3], r[3]) + r[4] for r in pieces(data, snap=90)))
        for flips in (1, 20, 300):
            spoiled = bytearray(data)
            for _ in range(flips):
                spoiled[dice.randrange(24, len(spoiled))] ^= 1 << dice.randrange(8)
            cases.append(bytes(spoiled))
        spoiled = bytearray(data)  # damage inside the packets only: every frame is still found
        at = 24
        while at < len(data):
            size = struct.unpack_from("<I", data, at + 8)[0]
            if dice.random() < 0.2:
                spoiled[at + 16 + dice.randrange(size)] ^= 0xFF
            at += 16 + size
        cases.append(bytes(spoiled))
        middle = len(list(pieces(data))) // 2
        cases.append(data[:24] + b"".join(struct.pack("<IIII", *r[:4]) + r[4] for r in list(pieces(data))[middle:]))
        for i, case in enumerate(cases):
            open(path, "wb").write(case)
            if os.path.exists(out):
                os.remove(out)
            done = run(program, [path, "--json", out, "--timing", "fast"])
            expect(done.returncode in (0, 2), "%s, case %d: exit status %d: %s" % (name, i, done.returncode, done.stderr.decode()))
            if done.returncode == 2:
                expect(len(done.stderr.decode().strip().splitlines()) == 1, "%s, case %d: no single line" % (name, i))
                continue
            report = json.load(open(out))
            known = sum(report["rejected"].values()) - report["rejected"].get("file damaged", 0)
            expect(known + report["injected"] + report["expected_answers"] == report["frames"], "%s, case %d: frames lost" % (name, i))
    for size in (1, 24, 1000, 100000):
        open(path, "wb").write(bytes(dice.randrange(256) for _ in range(size)))
        expect(run(program, [path]).returncode == 2, "garbage is no capture")


def pieces(data, snap=1 << 30):
    at = 24
    while at < len(data):
        seconds, part, kept, whole = struct.unpack_from("<IIII", data, at)
        short = min(kept, snap)
        yield seconds, part, short, whole, data[at + 16:at + 16 + short]
        at += 16 + kept


def changed(frame, numbers, port=None, host=None):
    """The packet with other queue pair numbers, perhaps another UDP source port, and host 10.0.0.1 as 10.0.0.`host`."""
    l3, udp, rest = roce(frame)
    start, l3, udp, body = bytearray(frame[:14]), bytearray(l3), bytearray(udp), bytearray(rest[:-4])
    body[5:8] = struct.pack(">I", numbers[bytes(l3[-8:]), rest[5:8]])[1:]
    if port is not None:
        udp[0:2] = struct.pack(">H", port)
    if host is not None:
        for at, address in ((0, 16), (6, 12)):  # destination, source
            if l3[address:address + 4] == b"\x0a\0\0\x01":
                l3[address + 3] = start[at + 4] = host
        l3[10:12] = b"\0\0"
        total = sum(struct.unpack(">10H", bytes(l3)))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        l3[10:12] = struct.pack(">H", total ^ 0xFFFF)
    return bytes(start + l3 + udp + body) + icrc(l3, udp, body)


def renumber(source, target, dice, port=None, hosts=(None,)):
    """The same packets with queue pair numbers at random, so that those of the two ends tell nothing of each other; once
    for every one of `hosts`, at the same times."""
    frames, numbers = records(source), {}
    free = list(range(0x300, 0xF00))
    dice.shuffle(free)
    copies = []
    for host in hosts:
        for _, frame in frames:
            l3, _, rest = roce(frame)
            if (host, bytes(l3[-8:]), rest[5:8]) not in numbers:
                numbers[host, bytes(l3[-8:]), rest[5:8]] = free.pop()
        mine = {key[1:]: value for key, value in numbers.items() if key[0] == host}
        copies += [(at, changed(frame, mine, port, host)) for at, frame in frames]
    out = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
    for at, frame in sorted(copies, key=lambda copy: copy[0]):
        out += struct.pack("<IIII", at // 10**9, at % 10**9, len(frame), len(frame)) + frame
    open(target, "wb").write(out)


def check_own(program, capture, directory, where):
    """A capture of two adapters of our own: in the place of either, at either timing, every answer is the captured one.
    What may differ is how many packets an acknowledgement is for."""
    out, written = os.path.join(directory, "o.json"), os.path.join(directory, "o.pcap")
    frames = [frame for _, frame in records(capture) if roce(frame) is not None]
    for held in sorted({frame[6:12] for frame in frames}):
        total = sum(held in (frame[0:6], frame[6:12]) for frame in frames)
        for timing in ("captured", "fast"):
            name = ":".join("%02x" % b for b in held)
            done = run(program, [capture, "--hold", name, "--timing", timing, "--json", out, "--output", written, "--overwrite"])
            here = "%s, %s, %s: " % (where, name, timing)
            expect(done.returncode == 0, here + done.stderr.decode())
            report = json.load(open(out))
            expect(report["expected_answers"] + report["injected"] == total, here + "frames lost")
            expect(report["matched_answers"] == report["expected_answers"], here + str(report["differences"][:3]))
            for d in report["differences"]:
                expect("coalesced" in d["explanation"], here + str(d))
            for _, frame in records(written):
                pause = frame[12:14] == b"\x88\x08"  # frames of several hosts as fast as one line is
                expect(pause or icrc_right(*roce(frame)), here + "wrong ICRC")
    expect(not malformed(written), where + ": tshark")


def check_connections(program, traces, directory):
    """Several connections at once whose PSNs overlap, in both directions, both versions, with and without tag."""
    dice = random.Random(1)
    v1, v6, tag, both = ["--roce", "v1"], ["--ip", "6"], ["--vlan", "77", "--priority", "3"], ["--bidirectional"]
    capture, other = os.path.join(directory, "c.pcap"), os.path.join(directory, "d.pcap")
    for verb in ("write", "send", "read"):
        for qps, size, mtu, extra in ((1, 1, 256, []), (3, 1000, 1024, []), (8, 5000, 1024, both), (64, 64, 4096, both),
                                      (2, 0, 512, both), (3, 700, 256, both + v1), (3, 700, 256, both + v1 + v6 + tag),
                                      (3, 5000, 2048, v6), (3, 64, 2048, both + tag)):
            arguments = ["bandwidth", "--verb", verb, "--qps", str(qps), "--sizes", str(size), "--mtu", str(mtu), "--messages",
                         str(max(2 * qps, 9)), "--pcap", capture, "--overwrite"] + extra
            done = subprocess.run([program] + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
            where = " ".join(arguments)
            expect(done.returncode == 0, where + done.stderr.decode())
            check_own(program, capture, directory, where)
            if tag[0] in extra or size == 0 or qps == 1:
                continue
            renumber(capture, other, dice)
            check_own(program, other, directory, where + ", renumbered")
            if extra == both:
                renumber(capture, other, dice, 0xC000)
                check_own(program, other, directory, where + ", renumbered, one port")
                renumber(capture, other, dice, None, (1, 3, 4))
                check_own(program, other, directory, where + ", renumbered, three hosts with one")
    # A receive queue of one entry.
    subprocess.run([program, "bandwidth", "--verb", "send", "--qps", "2", "--sizes", "100", "--messages", "2", "--pcap", capture,
                    "--overwrite"], stdout=subprocess.PIPE, timeout=120, check=True)
    check_own(program, capture, directory, "one message each")


def check_formats(program, traces, directory):
    """The same capture in other clothes, and what is none."""
    source = os.path.join(traces, "rc_read_mtu1024_6000B.pcap")
    data, out = open(source, "rb").read(), os.path.join(directory, "f.json")

    def write(name, content):
        path = os.path.join(directory, name)
        open(path, "wb").write(content)
        return path

    frames = list(pieces(data))
    micro = struct.pack("<I", 0xA1B2C3D4) + data[4:24] + b"".join(struct.pack("<IIII", s, n // 1000, k, w) + f for s, n, k, w, f in frames)
    swapped = struct.pack(">IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1) + b"".join(struct.pack(">IIII", s, n, k, w) + f for s, n, k, w, f in frames)
    blocks = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    blocks += struct.pack("<IIHHIHHB3xHHI", 1, 32, 1, 0, 0, 9, 1, 9, 0, 0, 32)
    for s, n, k, w, f in frames:
        at, length = s * 10**9 + n, 32 + (k + 3) // 4 * 4
        blocks += struct.pack("<IIIIIII", 6, length, 0, at >> 32, at & 0xFFFFFFFF, k, w) + f + bytes(-k % 4) + struct.pack("<I", length)
    for path in (write("micro.pcap", micro), write("swapped.pcap", swapped), write("new.pcapng", blocks), write("packed.pcap.gz", gzip.compress(data))):
        done = run(program, [path, "--json", out, "--overwrite"])
        expect(done.returncode == 0, path + ": " + done.stderr.decode())
        report = json.load(open(out))
        expect((report["frames"], report["matched_answers"], report["differences"]) == (86, 72, []), path)
    short = data[:24] + b"".join(struct.pack("<IIII", *r[:4]) + r[4] for r in pieces(data, snap=60))
    done = run(program, [write("short.pcap", short), "--json", out, "--overwrite"])
    report = json.load(open(out))  # 60 bytes hold all headers of some packets
    filled = sum(count for note, count in report["notes"].items() if note.startswith("cut by the capture"))
    expect(done.returncode == 0 and filled > 0 and report["rejected"]["cut by the capture"] + filled == 86, "cut frames")
    for name, content in (("empty.pcap", b""), ("header.pcap", data[:24]), ("text.pcap", b"no capture at all\n" * 50),
                          ("usb.pcap", data[:20] + struct.pack("<I", 189) + data[24:])):
        done = run(program, [write(name, content)])
        expect(done.returncode == 2 and len(done.stderr.decode().strip().splitlines()) == 1, name + ": " + done.stderr.decode())
    expect(run(program, [directory]).returncode == 2, "a directory")
    mine = write("mine.pcap", data)
    os.link(mine, os.path.join(directory, "same.pcap"))
    for option in ("--output", "--pcap", "--json"):
        expect(run(program, [mine, option, os.path.join(directory, "same.pcap"), "--overwrite"]).returncode == 2, option + " over the capture")
    expect(open(mine, "rb").read() == data, "the capture was written over")


def check_partial(program, traces, directory):
    """Captures that lack something, with a fixed seed: an account of every frame, and a reason for every difference."""
    path, out = os.path.join(directory, "p.pcap"), os.path.join(directory, "p.json")
    dice = random.Random(7)
    names = sorted(COMPLETE) + list(LOSSY)
    for run_number in range(60):
        name = dice.choice(names)
        data = open(os.path.join(traces, name + ".pcap"), "rb").read()
        frames = list(pieces(data))
        kind = dice.choice(("holes", "middle", "window", "one direction", "twice", "swapped"))
        if kind == "holes":
            frames = [f for f in frames if dice.random() > 0.03]
        elif kind == "middle":
            frames = frames[dice.randrange(len(frames)):]
        elif kind == "window":
            first = dice.randrange(len(frames))
            frames = frames[first:first + dice.randrange(1, 60)]
        elif kind == "one direction":
            sender = dice.choice(frames)[4][6:12]
            frames = [f for f in frames if f[4][6:12] == sender]
        elif kind == "twice":
            frames = [g for f in frames for g in ([f, f] if dice.random() < 0.05 else [f])]
        else:
            i = dice.randrange(len(frames) - 1)
            frames[i], frames[i + 1] = frames[i][:2] + frames[i + 1][2:], frames[i + 1][:2] + frames[i][2:]
        open(path, "wb").write(data[:24] + b"".join(struct.pack("<IIII", *f[:4]) + f[4] for f in frames))
        where = "run %d, %s, %s: " % (run_number, name, kind)
        done = run(program, [path, "--json", out, "--overwrite", "--timing", "fast"])
        expect(done.returncode == 0, where + done.stderr.decode())
        report = json.load(open(out))
        known = sum(report["rejected"].values()) + report["injected"] + report["expected_answers"]
        expect(known == report["frames"] == len(frames), where + "frames lost")
        for d in report["differences"]:
            expect(d["explanation"] not in ("", "no reason found"), where + str(d))


def check_ports(program, traces, directory):
    """At port 2 the adapter answers as at port 1, by the blocks of that port."""
    out = os.path.join(directory, "ports.json")
    for name, extra in (("rc_send_mtu1024_4096B", []), ("ud_send_1000B", []), ("cm_rping_800B", []), ("rc_atomic_fetchadd", []),
                        ("rc_send_mtu1024_4096B", ["--set", "adapter.port2.rate_mbps=10000"])):
        reports = []
        for port in ("1", "2"):
            done = run(program, [os.path.join(traces, name + ".pcap"), "--json", out, "--overwrite", "--port", port, *extra])
            expect(done.returncode == 0, "%s at port %s: %s" % (name, port, done.stderr.decode()))
            reports.append(json.load(open(out)))
        one, two = reports
        expect(one["differences"] == two["differences"] == [] and one["expected_answers"] > 0, name + ": differences")
        for key in ("frames", "injected", "expected_answers", "matched_answers"):
            expect(one[key] == two[key], "%s: %s of port 1 %s, of port 2 %s" % (name, key, one[key], two[key]))
        blocks = [{stage["block"] for p in r["packets"] for stage in p.get("answer", {}).get("stages", [])} for r in reports]
        for port, of in ((1, blocks[0]), (2, blocks[1])):
            answered = name[:2] != "ud"  # datagrams have no answers
            expect(any("adapter.port%d" % port in b for b in of) == answered and not any("adapter.port%d" % (3 - port) in b for b in of),
                   "%s: blocks at port %d: %s" % (name, port, of))
    done = run(program, [os.path.join(traces, "ud_send_1000B.pcap"), "--port", "3"])
    expect(done.returncode == 2 and b"--port" in done.stderr, "--port 3: %s" % done.stderr)
    done = run(program, [os.path.join(traces, "ud_send_1000B.pcap"), "--port", "2", "--set", "adapter.ports=1"])
    expect(done.returncode == 2 and b"no port 2" in done.stderr, "one port: %s" % done.stderr)


def check_agree(program, _, directory):
    """Captures of the program's own with a request that was lost: what was under way behind it comes again, which is no
    copy. Of atomics of two queue pairs on one word most agree: which of two comes first may be the other one's turn."""
    plan, capture = os.path.join(directory, "lost.toml"), os.path.join(directory, "own.pcap")
    runs = []
    for nth, verb, size in ((11, "write", 3000), (5, "send", 3000), (20, "send", 64), (31, "send", 20000)):
        text = '[[event]]\ndirection = "a_to_b"\nnth = %d\ntype = "drop"\n' % nth
        runs.append((text, ["bandwidth", "--verb", verb, "--sizes", str(size), "--messages", "40", "--depth", "8"]))
    for text, arguments in runs:
        with open(plan, "w") as f:
            f.write(text)
        made = arguments + (["--faults", plan] if text else []) + ["--pcap", capture, "--overwrite", "--quiet"]
        done = subprocess.run([program] + made, capture_output=True, text=True, timeout=60)
        expect(done.returncode == 0, "%s: %s" % (made, done.stderr))
        done = subprocess.run([program, "replay", capture], capture_output=True, text=True, timeout=100)
        expect(done.returncode == 0, "%s %r: exit status %d: %s" % (made, text, done.returncode, done.stdout[-1500:] + done.stderr))
    for seed in ("1", "2"):
        subprocess.run([program, "soak", "--messages", "300", "--qps", "2", "--verbs", "fadd", "--seed", seed, "--pcap", capture,
                        "--overwrite", "--quiet"], check=True, capture_output=True, timeout=60)
        said = subprocess.run([program, "replay", capture], capture_output=True, text=True, timeout=100).stdout
        matched = int(said.split("matched ")[1].split()[0])
        expect(matched >= 270, "seed %s: %d of 300 atomics agree" % (seed, matched))


def check_mistakes(program, traces, directory):
    capture = os.path.join(traces, "rc_send_mtu1024_4096B.pcap")
    taken = os.path.join(directory, "taken.json")
    open(taken, "w").write("mine")
    for arguments in ([os.path.join(directory, "nothing.pcap")], [os.path.join(traces, "README.md")], [capture, "--hold", "10.9.9.9"],
                      [capture, "--hold", "nobody"], [capture, "--json", taken], [capture, "--timing", "slow"], []):
        done = run(program, arguments)
        expect(done.returncode == 2, "%s: exit status %d" % (arguments, done.returncode))
        expect(done.stderr.decode().startswith("rnic: "), "%s: %s" % (arguments, done.stderr.decode()))
    expect(open(taken).read() == "mine", "a file of the user's was written over")
    for hold in ("10.0.0.1", "::ffff:10.0.0.1", "52:54:00:00:00:0a"):
        done = run(program, [capture, "--hold", hold])
        expect(done.returncode == 0 and b"matched 60" in done.stdout, "--hold " + hold)


def main():
    case, program, traces = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        {"agree": check_agree, "captures": check_captures, "damaged": check_damaged, "mistakes": check_mistakes, "ports": check_ports,
         "refusals": check_refusals, "connections": check_connections, "formats": check_formats, "partial": check_partial}[case](program, traces, directory)


if __name__ == "__main__":
    main()
