#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What adapters put on the wire in the standing experiment, looked at by tshark: every checksum is right, segments of
one message follow each other, tags are where they belong.

usage: check_capture.py TEST_PROGRAM. Exit code 77: tshark is not there.
"""
import os
import shutil
import subprocess
import sys
import tempfile

FIELDS = ["eth.type", "vlan.id", "ip.checksum.status", "udp.checksum.status", "tcp.checksum.status", "tcp.seq_raw",
          "tcp.len", "tcp.srcport", "udp.dstport", "frame.protocols"]
GOOD, BAD, UNVERIFIED, ABSENT = "1", "0", "2", "3"


def rows(capture):
    command = ["tshark", "-r", capture, "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o",
               "tcp.check_checksum:TRUE", "-o", "tcp.analyze_sequence_numbers:FALSE", "-T", "fields", "-E",
               "occurrence=f"]
    for f in FIELDS:
        command += ["-e", f]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [dict(zip(FIELDS, line.split("\t"))) for line in text.splitlines()]


def main():
    if shutil.which("tshark") is None:
        return 77
    with tempfile.TemporaryDirectory() as folder:
        capture = os.path.join(folder, "frames.pcap")
        environment = dict(os.environ, RNIC_CAPTURE=capture)
        subprocess.run([sys.argv[1], "--gtest_filter=EthernetStanding.AllAtOnce"], env=environment, check=True,
                       stdout=subprocess.DEVNULL)
        frames = rows(capture)
    complaints = []
    plain = [f for f in frames if f["udp.dstport"] != "4791"]
    for number, f in enumerate(plain):
        for status in ("ip.checksum.status", "udp.checksum.status", "tcp.checksum.status"):
            if f[status] not in ("", GOOD):
                complaints.append("frame %d: %s is %s (%s)" % (number, status, f[status], f["frame.protocols"]))
    segments = [f for f in plain if f["tcp.srcport"] == "4010"]
    expected = None
    for f in segments:
        if expected is not None and int(f["tcp.seq_raw"]) not in (expected, 0xfffffe00):
            complaints.append("a segment at %s, expected %d" % (f["tcp.seq_raw"], expected))
        expected = (int(f["tcp.seq_raw"]) + int(f["tcp.len"])) & 0xffffffff
    kinds = {"udp": sum(f["udp.checksum.status"] == GOOD for f in plain),
             "tcp": sum(f["tcp.checksum.status"] == GOOD for f in plain), "segments": len(segments),
             "tagged": sum(f["vlan.id"] == "200" for f in plain), "roce": len(frames) - len(plain)}
    for kind, count in kinds.items():
        if count < 6:
            complaints.append("only %d frames of kind %s" % (count, kind))
    for c in complaints[:20]:
        print(c)
    print(kinds)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
