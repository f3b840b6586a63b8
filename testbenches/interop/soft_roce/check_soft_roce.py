#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The adapter against Soft-RoCE of a Linux guest, live: the verbs ping-pongs of rdma-core in both directions.

Usage: check_soft_roce.py CASE RNIC GUEST_FOLDER, where CASE is stream, rc, srq, rping, cm,
unreliable, addresses, loss or congestion.
"""
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import guest as linux  # noqa: E402

PORT = 18800 + os.getpid() % 100 * 10
GUEST4, MODEL4, GUEST6, MODEL6 = "10.0.0.1", "10.0.0.2", "fd00::1", "fd00::2"
GID4 = "0000:0000:0000:0000:0000:ffff:0a00:0001"
GID6 = "fd00:0000:0000:0000:0000:0000:0000:0001"
SECONDS = 60
GROUP, GROUP_IGMP = "239.1.2.3", "030201EF"


class congested_switch(threading.Thread):
    """Between the guest and the model: every third RoCE v2 packet of the guest is marked as congested."""

    def __init__(self, path, to):
        super().__init__(daemon=True)
        self.to, self.seen, self.marked = to, 0, 0
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.start()

    def run(self):
        while True:
            frame = bytearray(self.socket.recv(16384))
            if frame[12:14] == b"\x08\x00" and frame[23] == 17 and frame[36:38] == struct.pack(">H", 4791):
                self.seen += 1
                if self.seen % 3 == 0:
                    self.marked += 1
                    self.mark(frame)
            try:
                self.socket.sendto(frame, self.to)
            except OSError:  # nobody is there
                pass

    @staticmethod
    def mark(frame):
        frame[15] |= 3
        frame[24:26] = b"\0\0"
        total = sum(struct.unpack(">10H", frame[14:34]))
        total = (total & 0xffff) + (total >> 16)
        frame[24:26] = struct.pack(">H", ~(total + (total >> 16)) & 0xffff)


class bench:
    """The guest, and one `rnic serve` after the other at the other end of its cable."""

    def __init__(self, rnic, image, folder, congested=False):
        self.rnic, self.folder, self.number = rnic, folder, 0
        self.own, self.peer = os.path.join(folder, "model"), os.path.join(folder, "guest")
        towards = os.path.join(folder, "switch") if congested else self.own
        if congested:
            self.switch = congested_switch(towards, self.own)
        self.link = "datagram:unix:%s,%s" % (self.own, self.peer)
        self.guest = linux.guest(image, "dgram,local.type=unix,local.path=%s,remote.type=unix,remote.path=%s" %
                                 (self.peer, towards), [PORT])
        self.guest.set_up()
        self.failures = []
        self.lossy = self.repeat = False

    def serve(self, *arguments):
        self.number += 1
        self.json = os.path.join(self.folder, "%d.json" % self.number)
        self.pcap = os.path.join(self.folder, "%d.pcap" % self.number)
        command = [self.rnic, "serve", "--link", self.link, "--ip", MODEL4, "--ip", MODEL6, "--mac",
                   "02:00:00:00:00:02", "--json", self.json, "--pcap", self.pcap, *arguments]
        model = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        first = model.stdout.readline()
        if not first.startswith("serving"):
            model.kill()
            raise linux.failed("rnic serve: " + first)
        return model

    def end(self, model):
        try:
            text, _ = model.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            model.terminate()
            text, _ = model.communicate(timeout=10)
        return model.returncode, text

    def tool(self, app, size, iterations, mtu, gid, priority, more):
        mtu_option = "" if app == "ud_pingpong" else "-m %d" % mtu
        content = "-c" if app == "rc_pingpong" else ""
        return "timeout %d /usr/bin/ibv_%s -d rxe0 -g %d %s -s %d -n %d -l %d %s %s -p " % (
            SECONDS, app, self.guest.gid_index(gid), mtu_option, size, iterations, priority, content, more)

    def both_ways(self, name, app, size, iterations=8, mtu=1024, gid=GID4, gid_index=None, priority=0, serve=(),
                  tool=""):
        options = ["--app", app, "--size", str(size), "--iterations", str(iterations), "--mtu", str(mtu), "--priority",
                   str(priority), *serve]
        if gid_index is not None:
            options += ["--gid-index", str(gid_index)]
        tool = self.tool(app, size, iterations, mtu, gid, priority, tool)
        model = self.serve(*options, "--server", "--port", str(PORT + 2))
        self.verdict(name + ", the guest is client", model, self.guest.run(tool + "%d 10.0.2.2" % (PORT + 2), SECONDS * 2))
        self.guest.start_server(tool + str(PORT), PORT)
        model = self.serve(*options, "--client", "127.0.0.1", "--port", str(PORT))
        self.verdict(name + ", the guest is server", model, self.guest.finish_server(SECONDS * 2))

    def note(self, name, ok, text=""):
        print("%-60s %s" % (name, "ok" if ok else "FAILED"), flush=True)
        if not ok:
            self.failures.append(name)
            print(text, flush=True)

    def verdict(self, name, model, guest):
        status, text = self.end(model)
        ok = status == 0 and guest[0] == 0
        if ok:
            with open(self.json) as f:
                self.result = result = json.load(f)
            run = result["runs"][0]
            ok = run["ok"] and run["wrong_bytes"] == 0 and max(run["sent"], run["received"]) > 0
            # Each of several queue pairs may be ahead by a message when the others reach the number.
            ok = ok and (run["sent"] == run["received"] or run["app"] in ("srq_pingpong", "mckey"))
            bad = [k for k in result["statistics"] if "bad_icrc" in k or "bad_ip" in k or k.endswith("drop.bad_length")]
            ok = ok and not bad
            text += "".join("%s: %d\n" % (k, result["statistics"][k]) for k in bad)
        if self.lossy and guest[0] == 0 and "work request 2 ended with status 12" in text:
            # The guest has all and has ended; its last acknowledgement was lost, and nobody is there to repeat it.
            print("%-60s once more: the last acknowledgement was lost" % name, flush=True)
            self.repeat = True
            return
        self.note(name, ok)
        if not ok:
            print("--- model, status %s\n%s--- guest, status %d\n%s---" % (status, text, guest[0], guest[1]), flush=True)
            if "RNIC_KEEP" in os.environ:
                shutil.copy(self.pcap, os.environ["RNIC_KEEP"])


def rc(b):
    for mtu in (256, 512, 1024, 2048, 4096):
        b.both_ways("rc, MTU %d" % mtu, "rc_pingpong", 3 * mtu + 77, mtu=mtu)
    b.both_ways("rc, one byte", "rc_pingpong", 1)
    b.both_ways("rc, 64 KiB", "rc_pingpong", 65536, iterations=4, mtu=4096)


def unreliable(b):
    for mtu in (256, 1024, 4096):
        b.both_ways("uc, MTU %d" % mtu, "uc_pingpong", 2 * mtu + 5, mtu=mtu)
    for size in (1, 1024, 4096):
        b.both_ways("ud, %d bytes" % size, "ud_pingpong", size)


def srq(b):
    for qps, mtu in ((1, 1024), (16, 1024), (64, 4096)):
        b.both_ways("srq, %d queue pairs, MTU %d" % (qps, mtu), "srq_pingpong", 2 * mtu + 9, iterations=4 * qps, mtu=mtu,
                    serve=("--qps", str(qps)), tool="-q %d" % qps)
    b.both_ways("srq, receives run out and are posted again", "srq_pingpong", 300, iterations=200,
                serve=("--qps", "4", "--rx-depth", "20"), tool="-q 4 -r 20")


def managed(b, name, app, guest_server, guest_client, model=(), address=MODEL4, client=GUEST4, ready=None):
    """A tool of librdmacm in the guest as client of the model, then as its server; no TCP between them."""
    listens = ready or "/usr/bin/rdma resource show cm_id | grep -q LISTEN"
    if guest_client is not None:
        side = b.serve("--app", app, "--server", *model)
        b.verdict(name + ", the guest is client", side, b.guest.run(
            "timeout %d /usr/bin/%s %s" % (SECONDS, app, guest_client), SECONDS * 2))
    if guest_server is not None:
        b.guest.start("timeout %d /usr/bin/%s %s" % (SECONDS, app, guest_server), listens)
        side = b.serve("--app", app, "--client", client, *model)
        b.verdict(name + ", the guest is server", side, b.guest.finish_server(SECONDS * 2))


def rping(b):
    for size, count, mtu in ((64, 10, 1024), (1000, 5, 256), (65535, 3, 4096)):
        managed(b, "rping, %d bytes, MTU %d" % (size, mtu), "rping", "-s -v -a %s -S %d" % (GUEST4, size),
                "-c -v -V -a %s -C %d -S %d" % (MODEL4, count, size),
                ("--size", str(size), "--iterations", str(count), "--mtu", str(mtu)))
    managed(b, "rping over IPv6", "rping", "-s -a " + GUEST6, "-c -V -a %s -C 4" % MODEL6,
            ("--iterations", "4", "--gid-index", "5"), client=GUEST6)
    managed(b, "rping with a queue pair of its own making", "rping", "-s -q -a " + GUEST4, "-c -q -V -a %s -C 4" % MODEL4,
            ("--iterations", "4"))
    # Nobody listens: the peer says so, on either side.
    side = b.serve("--app", "rping", "--client", GUEST4, "--port", "7999")
    status, text = b.end(side)
    b.note("a service that is not there, the guest refuses", status == 1 and "reason 8" in text, text)
    side = b.serve("--app", "rping", "--server", "--port", "7999", "--duration", "8")
    status, text = b.guest.run("timeout 20 /usr/bin/rping -c -a %s -C 1" % MODEL4, 60)
    b.end(side)
    b.note("a service that is not there, the model refuses", status != 0 and "REJECTED" in text, text)


def cm(b):
    managed(b, "ucmatose", "ucmatose", "-b " + GUEST4, "-s " + MODEL4)
    managed(b, "ucmatose, 8 connections", "ucmatose", "-c 8 -C 20 -S 3000 -b " + GUEST4, "-c 8 -C 20 -S 3000 -s " + MODEL4,
            ("--qps", "8", "--iterations", "20", "--size", "3000"))
    managed(b, "ucmatose over IPv6", "ucmatose", "-b " + GUEST6, "-s " + MODEL6, ("--gid-index", "5"), client=GUEST6)
    managed(b, "udaddy", "udaddy", "-b " + GUEST4, "-s " + MODEL4)
    managed(b, "udaddy, 4 services", "udaddy", "-c 4 -C 5 -S 900 -b " + GUEST4, "-c 4 -C 5 -S 900 -s " + MODEL4,
            ("--qps", "4", "--iterations", "5", "--size", "900"))
    # The model joins the group before the guest sends to it, and the other way round.
    side = b.serve("--app", "mckey", "--server", "--group", GROUP)
    b.verdict("mckey, the guest sends", side, b.guest.run("timeout 30 /usr/bin/mckey -m %s -b %s -s" % (GROUP, GUEST4), 60))
    b.guest.start("timeout 30 /usr/bin/mckey -m %s -b %s" % (GROUP, GUEST4), "grep -q %s /proc/net/igmp" % GROUP_IGMP)
    side = b.serve("--app", "mckey", "--client", GROUP)
    b.verdict("mckey, the model sends", side, b.guest.finish_server(60))


def addresses(b):
    # Rows of the model: 0 and 1 link-local, 2 and 3 IPv4, 4 and 5 IPv6; RoCE v2 is the second one.
    b.both_ways("rc over IPv6", "rc_pingpong", 3333, gid=GID6, gid_index=5)
    b.both_ways("uc over IPv6", "uc_pingpong", 3333, gid=GID6, gid_index=5)
    b.both_ways("ud over IPv6", "ud_pingpong", 900, gid=GID6, gid_index=5)
    link_local = "fe80:0000:0000:0000:5054:00ff:fe00:000a"
    b.both_ways("rc over link-local IPv6", "rc_pingpong", 700, mtu=256, gid=link_local, gid_index=1)
    b.guest.must("/sbin/ip link add link eth0 name eth0.100 type vlan id 100 egress-qos-map 0:4 1:1 2:2 3:3 4:4 5:5 6:6 7:7")
    b.guest.must("/sbin/ip addr add 10.100.0.1/24 dev eth0.100; /sbin/ip link set eth0.100 up; usleep 500000")
    vlan = ("--vlan", "100", "--ip", "10.100.0.2")
    gid = "0000:0000:0000:0000:0000:ffff:0a64:0001"
    for app, size in (("rc_pingpong", 2222), ("ud_pingpong", 800)):
        b.both_ways(app[:2] + " in VLAN 100", app, size, gid=gid, gid_index=7, priority=4, serve=vlan)


def loss(b):
    """What the guest sends is lost at times: requests, which it repeats, and acknowledgements, which the model misses."""
    b.guest.must("/sbin/tc qdisc add dev eth0 root netem loss 2%")
    b.lossy = b.repeat = True
    for _ in range(3):
        if b.repeat:
            b.repeat = False
            b.both_ways("rc, the guest's frames are lost", "rc_pingpong", 3000, iterations=100)
    if b.repeat:
        b.failures.append("the last acknowledgement was lost three times")
    lost = re.search(r"dropped (\d+)", b.guest.must("/sbin/tc -s qdisc show dev eth0"))
    if lost is None or int(lost.group(1)) == 0:
        b.failures.append("no frame was lost")


def congestion(b):
    """Packets of the guest are marked: the model answers with CNPs, which Soft-RoCE does not know and ignores."""
    options = []
    for point in ("notification", "reaction"):
        options += ["--set", "adapter.congestion.%s.priorities=1" % point]
    for app in ("rc_pingpong", "uc_pingpong", "ud_pingpong"):
        size = 1000 if app == "ud_pingpong" else 3000
        b.both_ways(app[:2] + " through a congested switch", app, size, iterations=60, serve=options)
        counted = {k: sum(v for name, v in b.result["statistics"].items() if name.endswith(k))
                   for k in ("np_ecn_marked_roce_packets", "np_cnp_sent")}
        print("%d packets marked, %s" % (b.switch.marked, counted), flush=True)
        if b.switch.marked == 0 or min(counted.values()) == 0:
            b.failures.append(app + ": no CNP was sent")


CASES = {"rc": rc, "srq": srq, "rping": rping, "cm": cm, "unreliable": unreliable, "addresses": addresses, "loss": loss,
         "congestion": congestion}


def stream(rnic, image, folder):
    """QEMU's stream framing, and answers of the model's host to a real network stack."""
    path = os.path.join(folder, "wire")
    model = subprocess.Popen([rnic, "serve", "--link", "listen:unix:" + path, "--ip", MODEL4, "--ip", MODEL6, "--app",
                              "rc_pingpong", "--server", "--port", str(PORT), "--iterations", "10", "--json",
                              os.path.join(folder, "r.json")], stdout=subprocess.PIPE, text=True)
    model.stdout.readline()
    g = None
    try:
        g = linux.guest(image, "stream,server=off,addr.type=unix,addr.path=" + path)
        g.set_up()
        g.must("ping -c 2 -W 5 " + MODEL4)
        g.must("ping -c 2 -W 5 -s 4000 " + MODEL4)
        g.must("ping -6 -c 2 -W 5 " + MODEL6)
        index = g.gid_index(GID4)
        g.must("timeout %d /usr/bin/ibv_rc_pingpong -d rxe0 -g %d -n 10 -p %d 10.0.2.2" % (SECONDS, index, PORT), 120)
        model.communicate(timeout=30)
        if model.returncode != 0:
            raise linux.failed("the model's side ended with status %d" % model.returncode)
        with open(os.path.join(folder, "r.json")) as f:
            network = json.load(f)["network"]
        if network["echo_requests"] < 4 or network["echo6_requests"] < 2 or network["malformed"] != 0:
            raise linux.failed("counted: %s" % network)
    finally:
        if model.poll() is None:
            model.kill()
            model.wait()
        if g is not None:
            g.stop()
    return []


def main():
    case, rnic, image = sys.argv[1:]
    linux.need_guest(image)
    folder = tempfile.mkdtemp(prefix="rnic-interop-")
    try:
        if case == "stream":
            failures = stream(rnic, image, folder)
        else:
            b = bench(rnic, image, folder, case == "congestion")
            try:
                CASES[case](b)
            finally:
                b.guest.stop()
            failures = b.failures
    except linux.failed as e:
        failures = [str(e)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for f in failures:
        print("failed: " + f)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
