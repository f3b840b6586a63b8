#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a replay tells its user: differences, fields, exit status, times, captures with comments.

usage: check_report.py CASE PROGRAM TRACES
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

from check_replay import HOSTS, expect, icrc, records, roce


class Replay:
    """One run of the program: exit status, text, and the JSON report if there is one."""

    def __init__(self, program, directory, arguments, **how):
        out = os.path.join(directory, "report.json")
        if os.path.exists(out):
            os.remove(out)
        done = subprocess.run([program, "replay", "--json", out] + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=120, **how)
        self.status, self.text, self.error = done.returncode, done.stdout.decode(), done.stderr.decode()
        self.report = json.load(open(out)) if os.path.exists(out) else None

    def kinds(self):
        return {d["kind"] for d in self.report["differences"]}


def write_pcap(path, frames):
    """Frames with their nanoseconds, as a classic file."""
    out = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)
    for at, frame in frames:
        out += struct.pack("<IIII", at // 10**9, at % 10**9, len(frame), len(frame)) + frame
    open(path, "wb").write(out)


def changed(frame, change):
    """The frame with the bytes from its BTH on changed, and a right ICRC."""
    l3, udp, rest = roce(frame)
    body = bytearray(rest[:-4])
    change(body)
    start = len(frame) - len(rest) - len(udp) - len(l3)
    return frame[:start] + l3 + udp + bytes(body) + icrc(l3, udp, body)


def sender(frame):
    return ":".join("%02x" % b for b in frame[6:12])


def check_fields(program, traces, directory):
    """A difference in a field is found under its name, and is none when the field is ignored."""
    frames = records(os.path.join(traces, "rc_send_mtu1024_4096B.pcap"))
    acks = [i for i, (_, f) in enumerate(frames) if sender(f) == HOSTS[0] and roce(f)[2][0] == 0x11]
    sends = [i for i, (_, f) in enumerate(frames) if sender(f) == HOSTS[0] and roce(f)[2][0] == 0x01]

    def set_msn(body):
        body[15] += 5

    def set_verdict(body):
        body[12] = 0x64

    def set_solicited(body):
        body[1] |= 0x80

    wanted = {"msn": (acks[3], set_msn, "other MSN"), "verdict": (acks[6], set_verdict, "other verdict"),
              "solicited": (sends[8], set_solicited, "other solicited bit")}
    for index, change, _ in wanted.values():
        frames[index] = frames[index][0], changed(frames[index][1], change)
    path = os.path.join(directory, "changed.pcap")
    write_pcap(path, frames)
    hold = [path, "--hold", HOSTS[0]]
    found = Replay(program, directory, hold)
    expect({(d["frame"], d["kind"]) for d in found.report["differences"]} == {(i + 1, kind) for i, _, kind in wanted.values()},
           str(found.report["differences"]))
    for name, (_, _, kind) in wanted.items():
        found = Replay(program, directory, hold + ["--ignore", name])
        expect(found.kinds() == {k for _, _, k in wanted.values()} - {kind}, "%s ignored: %s" % (name, found.kinds()))
        expect(name not in found.report["compared"] and len(found.report["compared"]) == 7, str(found.report["compared"]))
    found = Replay(program, directory, hold + [a for name in wanted for a in ("--ignore", name)])
    expect((found.report["differences"], found.report["matched_answers"]) == ([], 60), "all three ignored")
    wrong = Replay(program, directory, hold + ["--ignore", "colour"])
    names = ("opcode", "verdict", "remote", "length", "payload", "immediate", "solicited", "msn")
    expect(wrong.status == 2 and len(wrong.error.splitlines()) == 1, wrong.error)
    expect(all(n in wrong.error for n in names + ("--ignore", "colour")), wrong.error)
    text = subprocess.run([program, "replay", "--help"], stdout=subprocess.PIPE, timeout=20).stdout.decode()
    expect(all(n + ": " in text for n in names), "--help does not say what is compared")


def main():
    case, program, traces = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        {"fields": check_fields}[case](program, traces, directory)


if __name__ == "__main__":
    main()
