# SPDX-License-Identifier: Apache-2.0
"""Streams, their ends and beginnings, time, and options that cannot be."""
import os
import resource
import signal
import socket
import struct
import subprocess
import time

from scapy.all import ARP, Ether, ICMP, IP, Raw
from served import (RNIC, MODEL_MAC, PEER_MAC, MODEL4, MODEL6, PEER4, wrong, expect, path, free_port, serve, pairs_of_links,
                    wire, is_report, asked_for)


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
        while is_report(frame := self.exactly(struct.unpack(">I", self.exactly(4))[0])):
            pass
        return Ether(frame)

    def asks(self):
        self.socket.sendall(framed(wire.arp()))
        answer = self.receive()
        while ARP not in answer:  # what the adapter still had for the peer before
            answer = self.receive()
        expect(answer[ARP].psrc == MODEL4, "no answer")


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
        while True:  # what was on its way
            p.exactly(1)
    except socket.timeout:
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
    dropped = sum(m.stop()["link"]["drop"].values())
    statistics = m.result["statistics"]
    lost = dropped + sum(v for k, v in statistics.items() if ".drop." in k)
    expect(lost > 0, "4 MB wait somewhere: %s" % m.result["link"])


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
    frames = asked_for(w.model.pcap)
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
        expect(len(asked_for(w.model.pcap)) == 2, "the capture is not whole")
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
    taken = [socket.socket(socket.AF_UNIX, kind) for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)]
    for s, name in zip(taken, ("stream", "datagram")):
        s.bind(path(name))
    taken[0].listen()
    port = str(busy.getsockname()[1])
    for arguments, word in (
            ([], "--link"),
            (["--link", "carrier:pigeon"], "listen:, connect:, datagram: or tap:"),
            (["--link", "listen:tcp:127.0.0.1"], "HOST:PORT"),
            (["--link", "listen:tcp:127.0.0.1:99999"], "65535"),
            (["--link", "listen:udp:127.0.0.1:5"], "listen:tcp:"),
            (["--link", "datagram:unix:" + path("x")], "comma"),
            (["--link", "datagram:udp:127.0.0.1:9,127.0.0.1:9"], "expected an address of the peer's that is another"),
            (["--link", "datagram:unix:%s,%s" % (path("x"), path("x"))], "expected an address of the peer's that is another"),
            (["--link", "listen:unix:" + "x" * 200], "107"),
            (["--link", "listen:unix:/nowhere/at/all"], "No such file"),
            (["--link", "listen:tcp:127.0.0.1:" + port], "in use"),
            (["--link", "listen:unix:" + path("stream")], "in use"),
            (["--link", "datagram:unix:" + path("datagram") + "," + path("peer")], "in use"),
            (link + link, "in use"),
            (link + ["--ip", "10.0.0.1@2"], "--ip 10.0.0.1@2"),
            (link + ["--mac", "02:00:00:00:00:01", "--mac", "02:00:00:00:00:02"], "--mac"),
            (link + ["--ip", "10.0.0"], "--ip"),
            *((link + ["--ip", a], "--ip %s: expected a host's IPv4 or IPv6 address" % a) for a in (
                "224.0.0.1", "ff02::1", "0.0.0.0", "::", "255.255.255.255", "127.0.0.1", "127.255.255.254", "::1",
                "::ffff:127.0.0.1")),
            (link + ["--mac", "01:00:5e:00:00:01"], "--mac"),
            (link + ["--app", "rc_pingpong"], "--server or --client"),
            (link + ["--server"], "--app"),
            (link + ["--app", "telnet", "--server"], "--app"),
            (link + ["--app", "ud_pingpong", "--server", "--size", "5000"], "4096"),
            (link + ["--app", "rc_pingpong", "--server", "--gid-index", "100"], "--gid-index"),
            (link + ["--app", "rc_pingpong", "--server", "--all"], "perftest"),
            (link + ["--app", "ib_atomic_bw", "--server", "--all"], "8 bytes"),
            (link + ["--app", "ib_read_bw", "--server", "--all", "--size", "100"], "--size"),
            (link + ["--app", "ib_read_bw", "--server", "--seconds", "3", "--iterations", "9"], "--seconds"),
            (link + ["--app", "ib_send_bw", "--server", "--rdma-cm", "--connection", "UD"], "--connection RC"),
            (link + ["--app", "ib_send_bw", "--server", "--connection", "XRC"], "only rdma_xserver and rdma_xclient"),
            (link + ["--app", "udpong", "--client", MODEL4, "--size", "2041"], "--size: udpong has 16 to 2040 bytes over IPv4"),
            (link + ["--app", "udpong", "--client", MODEL6, "--size", "2025"], "--size: udpong has 16 to 2024 bytes over IPv6"),
            (link + ["--app", "udpong", "--client", MODEL4, "--size", "15"], "--size: udpong has 16 to 2040 bytes over IPv4"),
            (link + ["--app", "udpong", "--client", "nowhere"], "expected an IP address"),
            (link + ["--app", "rdma_xserver", "--server", "--connection", "UC"], "rdma_xserver has RC and XRC"),
            (link + ["--app", "ib_send_bw", "--client", "nowhere", "--rdma-cm"], "IP address"),
            (link + ["--app", "rc_pingpong", "--server", "--port", port], "--port")):
        done = subprocess.run([RNIC, "serve"] + arguments, capture_output=True, text=True, timeout=20)
        lines = done.stderr.strip().splitlines()
        expect(done.returncode == 2 and len(lines) == 1 and word in lines[0],
               "%s: status %d, '%s'" % (arguments, done.returncode, done.stderr))
