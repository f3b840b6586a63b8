#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rnic serve` from outside: two of them together, and peers made of scapy's packets on the sockets.

Usage: check_serve.py CASE RNIC. Exit status 0: as it should be; 1: with a line why not; 77: cannot be tried here.
"""
import fcntl
import json
import os
import random
import re
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

try:
    from scapy.all import (ARP, Dot1Q, Ether, ICMP, ICMPv6DestUnreach, ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_NA,
                           ICMPv6ND_NS, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IP, IPv6, Raw, UDP, rdpcap)
except ImportError:
    print("skipped: there is no scapy")
    sys.exit(77)
try:
    from scapy.contrib.roce import BTH
except ImportError:
    BTH = None

RNIC = sys.argv[2]
FOLDER = tempfile.mkdtemp(prefix="rnic-serve-")
MODEL_MAC, PEER_MAC = "02:00:00:00:00:02", "02:00:00:00:00:01"
MODEL4, PEER4, MODEL6, PEER6 = "10.0.0.2", "10.0.0.1", "fd00::2", "fd00::1"


class wrong(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise wrong(what)


def path(name):
    return os.path.join(FOLDER, name)


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class serve:
    """A process with its results."""

    def __init__(self, name, link, *arguments, mac=MODEL_MAC, addresses=(MODEL4, MODEL6)):
        self.json, self.pcap = path(name + ".json"), path(name + ".pcap")
        command = [RNIC, "serve", "--link", link, "--mac", mac, "--json", self.json, "--pcap", self.pcap, "--overwrite"]
        for a in addresses:
            command += ["--ip", a]
        self.process = subprocess.Popen(command + [str(a) for a in arguments], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("serving"):
            self.process.wait()
            raise wrong("%s did not start: %s" % (name, line))

    def wait(self, seconds=60):
        try:
            self.text, _ = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.text, _ = self.process.communicate()
            raise wrong("did not end within %d s: %s" % (seconds, self.text))
        with open(self.json) as f:
            self.result = json.load(f)
        return self.process.returncode

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.wait(20)
        expect(status == 0, "status %s after SIGTERM: %s" % (status, self.text))
        return self.result


def together(name, links, app, arguments, addresses=((PEER4, PEER6), (MODEL4, MODEL6)), options=()):
    port = free_port()
    a = serve(name + "-a", links[0], "--app", app, "--server", "--port", port, *arguments, *options, addresses=addresses[1])
    b = serve(name + "-b", links[1], "--app", app, "--client", "127.0.0.1", "--port", port, *arguments, *options,
              mac=PEER_MAC, addresses=addresses[0])
    status = [b.wait(), a.wait()]
    expect(status == [0, 0], "%s: status %s\n%s%s" % (name, status, a.text, b.text))
    for side in (a, b):
        run = side.result["runs"][0]
        expect(run["ok"] and run["wrong_bytes"] == 0, "%s: %s" % (name, run))
        link = side.result["link"]
        # The last message of one of several queue pairs may find a peer that has had enough and is gone.
        gone = link["drop"]["no_peer"] if app == "srq_pingpong" else 0
        expect(sum(link["drop"].values()) == gone, "%s: %s" % (name, link))
        captured = len(rdpcap(side.pcap))
        expect(captured == link["frames_in"] + link["frames_out"] + gone,
               "%s: %d frames captured, %s" % (name, captured, link))
    received, sent = a.result["runs"][0]["received"], b.result["runs"][0]["sent"]
    # One of several queue pairs may be ahead when all of them together have enough.
    expect(received == sent or app == "srq_pingpong" and min(received, sent) >= 20, name + ": numbers of messages")
    print(name, "ok", flush=True)
    return a, b


def pairs_of_links():
    tcp, udp1, udp2 = free_port(), free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_DGRAM)
    return {
        "unix stream": ("listen:unix:" + path("s"), "connect:unix:" + path("s")),
        "tcp stream": ("listen:tcp:127.0.0.1:%d" % tcp, "connect:tcp:127.0.0.1:%d" % tcp),
        "unix datagram": ("datagram:unix:%s,%s" % (path("x"), path("y")), "datagram:unix:%s,%s" % (path("y"), path("x"))),
        "udp datagram": ("datagram:udp:127.0.0.1:%d,127.0.0.1:%d" % (udp1, udp2),
                         "datagram:udp:127.0.0.1:%d,127.0.0.1:%d" % (udp2, udp1)),
    }


def pingpong():
    for kind, links in pairs_of_links().items():
        for app in ("rc_pingpong", "uc_pingpong", "ud_pingpong", "srq_pingpong"):
            size = 900 if app == "ud_pingpong" else 3000
            together("%s over %s" % (app, kind), links, app, ["--iterations", 20, "--size", size])


def encapsulations(capture):
    found = set()
    for f in rdpcap(capture):
        tag = f.getlayer(Dot1Q)
        kind = tag.type if tag else f.type
        if kind == 0x8915 or (UDP in f and f[UDP].dport == 4791):
            found.add((hex(kind), tag.vlan if tag else 0, tag.prio if tag else 0))
    return found


def versions():
    links = pairs_of_links()["unix stream"]
    six = ((PEER6,), (MODEL6,))
    for name, options, addresses, seen in (
            ("RoCE v2 over IPv4", ["--mtu", 256], ((PEER4,), (MODEL4,)), ("0x800", 0, 0)),
            ("RoCE v2 over IPv6", ["--mtu", 4096], six, ("0x86dd", 0, 0)),
            ("RoCE v1", ["--roce", "v1"], six, ("0x8915", 0, 0)),
            ("VLAN", ["--vlan", 100, "--priority", 5], six, ("0x86dd", 100, 5))):
        for app in ("rc_pingpong", "ud_pingpong"):
            a, _ = together("%s, %s" % (app, name), links, app, ["--iterations", 5, "--size", 1000], addresses, options)
            found = encapsulations(a.pcap)
            expect(found == {seen}, "%s: frames are %s" % (name, found))
    a, b = together("link-local", links, "rc_pingpong", ["--iterations", 5, "--gid-index", 1], addresses=((), ()))
    expect(a.result["network"]["asked"] == 1 and b.result["network"]["solicitations"] == 1, "link-local: not asked for")


class wire:
    """The other end of a UNIX datagram link."""

    def __init__(self, *arguments, **more):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path("peer"))
        self.model = serve("model", "datagram:unix:%s,%s" % (path("model"), path("peer")), *arguments, **more)

    def send(self, frame):
        self.socket.sendto(bytes(frame), path("model"))

    def receive(self, seconds):
        self.socket.settimeout(seconds)
        try:
            return Ether(self.socket.recv(65536))
        except socket.timeout:
            return None

    def ask(self, frame, seconds=5):
        self.send(frame)
        answer = self.receive(seconds)
        expect(answer is not None, "no answer to %s" % frame.summary())
        return answer

    def silence(self, frame):
        """The frame is not answered, and what follows it is."""
        self.send(frame)
        answer = self.ask(self.arp())
        expect(ARP in answer, "%s was answered by %s" % (Ether(bytes(frame)).summary(), answer.summary()))

    @staticmethod
    def arp(target=MODEL4):
        return Ether(src=PEER_MAC, dst="ff:ff:ff:ff:ff:ff") / ARP(op=1, hwsrc=PEER_MAC, psrc=PEER4, pdst=target)


def checked(packet, layer, field="chksum"):
    """The checksum is what scapy makes of the same packet."""
    again = Ether(bytes(packet))
    delattr(again[layer], field)
    if IP in again and layer != IP:
        del again[IP].chksum
    again = Ether(bytes(again))
    expect(getattr(again[layer], field) == getattr(packet[layer], field), "checksum of %s" % packet.summary())


def solicitation(target, source=PEER6, option=True, hops=255, tag=None):
    group = "ff02::1:ff%02x:%02x%02x" % tuple(socket.inet_pton(socket.AF_INET6, target)[13:])
    link = Ether(src=PEER_MAC, dst="33:33:ff:%02x:%02x:%02x" % tuple(socket.inet_pton(socket.AF_INET6, target)[13:]))
    if tag is not None:
        link = link / Dot1Q(vlan=tag, prio=3)
    body = IPv6(src=source, dst=group, hlim=hops) / ICMPv6ND_NS(tgt=target)
    return link / (body / ICMPv6NDOptSrcLLAddr(lladdr=PEER_MAC) if option else body)


def network():
    w = wire()
    a = w.ask(w.arp())
    expect(a.src == MODEL_MAC and a.dst == PEER_MAC and a[ARP].op == 2 and a[ARP].hwsrc == MODEL_MAC and
           a[ARP].psrc == MODEL4 and a[ARP].pdst == PEER4 and a[ARP].hwdst == PEER_MAC, "ARP: " + a.show(dump=True))
    expect(len(a) == 60, "the reply has %d bytes, not those of the shortest frame" % len(a))
    probe = w.arp()
    probe[ARP].psrc = "0.0.0.0"
    expect(w.ask(probe)[ARP].op == 2, "a probe is not answered")
    w.silence(w.arp("10.0.0.3"))
    elsewhere = w.arp()
    elsewhere.dst = "02:00:00:00:00:77"
    w.silence(elsewhere)
    for size in (0, 1, 56, 1473, 4000):
        data = bytes(random.Random(size).randrange(256) for _ in range(size))
        head = Ether(src=PEER_MAC, dst=MODEL_MAC)
        e = w.ask(head / IP(src=PEER4, dst=MODEL4, ttl=3) / ICMP(id=7, seq=size) / Raw(data))
        expect(e[ICMP].type == 0 and e[ICMP].id == 7 and e[ICMP].seq == size and e[IP].src == MODEL4 and
               bytes(e[ICMP].payload)[:size] == data, "echo of %d bytes" % size)
        checked(e, IP)
        checked(e, ICMP)
        e = w.ask(head / IPv6(src=PEER6, dst=MODEL6) / ICMPv6EchoRequest(id=9, seq=size, data=data))
        expect(e[ICMPv6EchoReply].data[:size] == data and e[IPv6].src == MODEL6, "echo of %d bytes over IPv6" % size)
        checked(e, ICMPv6EchoReply, "cksum")
    for target in (MODEL6, "fe80::ff:fe00:2"):
        n = w.ask(solicitation(target))
        expect(n[ICMPv6ND_NA].tgt == target and n[ICMPv6ND_NA].S == 1 and n[ICMPv6ND_NA].O == 1 and
               n[ICMPv6NDOptDstLLAddr].lladdr == MODEL_MAC and n[IPv6].hlim == 255 and n.dst == PEER_MAC, n.show(dump=True))
        checked(n, ICMPv6ND_NA, "cksum")
    n = w.ask(solicitation(MODEL6, source="::", option=False))  # duplicate address detection
    expect(n[IPv6].dst == "ff02::1" and n[ICMPv6ND_NA].S == 0 and n.dst == "33:33:00:00:00:01", n.show(dump=True))
    w.silence(solicitation("fd00::3"))
    w.silence(solicitation(MODEL6, tag=5))
    counted = w.model.stop()
    expect(counted["network"]["echo_requests"] == 5 and counted["network"]["echo6_requests"] == 5, counted["network"])
    expect(counted["network"]["malformed"] == 0, counted["network"])
    expect(counted["statistics"]["served.adapter.steering.drop.no_match"] == 2, "frames for other hosts and groups")

    os.unlink(path("peer"))
    w = wire("--vlan", 100)
    tagged = Ether(src=PEER_MAC, dst=MODEL_MAC) / Dot1Q(vlan=100, prio=3)
    e = w.ask(tagged / IP(src=PEER4, dst=MODEL4) / ICMP())
    expect(e[Dot1Q].vlan == 100 and e[Dot1Q].prio == 3, "echo in a VLAN")
    n = w.ask(solicitation(MODEL6, tag=100))
    expect(n[Dot1Q].vlan == 100 and n[ICMPv6ND_NA].tgt == MODEL6, "advertisement in a VLAN")
    w.send(w.arp())
    w.send(Ether(src=PEER_MAC, dst=MODEL_MAC) / Dot1Q(vlan=101) / IP(src=PEER4, dst=MODEL4) / ICMP())
    expect(w.receive(0.5) is None, "answered outside of the VLAN")
    expect(w.model.stop()["network"]["not_for_us"] == 2, "frames outside of the VLAN are not counted")


def malformed():
    """No frame may stop it or be answered wrongly, whatever it holds."""
    w = wire()
    head = Ether(src=PEER_MAC, dst=MODEL_MAC)
    good4 = bytes(head / IP(src=PEER4, dst=MODEL4) / ICMP() / Raw(b"x" * 40))
    good6 = bytes(head / IPv6(src=PEER6, dst=MODEL6) / ICMPv6EchoRequest(data=b"x" * 40))
    bad = {
        "ICMP checksum": good4[:60] + b"?" + good4[61:],
        "IP checksum": good4[:26] + b"?" + good4[27:],
        "IP version": good4[:14] + b"\x55" + good4[15:],
        "IP header length": good4[:14] + b"\x42" + good4[15:],
        "IP length beyond the frame": good4[:16] + b"\x7f\xff" + good4[18:],
        "ICMPv6 checksum": good6[:70] + b"?" + good6[71:],
        "IPv6 length beyond the frame": good6[:18] + b"\x7f\xff" + good6[20:],
        "hop limit of a solicitation": bytes(solicitation(MODEL6, hops=254)),
        "detection with an option": bytes(solicitation(MODEL6, source="::")),
        "option of length 0": bytes(solicitation(MODEL6, option=False) / Raw(b"\x01\x00" + b"x" * 6)),
        "option that is cut": bytes(solicitation(MODEL6, option=False) / Raw(b"\x01\x02" + b"x" * 6)),
        "ARP of another hardware": bytes(w.arp())[:14] + b"\0\7" + bytes(w.arp())[16:],
        "ARP of a group's address": bytes(head / ARP(op=1, hwsrc="01:00:5e:00:00:01", psrc=PEER4, pdst="10.0.0.9")),
    }
    for name, frame in bad.items():
        w.silence(Ether(frame))
    w.silence(head / IP(src=PEER4, dst=MODEL4, flags="MF") / ICMP() / Raw(b"x" * 40))
    w.silence(head / IP(src=PEER4, dst=MODEL4) / UDP(dport=7) / Raw(b"x"))
    w.silence(head / IPv6(src=PEER6, dst=MODEL6) / ICMPv6DestUnreach())
    for frame in (b"", b"x", b"x" * 13):
        w.send(frame)
    w.send(b"\xff" * 12000)
    w.send(head / IP(src=PEER4, dst=MODEL4) / UDP(dport=4791) / Raw(b"?" * 30))  # RoCE that is none
    chance = random.Random(7)
    w.socket.settimeout(10)
    seeds = [good4, good6, bytes(w.arp()), bytes(solicitation(MODEL6)), bytes(head / Dot1Q(vlan=7) / IP() / ICMP())]
    for i in range(3000):
        f = bytearray(chance.choice(seeds))
        for _ in range(chance.randrange(1, 6)):
            f[chance.randrange(12, len(f))] = chance.randrange(256)
        w.send(bytes(f[:chance.randrange(14, len(f) + 1)]))
        if i % 50 == 0:
            while select.select([w.socket], [], [], 0)[0]:
                w.socket.recv(65536)
    while w.receive(1) is not None:
        pass
    expect(ARP in w.ask(w.arp()), "no answer any more")
    counted = w.model.stop()
    expect(counted["network"]["malformed"] > len(bad) - 2, counted["network"])
    expect(counted["link"]["drop"]["runt"] == 3 and counted["link"]["drop"]["oversized"] == 1, counted["link"])


def framed(frame):
    return struct.pack(">I", len(frame)) + bytes(frame)


class stream_peer:
    def __init__(self, link):
        self.socket = socket.socket(socket.AF_UNIX)
        end = time.monotonic() + 10
        while True:
            try:
                self.socket.connect(link)
                break
            except OSError:
                expect(time.monotonic() < end, "nobody listens")
                time.sleep(0.05)

    def exactly(self, n, seconds=5):
        self.socket.settimeout(seconds)
        got = b""
        while len(got) < n:
            more = self.socket.recv(n - len(got))
            if not more:
                raise EOFError
            got += more
        return got

    def receive(self):
        return Ether(self.exactly(struct.unpack(">I", self.exactly(4))[0]))

    def asks(self):
        self.socket.sendall(framed(wire.arp()))
        expect(self.receive()[ARP].psrc == MODEL4, "no answer")


def stream():
    m = serve("model", "listen:unix:" + path("s"))
    p = stream_peer(path("s"))
    p.asks()
    for byte in framed(wire.arp()):  # in the smallest pieces
        p.socket.sendall(bytes([byte]))
        time.sleep(0.002)
    expect(ARP in p.receive(), "no answer to a frame in pieces")
    p.socket.sendall(framed(wire.arp()) * 3)  # and several in one
    for _ in range(3):
        expect(ARP in p.receive(), "no answer to frames in one piece")
    p.socket.sendall(framed(b"x" * 5) + framed(b"x" * 20000) + framed(wire.arp()))  # runt, oversized: the stream goes on
    expect(ARP in p.receive(), "no answer behind an oversized frame")
    for claim in (0, 100000, 0xffffffff):
        p = stream_peer_after_close(p, struct.pack(">I", claim) + b"?" * 1000)
        p.asks()
    p.socket.sendall(framed(wire.arp())[:20])  # half a frame, and gone
    p.socket.close()
    p = stream_peer(path("s"))
    p.asks()
    link = m.stop()["link"]
    expect(link["drop"]["runt"] == 1 and link["drop"]["oversized"] == 1 and link["bad_length"] == 3 and
           link["half_frames"] == 1 and link["connections"] == 5 and link["disconnections"] == 4, link)


def stream_peer_after_close(p, nonsense):
    p.socket.sendall(nonsense)
    try:
        p.exactly(1)
        raise wrong("the stream goes on after an impossible length")
    except (EOFError, ConnectionResetError):
        return stream_peer(path("s"))


def reconnect():
    """The one that connects finds its peer again, and one that does not read is no danger."""
    listener = socket.socket(socket.AF_UNIX)
    m = serve("model", "connect:unix:" + path("late"))
    time.sleep(0.3)
    for round_ in range(3):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path("late"))
        listener.listen()
        listener.settimeout(10)
        p = stream_peer.__new__(stream_peer)
        p.socket, _ = listener.accept()
        p.asks()
        p.socket.close()
        listener.close()
        os.unlink(path("late"))
    expect(m.stop()["link"]["connections"] == 3, m.result["link"])
    m = serve("model", "listen:unix:" + path("s"))
    p = stream_peer(path("s"))
    echo = bytes(Ether(src=PEER_MAC, dst=MODEL_MAC) / IP(src=PEER4, dst=MODEL4) / ICMP() / Raw(b"x" * 4000))
    for _ in range(1000):
        p.socket.sendall(framed(echo))
    time.sleep(1)
    p.socket.close()
    p = stream_peer(path("s"))
    p.asks()
    dropped = m.stop()["link"]["drop"]["queue_full"]
    statistics = m.result["statistics"]
    lost = dropped + sum(v for k, v in statistics.items() if ".drop." in k)
    expect(lost > 0, "4 MB wait somewhere: %s" % m.result)


def time_():
    """Simulated time is never ahead of real time, keeps step, and an idle adapter costs next to nothing."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    m = serve("idle", "listen:unix:" + path("s"), "--duration", 4)
    expect(m.wait() == 0, m.text)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    t = m.result["time"]
    expect(t["simulated_us"] <= t["real_us"], "ahead: %s" % t)
    expect(t["simulated_us"] > 0 and t["real_us"] < 10_000_000, "time: %s" % t)
    expect(spent < 1.5, "%.2f s of processor time for 4 s of nothing" % spent)
    w = wire()
    started = time.monotonic()
    while time.monotonic() < started + 3:
        w.ask(w.arp())
        time.sleep(0.02)
    t = w.model.stop()["time"]
    expect(t["simulated_us"] <= t["real_us"] and t["simulated_us"] > t["real_us"] - 1_000_000, "not in step: %s" % t)
    # The capture's clock is the simulation's: answers cannot have been sent before they were asked, nor much later.
    frames = rdpcap(w.model.pcap)
    waits = [float(b.time - a.time) for a, b in zip(frames[::2], frames[1::2])]
    expect(all(0 < x < 0.001 for x in waits), "answers after %s s of simulated time" % max(waits))
    span = float(frames[-1].time - frames[0].time)
    expect(2 < span < 3.5, "3 s of questions are %.2f s of simulated time" % span)
    # A machine that is too slow: here it stands still for a while, in the middle of work.
    links, port = pairs_of_links()["unix stream"], free_port()
    a = serve("slow", links[0], "--app", "rc_pingpong", "--server", "--port", port, "--iterations", 4000)
    b = serve("fast", links[1], "--app", "rc_pingpong", "--client", "127.0.0.1", "--port", port, "--iterations", 4000,
              mac=PEER_MAC, addresses=(PEER4,))
    while "remote address" not in b.process.stdout.readline():
        pass
    time.sleep(0.1)
    a.process.send_signal(signal.SIGSTOP)
    time.sleep(0.2)
    a.process.send_signal(signal.SIGCONT)
    expect([a.wait(), b.wait()] == [0, 0], "did not survive a pause: %s%s" % (a.text, b.text))
    expect(a.result["time"]["max_behind_us"] > 50_000 and a.result["time"]["lagging_us"] > 0,
           "lagged and did not say so: %s" % a.result["time"])
    expect(a.result["time"]["simulated_us"] <= a.result["time"]["real_us"], "ahead: %s" % a.result["time"])


def ends():
    for number in (signal.SIGINT, signal.SIGTERM):
        w = wire()
        w.ask(w.arp())
        w.model.process.send_signal(number)
        expect(w.model.wait(10) == 0 and w.model.result["signal"] == number, "after %s: %s" % (number, w.model.text))
        expect(len(rdpcap(w.model.pcap)) == 2, "the capture is not whole")
        expect(not os.path.exists(path("model")), "the socket is left behind")
        os.unlink(path("peer"))
    # In the middle of an application, with nobody at the other end.
    m = serve("lonely", "listen:unix:" + path("s"), "--app", "rc_pingpong", "--server", "--port", free_port())
    time.sleep(0.2)
    m.process.send_signal(signal.SIGINT)
    expect(m.wait(10) == 1, "an application that never met its peer has not succeeded")


def refusals():
    busy = socket.socket()
    busy.bind(("127.0.0.1", 0))
    busy.listen()
    link = ["--link", "listen:unix:" + path("s")]
    port = str(busy.getsockname()[1])
    for arguments, word in (
            ([], "--link"),
            (["--link", "carrier:pigeon"], "listen:, connect:, datagram: or tap:"),
            (["--link", "listen:tcp:127.0.0.1"], "HOST:PORT"),
            (["--link", "listen:tcp:127.0.0.1:99999"], "65535"),
            (["--link", "listen:udp:127.0.0.1:5"], "listen:tcp:"),
            (["--link", "datagram:unix:" + path("x")], "comma"),
            (["--link", "listen:unix:" + "x" * 200], "107"),
            (["--link", "listen:unix:/nowhere/at/all"], "No such file"),
            (["--link", "listen:tcp:127.0.0.1:" + port], "in use"),
            (link + ["--ip", "10.0.0"], "--ip"),
            (link + ["--ip", "224.0.0.1"], "--ip"),
            (link + ["--mac", "01:00:5e:00:00:01"], "--mac"),
            (link + ["--app", "rc_pingpong"], "--server or --client"),
            (link + ["--server"], "--app"),
            (link + ["--app", "telnet", "--server"], "--app"),
            (link + ["--app", "ud_pingpong", "--server", "--size", "5000"], "4096"),
            (link + ["--app", "rc_pingpong", "--server", "--gid-index", "100"], "--gid-index"),
            (link + ["--app", "rc_pingpong", "--server", "--port", port], "--port")):
        done = subprocess.run([RNIC, "serve"] + arguments, capture_output=True, text=True, timeout=20)
        lines = done.stderr.strip().splitlines()
        expect(done.returncode == 2 and len(lines) == 1 and word in lines[0],
               "%s: status %d, '%s'" % (arguments, done.returncode, done.stderr))


def strangers():
    """Peers of the address exchange that are none."""
    port = free_port()
    m = serve("model", "listen:unix:" + path("s"), "--app", "rc_pingpong", "--server", "--port", port, "--repeat", 4)
    no_such = b"0000:000011:000000:" + b"00000000000000000000ffff0a000063" + b"\0"
    for text in (b"", b"GET / HTTP/1.0\r\n\r\n" + b" " * 60, b"x" * 52, no_such):
        s = socket.create_connection(("127.0.0.1", port))
        s.sendall(text)
        if not text:
            s.close()
            continue
        s.settimeout(20)
        try:
            while s.recv(100):
                pass
        except OSError:
            pass
        s.close()
    expect(m.wait(60) == 1, m.text)
    errors = [r["error"] for r in m.result["runs"]]
    expect(len(errors) == 4 and "did not tell" in errors[0] and "no sense" in errors[1] and "no sense" in errors[2] and
           "no neighbour" in errors[3], errors)
    nobody = subprocess.run([RNIC, "serve", "--link", "listen:unix:" + path("t"), "--app", "rc_pingpong", "--client",
                             "127.0.0.1", "--port", str(free_port())], capture_output=True, text=True, timeout=60)
    expect(nobody.returncode == 1 and "nobody answers" in nobody.stdout, nobody.stdout)


def connected(w, port, qpn=0x11, psn=100):
    """A queue pair of the model's that believes in ours: number and PSN."""
    with socket.create_connection(("127.0.0.1", port)) as s:
        s.settimeout(20)
        gid = "00000000000000000000ffff" + socket.inet_aton(PEER4).hex()
        s.sendall(b"0000:%06x:%06x:%s\0" % (qpn, psn, gid.encode()))
        asked = w.receive(10)
        expect(asked is not None and ARP in asked and asked[ARP].pdst == PEER4 and asked[ARP].psrc == MODEL4, "not asked for")
        w.send(Ether(src=PEER_MAC, dst=MODEL_MAC) /
               ARP(op=2, hwsrc=PEER_MAC, psrc=PEER4, hwdst=MODEL_MAC, pdst=MODEL4))
        text = s.recv(52).decode()
        s.sendall(b"done\0")
    words = text.split(":")
    return int(words[1], 16), int(words[2], 16)


def fuzz():
    """Frames with a good ICRC and anything behind it, to a queue pair that lives."""
    try:
        from scapy.contrib.roce import BTH
    except ImportError:
        print("skipped: scapy has no RoCE")
        return 77
    chance = random.Random(11)
    answers = 0
    for app in ["rc_pingpong", "rc_pingpong", "rc_pingpong", "uc_pingpong", "ud_pingpong"]:
        port = free_port()
        w = wire("--app", app, "--server", "--port", port, "--size", 1000, "--duration", 120)
        qpn, _ = connected(w, port)
        psn = 100
        for _ in range(150):
            opcode = chance.choice([0, 1, 2, 3, 4, 6, 10, 12, 16, 17, 19, 20, 0x64, 0x24, 0x81, chance.randrange(256)])
            length = chance.choice([0, 4, 8, 16, 28, 1000, 1008, 1024, 1028, 3000])
            w.send(Ether(src=PEER_MAC, dst=MODEL_MAC) / IP(src=PEER4, dst=MODEL4) / UDP(sport=0xc011, dport=4791) /
                   BTH(opcode=opcode, dqpn=chance.choice([qpn, qpn, qpn, qpn, 1, chance.randrange(1 << 24)]),
                       psn=chance.choice([psn, psn, psn + 1, psn - 1, chance.randrange(1 << 24)]) & 0xffffff,
                       ackreq=chance.randrange(2), padcount=chance.choice([0, 0, 0, chance.randrange(4)]),
                       version=chance.choice([0] * 9 + [1]), pkey=chance.choice([0xffff] * 5 + [0x1234])) /
                   Raw(bytes(chance.randrange(256) for _ in range(length))))
            psn += chance.randrange(2)
        while (answer := w.receive(0.5)) is not None:
            answers += UDP in answer
        expect(ARP in w.ask(w.arp()), app + ": no answer any more")
        w.model.process.send_signal(signal.SIGTERM)
        status = w.model.wait(20)
        expect(status in (0, 1), "%s: status %s: %s" % (app, status, w.model.text))
        expect(w.model.result["statistics"]["served.adapter.parser1.roce_frames"] > 10, app + ": nothing arrived")
        w.socket.close()
        os.unlink(path("peer"))
    expect(answers > 5, "%d answers in all" % answers)
    return 0


def managed(name, app, server=(), client=(), addresses=((PEER4,), (MODEL4,)), to=MODEL4, options=()):
    """Two models meet through the connection manager, without any other connection between them."""
    links = pairs_of_links()["unix stream"]
    a = serve(name + "-a", links[0], "--app", app, "--server", *server, *options, addresses=addresses[1])
    b = serve(name + "-b", links[1], "--app", app, "--client", to, *client, *options, mac=PEER_MAC, addresses=addresses[0])
    status = [b.wait(), a.wait()]
    expect(status == [0, 0], "%s: status %s\n%s%s" % (name, status, a.text, b.text))
    for side in (a, b):
        run = side.result["runs"][0]
        expect(run["ok"] and run["wrong_bytes"] == 0, "%s: %s" % (name, run))
        counted = side.result["connection_manager"]
        expect(counted["malformed"] == counted["unknown_id"] == counted["wrong_state"] == 0, "%s: %s" % (name, counted))
    print(name, "ok", flush=True)
    return a, b


def connections():
    a, b = managed("rping", "rping", client=["--iterations", 5, "--size", 5000])
    expect(a.result["runs"][0]["received"] == b.result["runs"][0]["sent"] == 5, "numbers of pings")
    dissected(b.pcap)
    managed("rping-v1", "rping", client=["--iterations", 3], options=["--roce", "v1"])
    managed("rping-ipv6", "rping", client=["--iterations", 3], addresses=((PEER6,), (MODEL6,)), to=MODEL6)
    managed("rping-vlan", "rping", client=["--iterations", 3], options=["--vlan", 77, "--priority", 3])
    managed("ucmatose", "ucmatose", options=["--qps", 5])
    a, b = managed("udaddy", "udaddy", options=["--qps", 3])
    expect(a.result["runs"][0]["received"] == 30, "numbers of datagrams")
    links = pairs_of_links()["unix stream"]
    a = serve("mckey-a", links[0], "--app", "mckey", "--server", "--group", "239.9.8.7")
    b = serve("mckey-b", links[1], "--app", "mckey", "--client", "239.9.8.7", mac=PEER_MAC, addresses=(PEER4, PEER6))
    expect([b.wait(), a.wait()] == [0, 0] and a.result["runs"][0]["received"] == 10, "mckey: " + a.text + b.text)
    nobody = serve("nobody-a", links[0], "--app", "rping", "--server", "--port", 7999)
    b = serve("nobody-b", links[1], "--app", "rping", "--client", MODEL4, mac=PEER_MAC, addresses=(PEER4, PEER6))
    expect(b.wait() == 1 and "reason 8" in b.text, "a service that is not there: " + b.text)
    nobody.process.terminate()
    nobody.wait()


def dissected(capture):
    """Our side of a conversation as tshark reads it."""
    if shutil.which("tshark") is None:
        print("without tshark")
        return
    fields = ["infiniband.mad.attributeid", "infiniband.cm.req.serviceid.dport", "infiniband.cm.req.retrcount",
              "infiniband.cm.req.prim_locallid", "infiniband.cm.req.ip_cm.sip4", "infiniband.cm.req.ip_cm.dip4",
              "infiniband.cm.req.ip_cm.ipv", "infiniband.cm.req.responderres", "infiniband.cm.rep.rnrretrcount", "ip.src"]
    command = ["tshark", "-r", capture, "-Y", "infiniband.mad", "-T", "fields", "-E", "separator=,"]
    for f in fields:
        command += ["-e", f]
    rows = [r.split(",") for r in subprocess.run(command, capture_output=True, text=True).stdout.splitlines()]
    expect([int(r[0], 16) for r in rows] == [0x10, 0x13, 0x14, 0x15, 0x16], "messages: %s" % rows)
    req = rows[0]
    expect([int(req[i], 16) for i in (1, 2, 6, 7)] == [7174, 7, 4, 1] and req[3] == "65535" and req[4] == PEER4 and
           req[5] == MODEL4 and req[9] == PEER4, "REQ: %s" % req)
    expect(int(rows[1][8], 16) == 7 and rows[1][9] == MODEL4, "REP: %s" % rows[1])
    wrong_ones = subprocess.run(["tshark", "-r", capture, "-Y", "_ws.malformed"], capture_output=True, text=True).stdout
    expect(wrong_ones == "", "malformed: " + wrong_ones)


GSI_KEY = 0x80010000


def datagram(mad, key=GSI_KEY, qpn=1, pkey=0xffff, source=1, damage=0, opcode=0x64):
    """A management datagram as scapy builds it, with its ICRC."""
    pad = -len(mad) % 4
    frame = bytearray(bytes(Ether(src=PEER_MAC, dst=MODEL_MAC) / IP(src=PEER4, dst=MODEL4, flags="DF", ttl=64) /
                            UDP(sport=0xc123, dport=4791, chksum=0) /
                            BTH(opcode=opcode, padcount=pad, pkey=pkey, dqpn=qpn, psn=0) /
                            Raw(struct.pack(">II", key, source) + mad + b"\0" * pad)))
    frame[-1] ^= damage
    return bytes(frame)


def linux_request():
    """The REQ of a Linux host for rping, from a capture, with our addresses."""
    here = os.path.dirname(os.path.abspath(__file__))
    for frame in rdpcap(os.path.join(here, "../../../traces/cm_rping_800B.pcap")):
        if UDP in frame and frame[UDP].dport == 4791 and len(frame) == 322:
            mad = bytearray(bytes(frame)[14 + 20 + 8 + 12 + 8:][:256])
            mapped = b"\0" * 10 + b"\xff\xff"
            mad[80:96], mad[96:112] = mapped + socket.inet_aton(PEER4), mapped + socket.inet_aton(MODEL4)
            mad[164 + 16:164 + 20], mad[164 + 32:164 + 36] = socket.inet_aton(PEER4), socket.inet_aton(MODEL4)
            return mad
    raise wrong("the capture has no REQ")


def message(attribute, local, remote, body=b""):
    head = struct.pack(">BBBBHHQHHI", 1, 7, 2, 3, 0, 0, 0x1234, attribute, 0, 0)
    return (head + struct.pack(">II", local, remote) + body).ljust(256, b"\0")


def answer(w, frame=None, seconds=5):
    """(attribute, local, remote, MAD) of the next management datagram from the model."""
    if frame is not None:
        w.send(frame)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        f = w.receive(end - time.monotonic())
        if f is None:
            break
        if ARP in f and f[ARP].op == 1:
            w.send(Ether(src=PEER_MAC, dst=MODEL_MAC) / ARP(op=2, hwsrc=PEER_MAC, psrc=PEER4, hwdst=MODEL_MAC, pdst=MODEL4))
        elif UDP in f and f[UDP].dport == 4791 and len(f) == 322:
            mad = bytes(f)[62:318]
            return struct.unpack(">H", mad[16:18])[0], *struct.unpack(">II", mad[24:32]), mad
    raise wrong("no management datagram")


def intruders():
    """Management datagrams of hosts that do not mean well."""
    if BTH is None:
        print("skipped: this scapy knows no RoCE")
        return 77
    w = wire("--app", "rping", "--server", "--repeat", 0)
    rng = random.Random(77)
    req = linux_request()
    for frame in (datagram(req, key=0x11111111), datagram(req, key=0), datagram(req, pkey=0x1234), datagram(req, pkey=0),
                  datagram(req, qpn=0), datagram(req, qpn=0x202), datagram(req, qpn=0x203), datagram(req, qpn=0x208),
                  datagram(req, qpn=0xfffff), datagram(req, damage=1), datagram(req[:252]), datagram(req[:255]),
                  datagram(req + b"xxxx"), datagram(b""), datagram(req * 8), datagram(req, opcode=0x65),
                  datagram(req, opcode=0x04), datagram(req, opcode=0x24)):
        w.silence(frame)
    for at, value in ((0, 0), (0, 2), (1, 1), (1, 3), (1, 4), (1, 0x81), (2, 1), (3, 1), (3, 0x81), (17, 0), (17, 0x30)):
        bad = bytearray(req)
        bad[at] = value
        w.silence(datagram(bytes(bad)))
    for _ in range(300):  # noise in every field of every message
        mad = bytearray(rng.randbytes(256))
        mad[0:4], mad[16:18] = b"\1\7\2\3", struct.pack(">H", rng.choice((0x11, 0x12, 0x13, 0x14, 0x16, 0x18, 0x19, 0x1a)))
        w.send(datagram(bytes(mad)))
    w.silence(datagram(bytes(256)))
    # Requests get the answer of the standard.
    other = bytearray(req)
    other[38:40] = struct.pack(">H", 9999)
    kind, _, remote, mad = answer(w, datagram(bytes(other)))
    expect((kind, remote, mad[34:36]) == (0x12, struct.unpack(">I", req[24:28])[0], b"\0\x08"), "no REJ for a service")
    kind, local, remote, _ = answer(w, datagram(message(0x15, 0x1111, 0x2222)))
    expect((kind, local, remote) == (0x16, 0x2222, 0x1111), "a DREQ of nothing is not answered")
    kind, _, _, mad = answer(w, datagram(message(0x17, 0x77, 0)))
    expect(kind == 0x18 and mad[28] != 0, "no answer for a service of datagrams")
    # A client that changes its mind, and one that means it.
    mine = struct.unpack(">I", req[24:28])[0]
    kind, theirs, remote, _ = answer(w, datagram(bytes(req)))
    expect((kind, remote) == (0x13, mine), "no REP")
    w.send(datagram(message(0x14, mine + 1, theirs)))  # confirmed by somebody else
    w.send(datagram(message(0x12, mine, theirs, struct.pack(">BBH", 0x40, 0, 28))))
    second = bytearray(req)
    second[24:28], second[56:59] = struct.pack(">I", mine + 5), b"\0\0\x99"
    for attempt in range(50):
        kind, theirs, remote, mad = answer(w, datagram(bytes(second)))
        if kind == 0x13:
            break
        time.sleep(0.1)  # refused as long as the run before has not ended
    expect((kind, remote) == (0x13, mine + 5), "no REP for the second client")
    w.send(datagram(message(0x14, mine + 5, theirs)))
    for _ in range(200):  # noise in a connection
        mad = bytearray(message(rng.choice((0x11, 0x13, 0x14, 0x16)), mine + 5, theirs, rng.randbytes(220)))
        w.send(datagram(bytes(mad)))
    w.silence(w.arp("10.0.0.77"))
    kind, local, remote, _ = answer(w, datagram(message(0x15, mine + 5, theirs, mad[36:39] + b"\0")))
    expect((kind, local, remote) == (0x16, theirs, mine + 5), "no DREP")
    time.sleep(1)  # the run ends a little after its connection
    w.model.process.send_signal(signal.SIGTERM)
    expect(w.model.wait(20) == 1, "the run with the client that went away: " + w.model.text)
    runs, statistics = w.model.result["runs"], w.model.result["statistics"]
    expect(len(runs) == 2 and not runs[0]["ok"] and runs[1]["ok"], "runs: %s" % runs)
    managed_ = w.model.result["connection_manager"]
    expect(managed_["malformed"] >= 12 and managed_["unknown_id"] >= 100 and managed_["wrong_state"] >= 50, managed_)
    expect(statistics["served.adapter.responder.drop.qkey"] == 2 and statistics["served.adapter.responder.drop.pkey"] == 2 and
           statistics["served.adapter.responder.drop.mad_length"] == 6, {k: v for k, v in statistics.items() if "drop" in k})
    return 0


def tap():
    """The kernel of this machine at the other end: it asks for the address, and for an echo."""
    name = "rnic%d" % (os.getpid() % 100000)
    address = "10.%d.%d" % (random.randrange(200, 250), random.randrange(250))
    try:
        m = serve("tap", "tap:" + name, addresses=(address + ".2",))
    except wrong as e:
        if re.search("not permitted|denied|No such", str(e)) is None:
            raise
        print("skipped: no TAP device can be had here: %s" % e)
        return 77
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            def interface(request, value):
                fcntl.ioctl(s, request, name.encode().ljust(16, b"\0") + value.ljust(24, b"\0"))

            interface(0x8916, struct.pack("=HH4s", socket.AF_INET, 0, socket.inet_aton(address + ".1")))  # SIOCSIFADDR
            interface(0x891c, struct.pack("=HH4s", socket.AF_INET, 0, b"\xff\xff\xff\0"))  # SIOCSIFNETMASK
            interface(0x8914, struct.pack("=H", 0x41))  # SIOCSIFFLAGS: up, running
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as s:
            s.settimeout(5)
            s.sendto(bytes(ICMP(id=77) / Raw(b"x" * 100)), (address + ".2", 0))
            answer = IP(s.recv(2000))
        expect(answer.src == address + ".2" and answer[ICMP].type == 0 and answer[ICMP].id == 77, answer.show(dump=True))
    finally:
        counted = m.stop()
    expect(counted["network"]["arp_requests"] > 0 and counted["network"]["echo_requests"] == 1, counted["network"])
    return 0


def main():
    cases = {"pingpong": pingpong, "versions": versions, "network": network, "malformed": malformed, "stream": stream,
             "reconnect": reconnect, "time": time_, "ends": ends, "refusals": refusals, "strangers": strangers,
             "fuzz": fuzz, "connections": connections, "intruders": intruders,
             "tap": tap}
    try:
        return cases[sys.argv[1]]() or 0
    except wrong as e:
        print("wrong: %s" % e)
        return 1
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
