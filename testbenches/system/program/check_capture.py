#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The captures that the program writes: tshark finds nothing malformed, and zlib the same ICRC in every packet.

usage: check_capture.py PROGRAM
Exit code 77: tshark is not there (the ICRCs have been checked).
"""
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

SKIP = 77
RUNS = [
    ["latency", "--verb", "write", "--sizes", "1,63,1024,9001", "--iterations", "4", "--roce", "v1", "--ip", "6"],
    ["latency", "--verb", "send", "--sizes", "0,5,300,9002", "--iterations", "4", "--ip", "4"],
    ["latency", "--verb", "read", "--sizes", "0,1,9003", "--iterations", "4", "--ip", "6"],
    ["bandwidth", "--verb", "write", "--sizes", "7,4096,65536", "--messages", "60", "--qps", "3", "--bidirectional",
     "--vlan", "100", "--priority", "6"],
    ["bandwidth", "--verb", "read", "--sizes", "7,40960", "--messages", "60", "--mtu", "4096", "--ip", "6",
     "--vlan", "9"],
    ["bandwidth", "--verb", "send", "--sizes", "13,3000", "--messages", "60", "--mtu", "256", "--roce", "v1",
     "--ip", "4"],
    ["latency", "--verb", "cas", "--iterations", "40", "--ip", "6"],
    ["latency", "--transport", "uc", "--verb", "write_imm", "--sizes", "1,9001", "--iterations", "8"],
    ["latency", "--transport", "ud", "--verb", "send", "--sizes", "0,1,2047", "--iterations", "8", "--ip", "6"],
    ["bandwidth", "--transport", "xrc", "--verb", "send_imm", "--sizes", "3,7000", "--messages", "60", "--qps", "2"],
    ["bandwidth", "--transport", "xrc", "--verb", "cas", "--messages", "60", "--roce", "v1"],
    ["bandwidth", "--verb", "fadd", "--messages", "60", "--qps", "2", "--roce", "v1", "--ip", "4"],
]
# IP protocol 17 and the EtherTypes of IPv4, IPv6, RoCE v1 and pause.
IPV4, IPV6, ROCE_V1, MAC_CONTROL, VLAN, UDP = 0x0800, 0x86dd, 0x8915, 0x8808, 0x8100, 17


def records(capture):
    """(time in ns, bytes) of a classic capture with nanoseconds."""
    with open(capture, "rb") as f:
        data = f.read()
    magic, _, _, _, _, snap, kind = struct.unpack("<IHHiIII", data[:24])
    if magic != 0xa1b23c4d or kind != 1:
        raise SystemExit("%s: not an Ethernet capture with nanoseconds" % capture)
    at = 24
    while at < len(data):
        seconds, nanoseconds, length, whole = struct.unpack("<IIII", data[at:at + 16])
        if length != whole:
            raise SystemExit("%s: a frame is cut" % capture)
        yield seconds * 10**9 + nanoseconds, data[at + 16:at + 16 + length]
        at += 16 + length


def icrc_fault(frame):
    """None for a good ICRC; by IBA volume 1, 7.8.1 and annexes A16 and A17."""
    start, kind = 14, struct.unpack(">H", frame[12:14])[0]
    if kind == VLAN:
        start, kind = 18, struct.unpack(">H", frame[16:18])[0]
    if kind == MAC_CONTROL:
        return None
    if kind == IPV4:
        length, ones, transport = struct.unpack(">H", frame[start + 2:start + 4])[0], [1, 8, 10, 11, 26, 27], 28
        if frame[start + 9] != UDP:
            return "protocol %d" % frame[start + 9]
    elif kind == IPV6:
        length, ones, transport = 40 + struct.unpack(">H", frame[start + 4:start + 6])[0], [1, 2, 3, 7, 46, 47], 48
    elif kind == ROCE_V1:
        length, ones, transport = 40 + struct.unpack(">H", frame[start + 4:start + 6])[0], [1, 2, 3, 7], 40
    else:
        return "EtherType %#06x" % kind
    packet = frame[start:start + length]
    if any(frame[start + length:]):
        return "padding that is not zero"
    masked = bytearray(packet[:-4])
    if kind != IPV4:
        masked[0] |= 0x0f
    for i in ones + [transport + 4]:
        masked[i] = 0xff
    crc = zlib.crc32(b"\xff" * 8 + bytes(masked))
    return None if struct.pack("<I", crc) == packet[-4:] else "ICRC %s instead of %08x" % (packet[-4:].hex(), crc)


def tshark_faults(capture, expected):
    command = ["tshark", "-r", capture, "-o", "ip.check_checksum:TRUE", "--disable-protocol", "rpcordma"]
    # What is carried is bytes without a meaning. tshark guesses at it, so what is malformed behind the transport's
    # headers (a protocol after InfiniBand's) is no fault of the packet.
    bad = '(_ws.malformed && !(frame.protocols contains "infiniband:")) || _ws.short || ip.checksum.status == 0'
    rows = subprocess.run(command + ["-T", "fields", "-e", "frame.protocols", "-e", "_ws.expert.severity",
                                     "-e", "infiniband.bth.opcode", "-e", "ip.checksum.status", "-E", "occurrence=f"],
                          check=True, capture_output=True, text=True).stdout.splitlines()
    malformed = subprocess.run(command + ["-Y", bad], check=True, capture_output=True, text=True).stdout.splitlines()
    faults = ["tshark: " + line for line in malformed[:5]]
    if len(rows) != expected:
        faults.append("tshark sees %d of %d frames" % (len(rows), expected))
    without = [r for r in rows if not r.split("\t")[2] and "macc" not in r]
    if without:
        faults.append("%d frames without a BTH, the first: %s" % (len(without), without[0]))
    return faults


def main():
    faults, packets = [], 0
    has_tshark = shutil.which("tshark") is not None
    with tempfile.TemporaryDirectory() as folder:
        for i, arguments in enumerate(RUNS):
            capture = os.path.join(folder, "%d.pcap" % i)
            subprocess.run([sys.argv[1]] + arguments + ["--pcap", capture, "--quiet"], check=True, capture_output=True)
            last, count = -1, 0
            for time, frame in records(capture):
                count += 1
                fault = icrc_fault(frame)
                if fault is None and time < last:
                    fault = "times go back"
                if fault is None and len(frame) < 60:
                    fault = "%d bytes are too few for Ethernet" % len(frame)
                last = time
                if fault is not None:
                    faults.append("%s: frame %d: %s" % (" ".join(arguments[:3]), count, fault))
            if count < 40:
                faults.append("%s: only %d frames" % (" ".join(arguments[:3]), count))
            packets += count
            if has_tshark:
                faults += ["%s: %s" % (" ".join(arguments[:3]), fault) for fault in tshark_faults(capture, count)]
    for fault in faults[:40]:
        print(fault)
    print("%d packets, %d faults" % (packets, len(faults)))
    if faults:
        return 1
    return 0 if has_tshark else SKIP


if __name__ == "__main__":
    sys.exit(main())
