#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captures two Soft-RoCE guests that meet with errors: receives that come late, requests that are refused.

Usage: capture_pair.py GUEST_FOLDER FOLDER [SCENE...]. Writes FOLDER/SCENE.pcap, as QEMU's filter-dump has seen it at the
card of the guest that answers. The model has no part in it: the frames are Linux's, the commands verbs_peer's.
"""
import os
import struct
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import guest as linux  # noqa: E402
import verbs_cases  # noqa: E402
from bench import PATIENT, PORT  # noqa: E402
from verbs_cases import conformance  # noqa: E402

HOSTS = (("52:54:00:00:00:0a", "10.0.0.1", "fd00::1"), ("52:54:00:00:00:0b", "10.0.0.2", "fd00::2"))
GID4 = "0000:0000:0000:0000:0000:ffff:0a00:%04x"
PATH = {"path_mtu": 512, "min_rnr_timer": 22}  # 20.48 ms
LATE_MS = 60


def late(a, b, post, receive):
    post()
    b.nothing(LATE_MS)
    receive()
    a.sent()
    b.received()


def rc_rnr_mtu512(a, b):
    """Receives come two or three RNR timers after the messages that need them."""
    for e in (a, b):
        e.open("rc")
    a.ready(b, rtr=PATH)
    b.ready(a, rtr=PATH)
    a.fill(1, 0, 4096)
    b.fill(2, 8192, 4096)
    b.receive(b.part(0, 100))
    a.send("send", a.part(0, 100))
    b.received()
    late(a, b, lambda: a.post("send", a.part(0, 1500)), lambda: b.receive(b.part(0, 1500)))
    b.receive(b.part(0, 200))
    for i in range(3):
        a.post("send", a.part(200 * i, 200), wr_id=i)
    a.sent(0)
    b.received()
    for i in (1, 2):
        b.nothing(LATE_MS)
        b.receive(b.part(200 * i, 200))
        a.sent(i)
        b.received()
    late(a, b, lambda: a.post("rdma_write_with_imm", a.part(0, 1000), imm=7, **b.at(2048)), b.receive)
    late(b, a, lambda: b.post("send", b.part(8192, 700)), lambda: a.receive(a.part(8192, 700)))
    a.post("send", a.part(0, 300))
    a.post("rdma_read", a.part(4096, 1200), wr_id=2, **b.at(8192))
    b.nothing(LATE_MS)
    b.receive(b.part(0, 300))
    a.sent()
    a.sent(2)
    b.received()


def rows(names):
    def do(a, b):
        for name in names:
            for line in conformance.run(name, a, b):
                print("  %s: %s" % (name, line), flush=True)
    return do


def rc_window_rebound(a, b):
    """One window of memory again and again: each time at another place, with another low byte of its key."""
    conformance.meet(a, b, region=conformance.ALL_REMOTE + ["mw_bind"])
    window = b.s.alloc_mw(pd=b.pd, type=2)
    key = window["rkey"]
    for i in range(4):
        key = key & ~0xff | (key + 1) & 0xff
        at = b.mr["addr"] + 4096 - 1024 * i
        b.send("bind_mw", mw=window["mw"], mr=b.mr["mr"], addr=at, length=1024 + 512 * i, rkey=key,
               access=["remote_write", "remote_read"])
        a.fill(12 + i, 0, 1024 + 512 * i)
        a.send("rdma_write", a.part(0, 1024 + 512 * i), remote_addr=at, rkey=key)
        a.send("rdma_read", a.part(8192, 1024 + 512 * i), remote_addr=at, rkey=key)
        a.has(12 + i, 8192, 1024 + 512 * i)
        b.receive(b.part(8192, 100))
        a.send("send_with_inv", a.part(0, 100), invalidate_rkey=key)
        b.received()
    a.send("rdma_write", a.part(0, 8), remote_addr=at, rkey=key, status="rem_access_err")


def refused(a, b, region, opcode, length, offset, status="rem_access_err"):
    """A READ of 3000 bytes is granted; what comes then is not."""
    conformance.meet(a, b, region=["local_write", "remote_read", *region])
    b.fill(9, 0, 3000)
    a.send("rdma_read", a.part(0, 3000), **b.at())
    more = {"compare_add": 1} if opcode.startswith("atomic") else {}
    a.send(opcode, a.part(8192, length), wr_id=2, status=status, **more, **b.at(offset))
    for e in (a, b):
        e.close()


def rc_access_errors(a, b):
    """Behind the end of a region, across it, without the right to write or to change, keys that nobody has or that ended."""
    refused(a, b, ["remote_write"], "rdma_write", 64, conformance.BYTES)
    refused(a, b, [], "rdma_read", 2000, conformance.BYTES - 1000)
    refused(a, b, [], "rdma_write", 1500, 512)
    refused(a, b, ["remote_write"], "atomic_fetch_and_add", 8, 1024)
    rows(["write_with_bad_key", "read_with_bad_key", "atomic_with_bad_key", "write_after_deregistration"])(a, b)


def rc_invalid_requests(a, b):
    """A queue pair that grants nothing, receives that are too short or of no memory, and one that never comes."""
    rows(["queue_pair_without_rights", "receive_too_short", "receive_into_a_bad_local_key",
          "receiver_never_ready_two_retries"])(a, b)
    conformance.meet(a, b)
    b.receive(b.part(0, 2000))
    a.send("send", a.part(0, 3000), status="rem_op_err")


SCENES = {f.__name__: f for f in (rc_rnr_mtu512, rc_window_rebound, rc_access_errors, rc_invalid_requests)}


def records(path):
    """Header and records of a capture that QEMU is still writing: whole ones."""
    with open(path, "rb") as f:
        data = f.read()
    at, found = 24, []
    while at + 16 <= len(data):
        length = 16 + struct.unpack_from("<I", data, at + 8)[0]
        if at + length > len(data):
            break
        found.append(data[at:at + length])
        at += length
    return data[:24], found


def capture(scenes, image, folder):
    with tempfile.TemporaryDirectory(prefix="rnic-pair-") as scratch:
        ends = [os.path.join(scratch, name) for name in "ab"]
        whole = os.path.join(scratch, "all.pcap")
        guests = []
        try:
            for i, (mac, ipv4, ipv6) in enumerate(HOSTS):
                link = "dgram,local.type=unix,local.path=%s,remote.type=unix,remote.path=%s" % (ends[i], ends[1 - i])
                guests.append(linux.guest(image, link, [PORT + i], mac=mac, capture=None if i == 0 else whole))
            sides = []
            for i, g in enumerate(guests):
                g.set_up(addresses=(HOSTS[i][1] + "/24", HOSTS[i][2] + "/64"))
                row = g.gid_index(GID4 % (i + 1))
                g.start_server("/usr/bin/verbs_peer rxe0 %d %d" % (row, PORT + i), PORT + i)
                sides.append(conformance.end("ab"[i], verbs_cases.line_peer(PORT + i), HOSTS[i][1], PATIENT))
            a, b = sides
            guests[0].must("ping -c 1 " + HOSTS[1][1])
            header, before = records(whole)
            done = len(before)
            for name in scenes:
                a.wrong, b.wrong = [], []
                SCENES[name](a, b)
                a.close()
                b.close()
                for line in a.wrong + b.wrong:
                    print("  %s: %s" % (name, line))
                time.sleep(0.5)  # answers to what was repeated on the way
                _, now = records(whole)
                with open(os.path.join(folder, name + ".pcap"), "wb") as out:
                    out.write(header + b"".join(now[done:]))
                print("%s: %d frames" % (name, len(now) - done), flush=True)
                done = len(now)
        finally:
            for g in guests:
                g.stop()


def main():
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    image, folder = sys.argv[1:3]
    linux.need_guest(image)
    capture(sys.argv[3:] or list(SCENES), image, folder)


main()
