# SPDX-License-Identifier: Apache-2.0
"""`rnic serve --topology`: peers of several links and adapters at the ports of modelled switches."""
import fcntl
import os
import random
import re
import socket
import struct
import subprocess
import threading
import time

from scapy.all import ARP, Ether, ICMP, IP, Raw
from link_cases import framed, stream_peer
from served import RNIC, MODEL_MAC, MODEL4, wrong, expect, path, serve, together

H2_MAC, H3_MAC, H2, H3 = "02:00:00:00:00:12", "02:00:00:00:00:13", "10.0.0.12", "10.0.0.13"
BROADCAST = "ff:ff:ff:ff:ff:ff"


def network(hosts, parameters=""):
    with open(path("star.toml"), "w", encoding="utf-8") as f:
        f.write('[topology]\nkind = "star"\nhosts = %d\n%s' % (hosts, parameters))
    return path("star.toml")


def star(*arguments, links=("h2", "h3"), hosts=3, parameters="", **more):
    given = [a for name in links[1:] for a in ("--link", "%s=listen:unix:%s" % (name, path(name)))]
    return serve("star", "%s=listen:unix:%s" % (links[0], path(links[0])), "--topology", network(hosts, parameters),
                 *given, *arguments, **more)


class peer(stream_peer):
    """A real host at a link: it reads when it is asked to."""

    def __init__(self, name, mac, address):
        super().__init__(path(name))
        self.mac, self.address = mac, address

    def send(self, packet, to=BROADCAST):
        self.socket.sendall(framed(Ether(src=self.mac, dst=to) / packet))

    def arp(self, target):
        self.send(ARP(op=1, hwsrc=self.mac, psrc=self.address, pdst=target))

    def await_(self, fits, what, seconds=10):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            got = self.receive()
            if fits(got):
                return got
        raise wrong("no " + what)

    def ping(self, to_mac, to, number):
        self.send(IP(src=self.address, dst=to) / ICMP(id=7, seq=number) / Raw(b"x" * 100), to_mac)

    def is_answer(self, number):
        return lambda f: ICMP in f and f[ICMP].type == 0 and f[ICMP].seq == number

    def answer(self, request):
        self.send(IP(src=self.address, dst=request[IP].src) / ICMP(type=0, id=request[ICMP].id, seq=request[ICMP].seq) /
                  request[ICMP].payload, request.src)


def port_to(result, name):
    return next(p for p in result["fabric"]["ports"] if p["to"] == name)


def dropped(port):
    return sum(v for n, v in port.items() if n.startswith("drop_"))


def peers():
    """Each reaches the adapter and the other peer; what is known to be at one port does not come to another."""
    m = star()
    a, b = peer("h2", H2_MAC, H2), peer("h3", H3_MAC, H3)
    a.arp(MODEL4)
    expect(a.await_(lambda f: ARP in f and f[ARP].op == 2, "answer")[ARP].hwsrc == MODEL_MAC, "who is it?")
    b.await_(lambda f: ARP in f and f[ARP].psrc == H2, "broadcast at the other peer")
    b.arp(MODEL4)
    b.await_(lambda f: ARP in f and f[ARP].op == 2, "answer")
    for number in range(20):
        a.ping(MODEL_MAC, MODEL4, number)
        a.await_(a.is_answer(number), "answer of the adapter")
        a.ping(H3_MAC, H3, 100 + number)
        b.answer(b.await_(lambda f: ICMP in f, "ping of the other peer"))
        a.await_(a.is_answer(100 + number), "answer of the other peer")
    r = m.stop()
    ports = {name: port_to(r, name) for name in ("h1", "h2", "h3")}
    expect((ports["h2"]["rx_frames"], ports["h3"]["rx_frames"]) == (41, 21), "frames in: %s" % ports)
    expect(r["statistics"]["s1.flooded"] >= 2 and all(dropped(p) == 0 for p in ports.values()), "dropped: %s" % ports)
    # To h3: the other's ARP and pings, and the answer; of what went between h2 and the adapter nothing.
    expect(ports["h3"]["tx_frames"] - 22 <= r["statistics"]["s1.flooded"], "h3 gets what is not its: %s" % ports)
    for name in ("h2", "h3"):
        link = r["fabric"]["links"][name]
        expect(link["frames_in"] == ports[name]["rx_frames"] and sum(link["drop"].values()) == link["drop"]["no_peer"] and
               link["frames_out"] + link["drop"]["no_peer"] == ports[name]["tx_frames"], "%s: %s" % (name, link))
    expect("h2: a peer has come" in m.text and re.search(r"s1 +2 h3 +21 ", m.text), "not printed: " + m.text)


def unread():
    """A peer that does not read fills the queue to itself, half of the buffer, and what is more is dropped there; the
    other one and the adapter go on meanwhile."""
    m = star(parameters="[parameters]\nswitch.buffer.bytes = 1000000\n")
    a, b = peer("h2", H2_MAC, H2), peer("h3", H3_MAC, H3)
    b.arp(MODEL4)
    b.await_(lambda f: ARP in f and f[ARP].op == 2, "answer")
    a.arp(MODEL4)
    a.await_(lambda f: ARP in f and f[ARP].op == 2, "answer")
    load = framed(Ether(src=H2_MAC, dst=H3_MAC, type=0x88b5) / Raw(b"x" * 4000))
    for number in range(60):  # 12 MB, more than sockets, link and buffer hold
        a.socket.sendall(load * 50)
        a.ping(MODEL_MAC, MODEL4, number)
        a.await_(a.is_answer(number), "answer while the other peer does not read", 5)
    r = m.stop()
    full, others = port_to(r, "h3"), [port_to(r, n) for n in ("h1", "h2")]
    expect(full["drop_queue"] > 100 and full["rx_pause"] > 0, "the queue to h3 was not full: %s" % full)
    expect(500_000 - 4100 < full["most_queued_bytes"] <= 500_000, "half of the buffer: %s" % full)
    expect(all(dropped(p) == 0 and p["rx_pause"] == 0 and p["most_queued_bytes"] < 100_000 for p in others),
           "others: %s" % others)


def pingpong():
    """Two other models at the links talk with each other, then one of them with the adapter."""
    m = star("--duration", 60)
    connect = ["connect:unix:" + path(name) for name in ("h2", "h3")]
    together("through the switch", connect, "rc_pingpong", ["--iterations", 200],
             addresses=(("10.0.0.13",), ("10.0.0.12",)))
    r = m.stop()
    expect(min(port_to(r, "h2")["rx_frames"], port_to(r, "h3")["rx_frames"]) > 400, "few frames: %s" % r["fabric"]["ports"])
    expect(all(dropped(p) == 0 for p in r["fabric"]["ports"]), "dropped: %s" % r["fabric"]["ports"])
    port = 20000 + os.getpid() % 20000
    m = star("--app", "rc_pingpong", "--server", "--port", port, "--iterations", 200, links=("h3",), hosts=3,
             addresses=(MODEL4, "10.0.0.22@2"))
    b = serve("peer", connect[1], "--app", "rc_pingpong", "--client", "127.0.0.1", "--port", port + 1, "--iterations", 200,
              mac=H3_MAC, addresses=(H3,))
    expect(b.wait() == 0, "with the second adapter: " + b.text)
    m.until("adapter 2: rc_pingpong: 200 messages sent", 20)
    m.process.terminate()
    m.wait(20)
    expect([x["host"] for x in m.result["adapters"]] == ["h1", "h2"] and m.result["adapters"][1]["runs"][0]["ok"] and
           port_to(m.result, "h2")["rx_frames"] > 400, "two adapters: %s" % m.text)


def kernel():
    """The kernel of this machine at a TAP device, and a stream, both at the switch: it reaches the adapter and that."""
    name = "rnif%d" % (os.getpid() % 100000)
    net = "10.%d.%d" % (random.randrange(150, 200), random.randrange(250))
    try:
        m = serve("kernel", "h2=tap:" + name, "--topology", network(3), "--link", "h3=listen:unix:" + path("h3"),
                  addresses=(net + ".2",))
    except wrong as e:
        if re.search("not permitted|denied|No such", str(e)) is None:
            raise
        print("skipped: no TAP device can be had here: %s" % e)
        return 77
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        def interface(request, value):
            fcntl.ioctl(s, request, name.encode().ljust(16, b"\0") + value.ljust(24, b"\0"))

        interface(0x8916, struct.pack("=HH4s", socket.AF_INET, 0, socket.inet_aton(net + ".1")))  # SIOCSIFADDR
        interface(0x891c, struct.pack("=HH4s", socket.AF_INET, 0, b"\xff\xff\xff\0"))  # SIOCSIFNETMASK
        interface(0x8914, struct.pack("=H", 0x41))  # SIOCSIFFLAGS: up, running
    b = peer("h3", H3_MAC, net + ".3")

    def be_a_host():
        question = b.await_(lambda f: ARP in f and f[ARP].pdst == net + ".3", "question for h3")
        b.send(ARP(op=2, hwsrc=H3_MAC, psrc=net + ".3", hwdst=question.src, pdst=net + ".1"), question.src)
        b.answer(b.await_(lambda f: ICMP in f, "ping of the kernel"))

    other = threading.Thread(target=be_a_host)
    other.start()
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as s:
        s.settimeout(10)
        for last in (".2", ".3"):
            s.sendto(bytes(ICMP(id=77) / Raw(b"x" * 100)), (net + last, 0))
            answer = IP(s.recv(2000))
            expect(answer.src == net + last and answer[ICMP].type == 0, answer.show(dump=True))
    other.join()
    r = m.stop()
    expect(r["network"]["echo_requests"] == 1 and port_to(r, "h3")["tx_frames"] >= 2, "%s" % r["fabric"])
    return 0


def refusals():
    file = network(3)
    link = "listen:unix:" + path("x")
    for arguments, words in (
            ([file, link], ["--link", "HOST=LINK", "h3=tap:tap0"]),
            ([file, "h9=" + link], ["no host h9", "h1, h2, h3"]),
            ([file, "h2=" + link, "--link", "h2=tap:y"], ["h2 has a link"]),
            ([file, "h2=carrier:pigeon"], ["listen:, connect:, datagram: or tap:"]),
            ([file, "h1=tap:a", "--link", "h2=tap:b", "--link", "h3=tap:c"], ["all 3 hosts", "adapters"]),
            (["ring", "h2=" + link], ["ring", "more than one way"]),
            (["nowhere.toml", "h2=" + link], ["nowhere.toml", "cannot be read"]),
            ([file, "h3=" + link, "--ip", "10.0.0.1@3"], ["--ip", "1 to 2"]),
            ([file, "h2=" + link, "--link", "h3=tap:y", "--mac", MODEL_MAC, "--mac", H2_MAC], ["--mac", "adapters"]),
            ([file, "h3=" + link, "--set", "cable.metres=3"], ["no parameter cable.metres"])):
        done = subprocess.run([RNIC, "serve", "--topology", arguments[0], "--link", arguments[1]] + arguments[2:],
                              capture_output=True, text=True, timeout=20)
        expect(done.returncode == 2 and len(done.stderr.splitlines()) == 1 and all(w in done.stderr for w in words),
               "%s: status %d, %r" % (arguments, done.returncode, done.stderr))
