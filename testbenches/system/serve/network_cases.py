# SPDX-License-Identifier: Apache-2.0
"""The host's answers to ARP, neighbour discovery and ping, asked by scapy and by the kernel of this machine."""
import fcntl
import os
import random
import re
import select
import socket
import struct

from scapy.all import (ARP, Dot1Q, Ether, ICMP, ICMPv6DestUnreach, ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_NA,
                       ICMPv6ND_NS, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IP, IPv6, Raw, UDP,
                       in6_getnsmac)
from served import MODEL_MAC, PEER_MAC, MODEL4, PEER4, MODEL6, PEER6, wrong, expect, path, serve, wire


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


def echo_of_groups(w):
    """Four echo requests to groups that everybody is in (RFC 4443, 4.2), answered as the kernel does: from an own address
    that reaches as far as the asker's. IPv4's are not (net.ipv4.icmp_echo_ignore_broadcasts)."""
    own = "fe80::ff:fe00:2"
    for to, source, answerer in (("ff02::1", PEER6, MODEL6), ("ff02::1", "fe80::99", own), ("ff02::1:ff00:2", PEER6, MODEL6),
                                 ("ff02::1:ff00:2", "fe80::99", own)):
        e = w.ask(Ether(src=PEER_MAC, dst=in6_getnsmac(socket.inet_pton(socket.AF_INET6, to))) / IPv6(src=source, dst=to) /
                  ICMPv6EchoRequest(id=9, seq=7, data=b"group"))
        expect(e[IPv6].src == answerer and e[IPv6].dst == source and e[IPv6].hlim == 64 and e.dst == PEER_MAC and
               e[ICMPv6EchoReply].data[:5] == b"group", "echo to %s: %s" % (to, e.summary()))
        checked(e, ICMPv6EchoReply, "cksum")
    for bad in (IPv6(src="::", dst="ff02::1") / ICMPv6EchoRequest(), IPv6(src="ff02::9", dst="ff02::1") / ICMPv6EchoRequest(),
                IPv6(src=PEER6, dst="ff0e::1") / ICMPv6EchoRequest()):
        w.silence(Ether(src=PEER_MAC, dst="33:33:00:00:00:01") / bad)
    for to in ("255.255.255.255", "10.0.0.255", "224.0.0.1"):
        w.silence(Ether(src=PEER_MAC, dst="ff:ff:ff:ff:ff:ff") / IP(src=PEER4, dst=to) / ICMP())


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
    echo_of_groups(w)
    counted = w.model.stop()
    expect(counted["network"]["echo_requests"] == 5 and counted["network"]["echo6_requests"] == 9, counted["network"])
    expect(counted["network"]["malformed"] == 2, counted["network"])  # echo requests of nobody and of a group
    # And the host's own reports of its IPv6 groups (MLD), which come back to it from the port.
    unwanted = counted["statistics"]["served.adapter.steering.drop.no_match"]
    expect(unwanted - 2 in (1, 2, 3, 4), "%d frames for other hosts and groups" % unwanted)

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
