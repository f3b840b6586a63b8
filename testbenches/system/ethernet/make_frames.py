#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes frames.h: frames made by scapy 2.5.0, against which the Ethernet tests compare what an adapter sent or got.

Usage: make_frames.py > frames.h. Payload is written as a piece of text() (frame_text.h). For each frame there is what is
on the wire, and for those that an adapter completes the form in which software hands it over, with checksums left out.
"""
import logging
import textwrap

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)
from scapy.all import (ARP, ICMP, IP, LLC, SNAP, TCP, UDP, Dot1AD, Dot1Q, Ether, ICMPv6EchoRequest, IPOption_NOP, IPv6,
                       IPv6ExtHdrHopByHop, Raw, fragment)

DST, SRC = "02:00:00:00:0b:01", "02:00:00:00:0a:01"
E = Ether(dst=DST, src=SRC)
FRAMES = {}


def text(n, seed=1):
    """Payload without a pattern that a wrong offset would hide."""
    out, x = bytearray(), seed
    for _ in range(n):
        x = (x * 1103515245 + 12345) & 0x7fffffff
        out.append(x >> 16 & 0xff)
    return bytes(out)


def add(name, packet):
    FRAMES[name] = bytes(packet)


def without_checksums(frame):
    """The same frame with all checksum fields of the outer headers zero."""
    p = Ether(frame)
    f = bytearray(frame)
    at = 14
    kind = int.from_bytes(f[12:14], "big")
    if kind in (0x8100, 0x88a8):
        kind, at = int.from_bytes(f[16:18], "big"), 18
    if kind == 0x0800:
        f[at + 10:at + 12] = b"\0\0"
        protocol, l4 = f[at + 9], at + (f[at] & 15) * 4
    else:
        protocol, l4 = f[at + 6], at + 40
        if protocol == 0:
            protocol, l4 = f[l4], l4 + (f[l4 + 1] + 1) * 8
    if protocol == 6:
        f[l4 + 16:l4 + 18] = b"\0\0"
    if protocol == 17:
        f[l4 + 6:l4 + 8] = b"\0\0"
    assert p.haslayer(IP) or p.haslayer(IPv6)
    return bytes(f)


def both(name, packet):
    add(name, packet)
    FRAMES[name + "_raw"] = without_checksums(FRAMES[name])


v4 = IP(src="10.1.2.3", dst="10.9.8.7", id=0x1234, ttl=61)
v6 = IPv6(src="fd00::1:2", dst="fd00::3:4", hlim=60)
both("udp4", E / v4 / UDP(sport=4000, dport=5000) / Raw(text(301)))
both("udp6", E / v6 / UDP(sport=4001, dport=5001) / Raw(text(200)))
both("tcp4", E / v4 / TCP(sport=4002, dport=80, seq=0x11223344, ack=0x55667788, flags="PA", window=8192) / Raw(text(777)))
both("tcp6", E / v6 / TCP(sport=4003, dport=81, seq=7, flags="S", options=[("MSS", 1460), ("NOP", None)]) / Raw(text(64)))
both("tcp4_options", E / IP(src="10.1.2.3", dst="10.9.8.7", options=[IPOption_NOP()] * 4) / TCP(sport=1, dport=2) / Raw(text(99)))
both("udp6_hop", E / v6 / IPv6ExtHdrHopByHop() / UDP(sport=9, dport=10) / Raw(text(50)))
# A sum of 0, which a UDP checksum says with 0xffff (RFC 768).
for a in range(65536):
    p = E / v4 / UDP(sport=4000, dport=5000) / Raw(a.to_bytes(2, "big") + text(48))
    if UDP(bytes(p[UDP])).chksum == 0xffff:
        both("udp4_ffff", p)
        break
add("icmp4", E / v4 / ICMP(id=1, seq=2) / Raw(text(56)))
FRAMES["icmp4_raw"] = without_checksums(FRAMES["icmp4"])
add("arp", Ether(dst="ff:ff:ff:ff:ff:ff", src=SRC) / ARP(psrc="10.1.2.3", pdst="10.9.8.7", hwsrc=SRC) / Raw(bytes(18)))
add("icmp6", Ether(dst="33:33:00:00:00:01", src=SRC) / IPv6(src="fd00::1:2", dst="ff02::1") / ICMPv6EchoRequest(data=text(40)))
add("snap", Ether(dst=DST, src=SRC, type=48) / LLC(dsap=0xaa, ssap=0xaa, ctrl=3) / SNAP(OUI=0, code=0x800) / Raw(text(40)))
for i, f in enumerate(fragment(v4 / UDP(sport=1, dport=2) / Raw(text(900)), fragsize=480)):
    add(f"fragment{i}", E / f)
udp_none = UDP(sport=3, dport=4, chksum=0)
add("udp4_none", E / v4 / udp_none / Raw(text(60)))
bad = bytearray(FRAMES["tcp4"])
bad[-1] ^= 0x10
FRAMES["tcp4_bad_payload"] = bytes(bad)
bad = bytearray(FRAMES["tcp4"])
bad[14 + 8] ^= 1
FRAMES["tcp4_bad_header"] = bytes(bad)
bad = bytearray(FRAMES["udp6"])
bad[-3] ^= 0x80
FRAMES["udp6_bad_payload"] = bytes(bad)

inner = v4 / UDP(sport=4000, dport=5000) / Raw(text(301))
add("udp4_ctag", E / Dot1Q(vlan=100, prio=5) / inner)
add("udp4_ctag0", E / Dot1Q(vlan=0, prio=6) / inner)
add("udp4_ctag200", E / Dot1Q(vlan=200, prio=1) / inner)
add("udp4_stag", Ether(dst=DST, src=SRC, type=0x88a8) / Dot1AD(vlan=300, prio=2) / inner)

# One message of 2500 bytes in packets of 1000: what stands on the wire, and the headers that software gives.
BODY = text(2500, 77)
flags = ["CA", "A", "FPA"]
for name, ip in (("4", lambda i: IP(src="10.1.2.3", dst="10.9.8.7", id=0x0ffe + i, flags="DF")),
                 ("6", lambda i: IPv6(src="fd00::1:2", dst="fd00::3:4"))):
    tcp = dict(sport=4010, dport=80, ack=9, window=500, options=[("NOP", None), ("NOP", None), ("Timestamp", (1, 2))])
    for i in range(3):
        part = BODY[1000 * i:1000 * (i + 1)]
        add(f"lso{name}_{i}", E / ip(i) / TCP(seq=0xfffffe00 + 1000 * i & 0xffffffff, flags=flags[i], **tcp) / Raw(part))
    whole = bytearray(without_checksums(bytes(E / ip(0) / TCP(seq=0xfffffe00, flags="CFPA", **tcp))))
    whole[(16 if name == "4" else 18):(18 if name == "4" else 20)] = b"\0\0"  # software leaves the length out
    FRAMES[f"lso{name}_header"] = bytes(whole)
FRAMES["lso_body"] = BODY

# Flows of Microsoft's "Verifying the RSS hash calculation".
for i, (src, dst, sport, dport) in enumerate((("66.9.149.187", "161.142.100.80", 2794, 1766),
                                              ("199.92.111.2", "65.69.140.83", 14230, 4739),
                                              ("24.19.198.95", "12.22.207.184", 12898, 38024),
                                              ("38.27.205.30", "209.142.163.6", 48228, 2217),
                                              ("153.39.163.191", "202.188.127.2", 44251, 1303))):
    add(f"rss4_{i}", E / IP(src=src, dst=dst) / TCP(sport=sport, dport=dport) / Raw(text(20)))
    add(f"rss4_udp_{i}", E / IP(src=src, dst=dst) / UDP(sport=sport, dport=dport) / Raw(text(20)))
for i, (src, dst, sport, dport) in enumerate((("3ffe:2501:200:1fff::7", "3ffe:2501:200:3::1", 2794, 1766),
                                              ("3ffe:501:8::260:97ff:fe40:efab", "ff02::1", 14230, 4739),
                                              ("3ffe:1900:4545:3:200:f8ff:fe21:67cf", "fe80::200:f8ff:fe21:67cf", 44251,
                                               38024))):
    add(f"rss6_{i}", E / IPv6(src=src, dst=dst) / TCP(sport=sport, dport=dport) / Raw(text(20)))


def split(frame):
    """(head, (seed, from, count), tail): what of the frame is a piece of text()."""
    best = (frame, (0, 0, 0), b"")
    for seed in (1, 77):
        whole, at, least = text(2500, seed), 0, 16
        while at + least <= len(frame):
            begin = whole.find(frame[at:at + least])
            count = 0
            while begin >= 0 and begin + count < len(whole) and frame[at + count:at + count + 1] == whole[begin + count:begin + count + 1]:
                count += 1
            if count > best[1][2]:
                best = (frame[:at], (seed, begin, count), frame[at + count:])
            at += max(1, count)
    return best


def literal(data):
    lines = textwrap.wrap(data.hex(), 92) or [""]
    return "\n".join('    "%s"' % line for line in lines)


def main():
    print("// SPDX-License-Identifier: Apache-2.0\n// Frames made by scapy 2.5.0: written by make_frames.py, not to be edited.\n"
          '#pragma once\n\n#include "testbenches/system/ethernet/frame_text.h"\n\n'
          "namespace rnic::system_test::frames {\n\n// clang-format off")
    for name, frame in FRAMES.items():
        head, body, tail = split(frame)
        end = ', "%s"' % tail.hex() if tail else ""
        middle = ", {%d, %d, %d}" % body if body[2] else ""
        print(f"inline const bytes {name} = frame(\n{literal(head)}{middle}{end});")
    print("// clang-format on\n\n}  // namespace rnic::system_test::frames")


if __name__ == "__main__":
    main()
