#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays captures with the program and checks what it reports and writes.

usage: check_replay.py captures|damaged|mistakes PROGRAM TRACES
"""
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
    "cm_rping_800B": (55, 53, 24, 24),
}
LOSSY = ("rc_send_loss2pct_mtu1024_8000B", "rc_send_loss2pct_mtu1024_8000B.rx")


def fail(text):
    raise AssertionError(text)


def expect(condition, text):
    if not condition:
        fail(text)


def run(program, arguments):
    return subprocess.run([program, "replay"] + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)


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
    """(start of L3, L3 header, BTH onwards with ICRC) of a RoCE v2 frame without tag, or None."""
    kind = struct.unpack_from(">H", frame, 12)[0]
    if kind == 0x0800 and frame[23] == 17 and frame[36:38] == b"\x12\xb7":
        end = 14 + struct.unpack_from(">H", frame, 16)[0]
        return frame[14:34], frame[34:42], frame[42:end]
    if kind == 0x86DD and frame[20] == 17 and frame[56:58] == b"\x12\xb7":
        end = 54 + struct.unpack_from(">H", frame, 18)[0]
        return frame[14:54], frame[54:62], frame[62:end]
    return None


def icrc_right(l3, udp, rest):
    """ICRC of IBA annex A17: CRC-32 over the packet with everything that may change on the way set to ones."""
    l3, udp, body = bytearray(l3), bytearray(udp), bytearray(rest[:-4])
    if len(l3) == 20:
        l3[1] = l3[8] = 0xFF
        l3[10] = l3[11] = 0xFF
    else:
        l3[0] |= 0x0F
        l3[1] = l3[2] = l3[3] = 0xFF
        l3[7] = 0xFF
    udp[6] = udp[7] = 0xFF
    body[4] = 0xFF
    crc = zlib.crc32(b"\xff" * 8 + bytes(l3) + bytes(udp) + bytes(body))
    return struct.pack("<I", crc) == rest[-4:]


def check_written(path, held, report, capture):
    """The capture of the run: every ICRC right, and what the adapter sent is what the real host sent."""
    mac = bytes.fromhex(held.replace(":", ""))
    sent, came, last = {}, 0, 0
    for at, frame in records(path):
        expect(at >= last, "time runs back in " + path)
        last = at
        parts = roce(frame)
        expect(parts is not None, "a frame of the run is not RoCE v2")
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
            skip = 16 if key[0] & 0x1F in range(0x0D, 0x12) and key[0] & 0x1F != 0x0E else 12  # AETH has free credits
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
        if shutil.which("tshark"):
            text = subprocess.run(["tshark", "-r", written, "-T", "fields", "-e", "infiniband.bth.opcode", "-e", "_ws.malformed"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode()
            lines = text.splitlines()
            expect(len(lines) == len(records(written)) and all(l.split("\t")[0] for l in lines), name + ": tshark")
            expect("alformed" not in text, name + ": tshark calls a packet malformed")
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
    for name in ("ud_send_1000B", "rc_atomic_fetchadd"):  # counted or replayed, never an error
        out = os.path.join(directory, name + ".json")
        done = run(program, [os.path.join(traces, name + ".pcap"), "--json", out])
        expect(done.returncode == 0, name + ": " + done.stderr.decode())
        report = json.load(open(out))
        expect(sum(report["rejected"].values()) + report["injected"] + report["expected_answers"] == 30, name + ": frames lost")


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
        {"captures": check_captures, "damaged": check_damaged, "mistakes": check_mistakes}[case](program, traces, directory)


main()
