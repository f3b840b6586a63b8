# SPDX-License-Identifier: Apache-2.0
"""Peers that are none: on the exchange of addresses, and as frames to a queue pair that lives."""
import os
import random
import select
import signal
import socket
import struct
import subprocess
import threading

from scapy.all import ARP, Ether, IP, Raw, UDP
from served import RNIC, MODEL_MAC, PEER_MAC, MODEL4, PEER4, BTH, expect, pairs_of_links, path, free_port, serve, wire


def strangers():
    """Peers of the address exchange that are none."""
    port = free_port()
    m = serve("model", "listen:unix:" + path("s"), "--app", "rc_pingpong", "--server", "--port", port, "--repeat", 3)
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
    expect(len(errors) == 3 and "no sense" in errors[0] and "no sense" in errors[1] and "no neighbour" in errors[2], errors)
    expect(m.result["exchange"] == {"clients": 3, "silent": 0, "gone": 1, "turned_away": 0}, m.result["exchange"])
    perftest_strangers()
    nobody = subprocess.run([RNIC, "serve", "--link", "listen:unix:" + path("t"), "--app", "rc_pingpong", "--client",
                             "127.0.0.1", "--port", str(free_port())], capture_output=True, text=True, timeout=60)
    expect(nobody.returncode == 1 and "nobody answers" in nobody.stdout, nobody.stdout)


def perftest_strangers():
    """Clients of perftest's exchange that are none, and what the model says to them."""
    port = free_port()
    hello = b"6.06".ljust(16, b"\0") + struct.pack(">II", 4096, 64) + b"3\0"
    nobody = b"0000:0010:000011:000000:00001234:0000000000001000:" + b"00:" * 10 + b"ff:ff:0a:00:00:63:" + b"00000000:\0"
    both = "speaks perftest %s, this host 6.06"
    cases = ((b"4.50".ljust(16, b"\0"), both % "4.50" + ": versions older than 5.70"),
             (b"5.69".ljust(16, b"\0"), both % "5.69" + ": versions older than 5.70"),
             (b"\xff" * 16, "no version of perftest; this one is 6.06"), (b"GET / HTTP/1.0\r\n", "no version of perftest"),
             (bytes(16), "no version of perftest"), (b"6.28".ljust(16, b"\0"), "page size: is it gone? (it %s)" % both % "6.28"),
             (b"5.70".ljust(16, b"\0") + hello[16:] + b"x" * 108, "is it the same test? (it %s)" % both % "5.70"),
             (b"6.06".ljust(16, b"\0") + b"\xff" * 8, "make no sense"), (hello, "queue pair"), (hello + b"x" * 108, "no sense"),
             (hello + b":" * 108, "no sense"), (hello + nobody, "no neighbour"))
    m = serve("model", "listen:unix:" + path("s"), "--app", "ib_read_bw", "--server", "--port", port, "--repeat", len(cases))
    for text, _ in cases:
        with socket.create_connection(("127.0.0.1", port)) as s:
            s.settimeout(20)
            s.sendall(text)
            s.shutdown(socket.SHUT_WR)
            try:
                while s.recv(1000):
                    pass
            except OSError:
                pass
    expect(m.wait(60) == 1, m.text)
    for run, (text, word) in zip(m.result["runs"], cases):
        expect(not run["ok"] and word in run["error"], "%s: %s" % (text, run["error"]))


class other_version(threading.Thread):
    """Between a client of perftest's exchange and its server: tells the server of another version."""

    def __init__(self, version, port):
        super().__init__(daemon=True)
        self.version, self.port = version.ljust(16, b"\0"), port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.start()

    def run(self):
        client, _ = self.listener.accept()
        with client, socket.create_connection(("127.0.0.1", self.port)) as server:
            client.recv(16, socket.MSG_WAITALL)
            server.sendall(self.version)
            try:
                while True:
                    for s in select.select([client, server], [], [])[0]:
                        text = s.recv(4096)
                        if not text:
                            return
                        (server if s is client else client).sendall(text)
            except OSError:  # one of them has left
                pass


def perftest_versions():
    """A version that is too old ends that client, with both versions in its line; of another one there is a line, and
    the test, as between the tools themselves. The server goes on."""
    port = free_port()
    links = pairs_of_links()["unix stream"]
    words = ["--app", "ib_write_bw", "--iterations", 50, "--size", 3000]
    m = serve("versions-a", links[0], *words, "--server", "--port", port, "--repeat", 0, addresses=(MODEL4,))
    for version, served in ((b"5.60", False), (b"6.28", True), (b"5.69", False), (b"5.70", True), (b"6.06", True)):
        relay = other_version(version, port)
        c = serve("versions-b", links[1], *words, "--client", "127.0.0.1", "--port", relay.listener.getsockname()[1], mac=PEER_MAC,
                  addresses=(PEER4,))
        expect(c.wait(40) == (0 if served else 1), c.text)
    m.stop_with(1)
    said = [line.strip() for line in m.text.splitlines() if "speaks perftest" in line]
    refused = "ib_write_bw failed: the peer speaks perftest %s, this host 6.06: versions older than 5.70 are refused"
    expect(said == [refused % "5.60", "the peer speaks perftest 6.28, this host 6.06", refused % "5.69",
                    "the peer speaks perftest 5.70, this host 6.06"], said)
    expect([r["ok"] for r in m.result["runs"]] == [False, True, False, True, True], m.result["runs"])


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
