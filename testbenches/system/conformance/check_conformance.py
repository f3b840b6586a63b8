#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges what an area's rows put on the wire from outside: every frame of the adapter is read here, without the
project's decoder, and again by tshark, and compared with what the tables say must be heard.

usage: check_conformance.py PROGRAM FILTER [always_tick]
always_tick: a second run, in which every block ticks at every edge, must have the same capture, byte for byte.
Exit code 77: tshark is not there (everything else has been checked).
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "program"))
from check_capture import IPV4, IPV6, ROCE_V1, SKIP, UDP, icrc_fault, records  # noqa: E402

PEER = bytes([0x02, 0x50, 0x45, 0x45, 0x52, 0x01])
AETH_OPERATIONS = {0x0d, 0x0f, 0x10, 0x11, 0x12}  # responses but READ response MIDDLE
RELIABLE = {0x00, 0xa0}
TSHARK_FIELDS = ["infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.psn", "infiniband.bth.p_key",
                 "infiniband.bth.tver", "infiniband.aeth.syndrome", "infiniband.aeth.msn"]


def transport_of(frame):
    """Where the BTH is in an untagged frame, by EtherType; None for anything else."""
    kind = struct.unpack(">H", frame[12:14])[0]
    if kind == ROCE_V1:
        return 14 + 40 if frame[20] == 0x1b else None
    udp = {IPV4: 14 + 20, IPV6: 14 + 40}.get(kind)
    protocol = {IPV4: 23, IPV6: 20}.get(kind)
    if udp is None or frame[protocol] != UDP or frame[udp + 2:udp + 4] != struct.pack(">H", 4791):
        return None
    return udp + 8


def parse(frame):
    """The fields of an IBTA packet, from their places in the standard; None for anything else."""
    at = transport_of(frame)
    if at is None:
        return None
    bth = frame[at:at + 12]
    fields = {"opcode": bth[0], "version": bth[1] & 15, "pkey": struct.unpack(">H", bth[2:4])[0],
              "peer": int.from_bytes(bth[5:8], "big"), "psn": int.from_bytes(bth[9:12], "big")}
    service, operation = bth[0] & 0xe0, bth[0] & 0x1f
    if service in RELIABLE and operation in AETH_OPERATIONS:
        fields["syndrome"] = frame[at + 12]
        fields["msn"] = int.from_bytes(frame[at + 13:at + 16], "big")
    return fields


def compare(row, heard):
    """What differs between a row of the table and what was heard of it."""
    if len(row["hears"]) != len(heard):
        return "%d packets instead of %d" % (len(heard), len(row["hears"]))
    for number, (expected, found) in enumerate(zip(row["hears"], heard)):
        for name, value in expected.items():
            if name == "syndrome" and value == 31 and found.get(name, 255) < 31:
                continue  # an ACK with credits
            if name != "bytes" and found.get(name) != value:
                return "packet %d: %s %s instead of %d" % (number, name, found.get(name), value)
        if found["version"] != 0 or found["pkey"] != 0xffff:
            return "packet %d: version %d, P_Key %#x" % (number, found["version"], found["pkey"])
    return None


def tshark_faults(capture, frames):
    """tshark reads the same fields in every frame of a service that it knows."""
    arguments = ["-T", "fields", "-E", "occurrence=f"] + [x for f in TSHARK_FIELDS for x in ("-e", f)]
    lines = subprocess.run(["tshark", "-r", capture] + arguments, check=True, capture_output=True,
                           text=True).stdout.splitlines()
    faults = []
    if len(lines) != len(frames):
        return ["tshark sees %d of %d frames" % (len(lines), len(frames))]
    compared = 0
    for number, (line, (own, fields)) in enumerate(zip(lines, frames)):
        if not own or fields is None or fields["opcode"] & 0xe0 == 0xa0:  # it does not know XRC
            continue
        found = line.split("\t")
        names = ["opcode", "peer", "psn", "pkey", "version"] + (["syndrome", "msn"] if "syndrome" in fields else [])
        for name, text in zip(names, found):
            if not text or int(text, 0) != fields[name]:
                faults.append("tshark: frame %d: %s %s instead of %d" % (number + 1, name, text, fields[name]))
        compared += 1
    if compared == 0 and any(own for own, _ in frames) and not any(f and f["opcode"] & 0xe0 == 0xa0 for _, f in frames):
        faults.append("tshark: nothing to compare")
    return faults


def length_that_it_says(frame):
    kind = struct.unpack(">H", frame[12:14])[0]
    length = frame[16:18] if kind == IPV4 else frame[18:20]
    return struct.unpack(">H", length)[0] + (14 if kind == IPV4 else 54)


def judge(folder):
    with open(os.path.join(folder, "rows.json")) as f:
        rows = [json.loads(line) for line in f]
    faults, heard, frames = [], {row["peer"]: [] for row in rows}, []
    bad_icrcs = 0
    for number, (_, frame) in enumerate(records(os.path.join(folder, "frames.pcap"))):
        own = frame[6:12] != PEER
        fields = parse(frame)
        frames.append((own, fields))
        if not own:  # some rows have bytes behind the packet
            frame = frame[:length_that_it_says(frame)]
        truncated = not own and length_that_it_says(frame) > len(frame)
        fault = None if truncated else icrc_fault(frame)
        if not own:
            bad_icrcs += fault is not None
        elif fault is not None or fields is None:
            faults.append("frame %d of the adapter: %s" % (number + 1, fault or "no RoCE packet"))
        elif fields["peer"] not in heard:
            faults.append("frame %d of the adapter is for nobody: %s" % (number + 1, fields))
        else:
            heard[fields["peer"]].append(fields)
    meant = sum("bad_icrc" in row["row"] for row in rows)
    if bad_icrcs != meant:
        faults.append("%d frames of the peer have a bad ICRC, %d are meant to" % (bad_icrcs, meant))
    for row in rows:
        fault = compare(row, heard[row["peer"]])
        if fault is not None:
            faults.append("%s: %s" % (row["row"], fault))
    return rows, frames, faults


def play(program, which, folder, **settings):
    run = subprocess.run([program, "--gtest_brief=1", "--gtest_filter=" + which], capture_output=True, text=True,
                         env=dict(os.environ, RNIC_CONFORMANCE_OUT=folder, **settings))
    if run.returncode != 0:
        print(run.stdout[-2000:])
    return run.returncode == 0


def standing_faults(program, which, folder):
    with tempfile.TemporaryDirectory() as other:
        if not play(program, which, other, RNIC_CONFORMANCE_TICK="1"):
            return ["it fails when every block ticks at every edge"]
        with open(os.path.join(folder, "frames.pcap"), "rb") as a, open(os.path.join(other, "frames.pcap"), "rb") as b:
            return [] if a.read() == b.read() else ["another capture when every block ticks at every edge"]


def main():
    program, which = sys.argv[1:3]
    has_tshark = shutil.which("tshark") is not None
    with tempfile.TemporaryDirectory() as folder:
        if not play(program, which, folder):
            return 1
        rows, frames, faults = judge(folder)
        if has_tshark:
            faults += tshark_faults(os.path.join(folder, "frames.pcap"), frames)
        if sys.argv[3:] == ["always_tick"]:
            faults += standing_faults(program, which, folder)
    for fault in faults[:40]:
        print(fault)
    own = sum(o for o, _ in frames)
    print("%d rows, %d frames of the adapter, %d of the peer, %d faults" % (len(rows), own, len(frames) - own,
                                                                            len(faults)))
    if faults or not rows or own == 0:
        return 1
    return 0 if has_tshark else SKIP


if __name__ == "__main__":
    sys.exit(main())
