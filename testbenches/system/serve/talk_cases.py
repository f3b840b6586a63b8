# SPDX-License-Identifier: Apache-2.0
"""Clients of perftest's tools over rdma_cm that are none: they connect as a Linux host does, and then say anything."""
import random
import struct
import time

from scapy.all import Ether, IP, Raw, UDP
from served import MODEL_MAC, PEER_MAC, MODEL4, PEER4, BTH, expect, wire
from connection_cases import answer, datagram, linux_request, message

PORT = 18600
MRA, REP = 0x11, 0x13
SEND_ONLY, ACKNOWLEDGE = 4, 17
HELLO = (b"6.06".ljust(16, b"\0"), struct.pack(">I", 4096), struct.pack(">I", 64), b"3\0")


class client:
    """A connection of its own; what the model says is acknowledged."""

    def __init__(self, w, number):
        self.w, self.mine, self.qpn = w, 0x5000 + number, 0x300 + number
        request = bytearray(linux_request())
        request[24:28], request[38:40] = struct.pack(">I", self.mine), struct.pack(">H", PORT)
        request[56:59] = struct.pack(">I", self.qpn)[1:]
        self.heard = 0
        kind, self.theirs, remote, mad = answer(w, datagram(bytes(request)))
        while remote != self.mine or kind == MRA:  # it waits for its turn
            kind, self.theirs, remote, mad = answer(w)
        expect(kind == REP, "no REP for client %d" % number)
        self.model_qpn, self.psn = (int.from_bytes(mad[i:i + 3], "big") for i in (36, 44))
        w.send(datagram(message(0x14, self.mine, self.theirs)))

    def packet(self, opcode, psn, payload, pad=0):
        self.w.send(Ether(src=PEER_MAC, dst=MODEL_MAC) / IP(src=PEER4, dst=MODEL4) / UDP(sport=0xc011, dport=4791) /
                    BTH(opcode=opcode, dqpn=self.model_qpn, psn=psn & 0xffffff, ackreq=opcode == SEND_ONLY, padcount=pad) /
                    Raw(payload))

    def say(self, text):
        pad = -len(text) % 4
        self.packet(SEND_ONLY, self.psn, text + b"\0" * pad, pad)
        self.psn += 1

    def hear(self, seconds=2):
        """Whether the model has said something; its word is acknowledged."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            f = self.w.receive(max(end - time.monotonic(), 0.01))
            if f is not None and BTH in f and f[BTH].opcode == SEND_ONLY and f[BTH].dqpn == self.qpn:
                self.heard += 1
                self.packet(ACKNOWLEDGE, f[BTH].psn, struct.pack(">I", self.heard))
                return True
        return False

    def end(self):
        self.w.send(datagram(message(0x15, self.mine, self.theirs, struct.pack(">I", self.model_qpn << 8))))


def talkers():
    if BTH is None:
        print("skipped: this scapy knows no RoCE")
        return 77
    cases = ((), (b"",), (b"x" * 16,), (b"6.06",), (b"x" * 56,), (HELLO[0], b"\xff" * 4, b"\xff" * 4),
             (*HELLO, b"\xff" * 55), (*HELLO, b"\xff" * 56))
    words = ("version", "0 bytes instead of 16", "no version of perftest", "4 bytes instead of 16", "56 bytes instead of 16", "make no sense",
             "55 bytes instead of 56", "no neighbour")
    noise = 12
    w = wire("--app", "ib_write_bw", "--server", "--port", PORT, "--talk-rdma-cm", "--repeat", len(cases) + noise)
    for number, said in enumerate(cases):
        c = client(w, number)
        for text in said:
            c.say(text)
            if not c.hear(2 if text in HELLO else 0.3):
                break
        c.end()
    rng = random.Random(5)
    for number in range(noise):
        c = client(w, 100 + number)
        for i in range(rng.randrange(1, 6)):
            c.say(HELLO[i] if i < len(HELLO) and rng.random() < 0.7 else rng.randbytes(rng.randrange(57)))
            if not c.hear(0.3):
                break
        c.end()
    expect(w.model.wait(60) == 1, w.model.text)
    runs = w.model.result["runs"]
    for run, word in zip(runs, words):
        expect(not run["ok"] and word in run["error"], "%r is not in %s" % (word, run["error"]))
    expect(len(runs) == len(cases) + noise and not any(r["ok"] for r in runs), runs)
    return 0
