#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks packets of this project's wire library with tshark, scapy and zlib.

usage: check_every_packet.py WRITER
Exit code 77: tshark or scapy is not there.
"""
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

SKIP = 77
# Name in the table -> field of tshark. Numbers are compared as numbers.
FIELDS = {
    "opcode": "infiniband.bth.opcode", "se": "infiniband.bth.se", "m": "infiniband.bth.m",
    "pad": "infiniband.bth.padcnt", "pkey": "infiniband.bth.p_key", "qp": "infiniband.bth.destqp",
    "a": "infiniband.bth.a", "psn": "infiniband.bth.psn", "qkey": "infiniband.deth.q_key",
    "srcqp": "infiniband.deth.srcqp", "reth_va": "infiniband.reth.va", "reth_key": "infiniband.reth.r_key",
    "reth_len": "infiniband.reth.dmalen", "swap": "infiniband.atomiceth.swapdt",
    "cmp": "infiniband.atomiceth.cmpdt", "syndrome": "infiniband.aeth.syndrome", "msn": "infiniband.aeth.msn",
    "original": "infiniband.atomicacketh.origremdt", "imm": "infiniband.immdt", "ieth": "infiniband.ieth",
    "icrc": "infiniband.invariant.crc",
}
LOWER = ["vlan.id", "vlan.priority", "ip.src", "ip.dst", "ip.dsfield", "ip.ttl", "ip.id", "ip.checksum.status",
         "ipv6.src", "ipv6.dst", "ipv6.tclass", "ipv6.flow", "ipv6.hlim", "infiniband.grh.sgid",
         "infiniband.grh.dgid", "infiniband.grh.tclass", "infiniband.grh.flowlabel", "infiniband.grh.hoplmt",
         "infiniband.grh.nxthdr", "udp.srcport", "udp.dstport"]


# An atomic's address and key stand in the fields that tshark calls RETH's.
SAME_FIELD = {"reth_va": "at_va", "reth_key": "at_key"}
BYTES = ("imm", "ieth")  # printed as hexadecimal digits


def number(text):
    """A number as tshark prints it."""
    if text in ("True", "False"):
        return int(text == "True")
    return int(text, 16 if text.startswith("0x") else 10)


def tshark_rows(capture):
    names = list(dict.fromkeys(list(FIELDS.values()) + LOWER))
    command = ["tshark", "-r", capture, "-o", "ip.check_checksum:TRUE",
               "--disable-protocol", "rpcordma",  # it takes any payload of a SEND for its own
               "-T", "fields", "-E", "separator=|",
               "-E", "occurrence=f"]
    for name in names:
        command += ["-e", name]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [dict(zip(names, line.split("|"))) for line in out.splitlines()]


def tshark_knows(want, name):
    """What tshark 4.0 dissects: no CNP 0x81, no XRC, and the RDETH of reliable datagrams 8 bytes too far on."""
    opcode = int(want["opcode"])
    if opcode == 0x81 or 0x40 <= opcode < 0x60 or opcode >= 0xa0:
        return name in ("opcode", "se", "m", "pad", "pkey", "qp", "a", "psn")
    return True


def check_lower(want, got, complain):
    vlan = int(want["vlan"])
    if vlan >= 0:
        if number(got["vlan.id"]) != vlan & 0xfff or number(got["vlan.priority"]) != vlan >> 13:
            complain("vlan", got["vlan.id"])
    elif got["vlan.id"]:
        complain("vlan", got["vlan.id"])
    if want["encap"] == "ipv4":
        pairs = {"ip.src": want["src"].replace("::ffff:", ""), "ip.dst": want["dst"].replace("::ffff:", "")}
        numbers = {"ip.dsfield": "tclass", "ip.ttl": "hop", "ip.id": "id"}
        if got["ip.checksum.status"] != "1":
            complain("ip.checksum.status", got["ip.checksum.status"])
    elif want["encap"] == "ipv6":
        pairs = {"ipv6.src": want["src"], "ipv6.dst": want["dst"]}
        numbers = {"ipv6.tclass": "tclass", "ipv6.flow": "flow", "ipv6.hlim": "hop"}
    else:
        pairs = {"infiniband.grh.sgid": want["src"], "infiniband.grh.dgid": want["dst"]}
        numbers = {"infiniband.grh.tclass": "tclass", "infiniband.grh.flowlabel": "flow",
                   "infiniband.grh.hoplmt": "hop"}
    if want["encap"] != "v1":
        numbers["udp.srcport"] = "sport"
    for field, value in pairs.items():
        if got[field] != value:
            complain(field, got[field])
    for field, name in numbers.items():
        if number(got[field]) != int(want[name]):
            complain(field, got[field])


def check_tshark(want, got, complain):
    compared = 0
    check_lower(want, got, complain)
    for name, field in FIELDS.items():
        if not tshark_knows(want, name):
            continue
        text = got[field]
        expected = want.get(name, want.get(SAME_FIELD.get(name)))
        if expected is None:
            if text:
                complain(field, text + " (the packet has none)")
            continue
        if not text:
            complain(field, "missing")
            continue
        value = int(text, 16) if name in BYTES else number(text)
        if name == "icrc":
            value = struct.unpack("<I", struct.pack(">I", value))[0]
        compared += 1
        if value != int(expected):
            complain(field, text)
    return compared


def check_scapy(frame, want, complain, scapy):
    """Fields of the BTH, and for IPv4 scapy's own ICRC; zlib for all."""
    ether = scapy["Ether"](frame)
    bth = ether[scapy["BTH"]]
    for name, attribute in (("opcode", "opcode"), ("pad", "padcount"), ("qp", "dqpn"), ("psn", "psn"),
                            ("a", "ackreq"), ("becn", "becn"), ("m", "migreq"), ("se", "solicited"),
                            ("pkey", "pkey")):
        if int(getattr(bth, attribute)) != int(want[name]):
            complain("scapy " + attribute, getattr(bth, attribute))
    if want["encap"] == "ipv4":
        bth.icrc = None
        again = bytes(ether)
        if again != frame:
            complain("scapy's bytes", again.hex() + " for " + frame.hex())
    start = 18 if int(want["vlan"]) >= 0 else 14
    masked = bytearray(frame[start:-4])
    transport = {"v1": 40, "ipv4": 28, "ipv6": 48}[want["encap"]]
    ones = [1, 8, 10, 11, 26, 27] if want["encap"] == "ipv4" else [1, 2, 3, 7]
    if want["encap"] == "ipv6":
        ones += [46, 47]
    if want["encap"] != "ipv4":
        masked[0] |= 0x0f
    for i in ones + [transport + 4]:
        masked[i] = 0xff
    if zlib.crc32(b"\xff" * 8 + bytes(masked)) != struct.unpack("<I", frame[-4:])[0]:
        complain("zlib ICRC", frame[-4:].hex())


def main():
    if shutil.which("tshark") is None:
        print("skipped: tshark is not there")
        return SKIP
    try:
        from scapy.layers.l2 import Ether
        from scapy.contrib.roce import BTH
        from scapy.utils import RawPcapReader
    except ImportError as error:
        print("skipped: no scapy with contrib.roce in", sys.executable, "-", error)
        return SKIP
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        capture, table = os.path.join(folder, "every.pcap"), os.path.join(folder, "every.txt")
        subprocess.run([sys.argv[1], capture, table], check=True, stdout=subprocess.DEVNULL)
        with open(table) as lines:
            wanted = [dict(word.split("=", 1) for word in line.split()) for line in lines]
        rows = tshark_rows(capture)
        frames = [bytes(data) for data, _ in RawPcapReader(capture)]
        if not len(wanted) == len(rows) == len(frames):
            print("numbers differ:", len(wanted), len(rows), len(frames))
            return 1
        compared = 0
        for i, (want, got, frame) in enumerate(zip(wanted, rows, frames)):
            def complain(what, value, i=i, want=want):
                faults.append("packet %d opcode 0x%02x %s: %s is %s" %
                              (i + 1, int(want["opcode"]), want["encap"], what, value))
            compared += check_tshark(want, got, complain)
            check_scapy(frame, want, complain, {"Ether": Ether, "BTH": BTH})
    for fault in faults[:40]:
        print(fault)
    print("%d packets, %d fields compared with tshark, %d faults" % (len(wanted), compared, len(faults)))
    return 1 if faults or compared < 9 * len(wanted) else 0


if __name__ == "__main__":
    sys.exit(main())
