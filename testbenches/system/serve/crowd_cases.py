# SPDX-License-Identifier: Apache-2.0
"""Servers and many clients: in sequence, half-open, silent, greedy, and what they leave behind."""
import functools
import os
import select
import signal
import socket
import struct
import subprocess
import threading
import time

from scapy.all import ARP, Ether, IP, Raw, UDP
from served import (MODEL4, MODEL6, MODEL_MAC, PEER4, PEER6, PEER_MAC, RNIC, BTH, expect, free_port, pairs_of_links, path, serve,
                    wire)
from connection_cases import answer, datagram, linux_request, message

REQ, MRA, REJ, REP, RTU, DREQ, DREP = 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16
MOST_HALF_OPEN, BACKLOG = 16, 256
CLIENTS = int(os.environ.get("RNIC_CLIENTS", "300"))  # of one server, for its memory


@functools.lru_cache
def captured():
    return bytes(linux_request())


def request(number, port=7174):
    """The REQ of client `number`, a queue pair of its own."""
    req = bytearray(captured())
    req[24:28], req[38:40], req[56:59] = struct.pack(">I", 0x7000 + number), struct.pack(">H", port), struct.pack(">I", 0x400 + number)[1:]
    return bytes(req)


class between(threading.Thread):
    """A switch between the model, as `path("model")`, and a client, as `path("peer")`, into which frames can be put."""

    def __init__(self):
        super().__init__(daemon=True)
        self.sides = []
        for name in ("towards_model", "towards_peer"):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            s.bind(path(name))
            self.sides.append(s)
        self.start()

    def run(self):
        model, peer = self.sides
        while True:
            for s in select.select(self.sides, [], [])[0]:
                frame = s.recv(65536)
                try:
                    (peer.sendto if s is model else model.sendto)(frame, path("peer" if s is model else "model"))
                except OSError:  # nobody is there
                    pass

    def put(self, frame):
        self.sides[0].sendto(bytes(frame), path("model"))


def sequence():
    """Clients come one right after the other, beside one that asked and never confirms."""
    if BTH is None:
        print("skipped: this scapy knows no RoCE")
        return 77
    for app, clients, options in (("rping", 12, ["--iterations", 2]), ("ucmatose", 6, ["--qps", 2]), ("rdma_server", 5, []),
                                  ("ib_write_bw", 4, ["--rdma-cm", "--iterations", 20, "--size", 3000])):
        switch = between()
        server = serve("server", "datagram:unix:%s,%s" % (path("model"), path("towards_model")), "--app", app, "--server",
                       "--repeat", clients, *(o for o in options if app != "rping"))
        port = {"rping": 7174, "ib_write_bw": 18515}.get(app, 7471)
        for number in range(clients):
            if number % 3 == 0:
                switch.put(datagram(request(number, port)))
            c = serve("client", "datagram:unix:%s,%s" % (path("peer"), path("towards_peer")), "--app", app, "--client", MODEL4,
                      *options, mac=PEER_MAC, addresses=(PEER4, PEER6))
            expect(c.wait(40) == 0, "%s: client %d: %s" % (app, number, c.text))
        expect(server.wait(20) == 0 and server.result["runs_made"] == clients, server.text)
        print(app, server.result["clients"], flush=True)
        for s in switch.sides:
            s.close()
        for name in ("towards_model", "towards_peer"):
            os.unlink(path(name))


def kinds_of(w, seconds, frames=()):
    """{attribute: {client's number: MAD}} of what the model says to these frames, and for some time afterwards."""
    said, frames = {}, list(frames)
    end = time.monotonic() + seconds
    while frames or end > time.monotonic():
        if frames:  # a few at a time: what it says has to be taken, too
            w.send(frames.pop(0))
            end = time.monotonic() + seconds
        f = w.receive(0.002 if frames else max(end - time.monotonic(), 0.01))
        if f is not None and UDP in f and f[UDP].dport == 4791 and len(f) == 322:
            mad = bytes(f)[62:318]
            said.setdefault(struct.unpack(">H", mad[16:18])[0], {})[struct.unpack(">I", mad[28:32])[0] - 0x7000] = mad
    return said


def backlog():
    """Half-open connections, their number and their time; a queue in front of them that is not endless either."""
    if BTH is None:
        print("skipped: this scapy knows no RoCE")
        return 77
    w = wire("--app", "rping", "--server", "--repeat", 0)
    said = kinds_of(w, 4, [datagram(request(number)) for number in range(MOST_HALF_OPEN)])
    expect(set(said) == {REP} and len(said[REP]) == MOST_HALF_OPEN, "half-open: %s" % {k: len(v) for k, v in said.items()})
    # One of them confirms, is served at once, and leaves.
    mine, theirs = 0x7000 + 9, struct.unpack(">I", said[REP][9][24:28])[0]
    w.send(datagram(message(RTU, mine, theirs)))
    time.sleep(0.3)
    w.send(datagram(message(DREQ, mine, theirs, said[REP][9][36:39] + b"\0")))
    expect(9 in kinds_of(w, 1).get(DREP, {}), "the one that confirmed was not served")
    # More than there are places for: they wait, and beyond that they are told.
    said = kinds_of(w, 8, [datagram(request(number)) for number in range(100, 100 + BACKLOG + 60)])
    full = [number for number, mad in said.get(REJ, {}).items() if mad[34:36] == b"\0\3"]
    expect(len(full) >= 10, "not refused: %s" % {k: len(v) for k, v in said.items()})
    # Those that do not confirm make room for those that wait.
    expect(len(said.get(REP, {})) >= 2 and len(said.get(MRA, {})) > 20, "no room: %s" % {k: len(v) for k, v in said.items()})
    w.model.process.send_signal(signal.SIGTERM)
    kinds_of(w, 3)  # all that wait are told
    expect(w.model.wait(20) == 0, w.model.text)
    result = w.model.result
    expect(result["runs_made"] == 1 and result["clients"]["confirmed"] == 1 and result["clients"]["unconfirmed"] >= 2, result["clients"])
    expect(result["connection_manager"]["backlog_full"] == len(full), result["connection_manager"])
    w.socket.close()
    os.unlink(path("peer"))
    established_by_data()


def first_word(rep, psn_offset=0, content=bytes(16)):
    """The client's first SEND, to the queue pair of this REP."""
    qpn, psn = (int.from_bytes(rep[i:i + 3], "big") for i in (36, 44))
    return (Ether(src=PEER_MAC, dst=MODEL_MAC) / IP(src=PEER4, dst=MODEL4) / UDP(sport=0xc011, dport=4791) /
            BTH(opcode=4, dqpn=qpn, psn=psn + psn_offset & 0xffffff, ackreq=1) / Raw(content))


def established_by_data():
    """The RTU is lost: the first packet says the same (IBA: communication established)."""
    w = wire("--app", "rping", "--server", "--repeat", 0)
    kind, theirs, _, rep = answer(w, datagram(request(1)))
    expect(kind == REP, "no REP")
    w.send(first_word(rep, 0, struct.pack(">QII", 0x10000, 0x77, 64)))
    read = None
    for _ in range(20):
        f = w.receive(1)
        if f is not None and BTH in f and f[BTH].opcode == 12 and f[BTH].dqpn == 0x401:
            read = f
            break
    expect(read is not None, "the server does not read what it was told of")
    w.send(datagram(message(RTU, 0x7001, theirs)))
    w.send(datagram(message(DREQ, 0x7001, theirs, rep[36:39] + b"\0")))
    expect(1 in kinds_of(w, 1).get(DREP, {}), "not released")
    managed = w.model.stop()["connection_manager"]
    expect(managed["by_data"] == 1 and managed["wrong_state"] == 0, managed)
    w.socket.close()
    os.unlink(path("peer"))


def farewell():
    """Who is left is told, before the process leaves, and the queue pair is silent by then."""
    if BTH is None:
        print("skipped: this scapy knows no RoCE")
        return 77
    for end in ("signal", "duration", "failure"):
        w = wire("--app", "rping", "--server", *(["--duration", 3] if end == "duration" else []))
        kind, theirs, _, rep = answer(w, datagram(request(1)))
        expect(kind == REP, "no REP")
        w.send(datagram(message(RTU, 0x7001, theirs)))
        time.sleep(0.3)
        if end == "signal":
            w.model.process.send_signal(signal.SIGTERM)
        elif end == "failure":  # a word that makes no sense: no buffer at all
            w.send(first_word(rep))
        told, begun = False, time.monotonic()
        while not told and time.monotonic() < begun + 6:
            f = w.receive(1)
            told = f is not None and UDP in f and len(f) == 322 and bytes(f)[62 + 16:62 + 18] == struct.pack(">H", DREQ)
        expect(told, end + ": no DREQ")
        began = time.monotonic()
        w.send(first_word(rep, 1 if end == "failure" else 0, struct.pack(">QII", 0x10000, 0x77, 64)))
        while time.monotonic() < began + 0.3:
            f = w.receive(0.1)
            expect(f is None or BTH not in f or f[BTH].dqpn != 0x401, end + ": a packet behind the wish to end: %r" % f)
        if end != "failure":  # the last one is not answered: it does not wait for ever either
            w.send(datagram(message(DREP, 0x7001, theirs)))
        status = w.model.wait(10)
        took = time.monotonic() - began
        expect(status == 1 and (took < 1.5 if end != "failure" else took < 4), "%s: status %s after %.1f s" % (end, status, took))
        w.socket.close()
        os.unlink(path("peer"))
    return 0


def hello(gid=b"", page=4096):
    return b"6.06".ljust(16, b"\0") + struct.pack(">II", page, 64) + b"3\0" + gid


def resident(process):
    with open("/proc/%d/status" % process.pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def read_all(s):
    try:
        while s.recv(4096):
            pass
    except OSError:
        pass


def greedy():
    """A client that asks for much is refused, and that is all; what clients used is given back."""
    port = free_port()
    m = serve("greedy", "listen:unix:" + path("s"), "--app", "ib_write_bw", "--server", "--port", port, "--repeat", 0, "--qps", 64)
    for page in (1 << 24, 1 << 23):
        with socket.create_connection(("127.0.0.1", port)) as s:
            s.settimeout(30)
            s.sendall(hello(page=page))
            s.shutdown(socket.SHUT_WR)
            read_all(s)
    m.process.send_signal(signal.SIGTERM)
    expect(m.wait(20) == 1 and "2048 MiB: a client has up to 512" in m.text and m.result["runs_failed"] == 2, m.text)
    m = serve("greedy", "listen:unix:" + path("s"), "--app", "ib_write_bw", "--server", "--port", port, "--repeat", 0, "--qps", 2)
    for number in range(CLIENTS):
        with socket.create_connection(("127.0.0.1", port)) as s:
            s.settimeout(30)
            s.sendall(hello() + b"x" * 108)
            read_all(s)
        if number == CLIENTS // 4:
            before = resident(m.process)
    after = resident(m.process)
    expect(after < before * 1.05 + 2048, "%d KiB after %d clients, %d after %d" % (before, CLIENTS // 4, after, CLIENTS))
    m.process.send_signal(signal.SIGTERM)
    expect(m.wait(20) == 1, m.text)
    runs = m.result
    made = runs["runs_made"]  # the last one may end by the signal
    expect(CLIENTS - 1 <= made <= CLIENTS and made == runs["runs_failed"], made)
    expect(len(runs["runs"]) == min(made, 1000), len(runs["runs"]))
    expect("no sense" in runs["runs"][-2]["error"], runs["runs"][-2])
    print("%d KiB after %d clients, %d after %d" % (before, CLIENTS // 4, after, CLIENTS))


def silent():
    """Clients of the exchange that say nothing hold nobody up, and are not kept for ever."""
    port = free_port()
    links = pairs_of_links()["unix stream"]
    a = serve("silent-a", links[0], "--app", "rc_pingpong", "--server", "--port", port, "--iterations", 20, "--repeat", 2)
    mute = [socket.create_connection(("127.0.0.1", port)) for _ in range(80)]
    mute.append(socket.create_connection(("::1", port)))
    mute[-1].sendall(b"half a word")
    for number in range(2):
        begun = time.monotonic()
        if number == 1:  # one that stops in the middle holds up the next one, but not for 20 s
            rude = socket.create_connection(("127.0.0.1", port))
            rude.sendall(b"0000:000011:000000:00000000000000000000ffff0a000001\0")
            time.sleep(0.2)
        b = serve("silent-b", links[1], "--app", "rc_pingpong", "--client", "localhost" if number else "::1", "--port", port,
                  "--iterations", 20, mac=PEER_MAC, addresses=(PEER4, PEER6))
        if number == 0:
            expect(b.wait() == 0 and time.monotonic() - begun < 5, "held up: " + b.text)
    b.process.kill()
    b.process.communicate()
    expect(a.wait(40) == 1, a.text)
    exchange = a.result["exchange"]
    expect(exchange["silent"] >= 17 and exchange["clients"] >= 2 and a.result["runs"][0]["ok"], exchange)
    for s in mute:
        s.close()


def where():
    """The exchange listens where it is told to."""
    for option, there, not_there in (([], ("127.0.0.1", "::1"), ("127.0.0.2",)), (["--exchange", "127.0.0.2"], ("127.0.0.2",), ("127.0.0.1", "::1")),
                                     (["--exchange", "::1"], ("::1",), ("127.0.0.1",)), (["--exchange", "0.0.0.0"], ("127.0.0.1", "127.0.0.2"), ("::1",)),
                                     (["--exchange", "::"], ("::1", "127.0.0.1"), ())):
        port = free_port()
        m = serve("where", "listen:unix:" + path("s"), "--app", "ib_read_bw", "--server", "--port", port, *option)
        for address in there:
            socket.create_connection((address, port), 5).close()
        for address in not_there:
            try:
                socket.create_connection((address, port), 5).close()
            except OSError:
                continue
            expect(False, "%s: listens at %s" % (option, address))
        m.process.send_signal(signal.SIGTERM)
        m.wait(10)
    for option, word in ((["--exchange", "nowhere"], "not an IP address"), (["--exchange", "192.0.2.1"], "192.0.2.1")):
        done = subprocess.run([RNIC, "serve", "--link", "listen:unix:" + path("s"), "--app", "ib_read_bw", "--server", *option],
                              capture_output=True, text=True, timeout=20)
        expect(done.returncode == 2 and word in done.stderr, done)


def versions_apart():
    """Hosts that are set to two RoCE versions do not meet, and both say why."""
    links = pairs_of_links()["unix stream"]
    for app, server_version, client_version in (("rping", "v2", "v1"), ("rping", "v1", "v2"), ("udaddy", "v1", "v2")):
        a = serve("apart-a", links[0], "--app", app, "--server", "--roce", server_version)
        b = serve("apart-b", links[1], "--app", app, "--client", MODEL4, "--roce", client_version, mac=PEER_MAC,
                  addresses=(PEER4, PEER6))
        expect(b.wait() == 1 and "refused" in b.text and "RoCE v1" in b.text and "RoCE v2" in b.text, b.text)
        a.process.send_signal(signal.SIGTERM)
        expect(a.wait() == 1 and "it speaks RoCE %s, this host is set to RoCE %s" % (client_version, server_version) in a.text, a.text)
        expect(a.result["connection_manager"]["other_version"] == 1 and a.result["runs_made"] == 0, a.result)


def first_generation():
    """An adapter with RoCE v1 alone: to it, RoCE v2 is UDP that nobody has asked for."""
    links = pairs_of_links()["unix stream"]
    old = ["--set", "adapter.port.roce_v2=false"]
    for version, ok in (("v1", True), ("v2", False)):
        a = serve("first-a", links[0], "--app", "rping", "--server", "--roce", "v1", *old)
        b = serve("first-b", links[1], "--app", "rping", "--client", MODEL4, "--iterations", 3, "--roce", version, mac=PEER_MAC,
                  addresses=(PEER4, PEER6), *([] if ok else ["--duration", 3]))
        status = b.wait()
        a.process.send_signal(signal.SIGTERM)
        a.wait()
        statistics = a.result["statistics"]
        expect((status == 0) == ok and a.result["runs_made"] == ok, "%s: %s%s" % (version, a.text, b.text))
        expect(ok or statistics.get("served.adapter.parser1.roce_frames", 0) == 0 and a.result["connection_manager"]["received"] == 0,
               statistics)
    done = subprocess.run([RNIC, "serve", "--link", "listen:unix:" + path("s"), "--app", "rping", "--server", "--roce", "v2", *old],
                          capture_output=True, text=True, timeout=20)
    expect(done.returncode == 2 and "--roce v2: the adapter has no address" in done.stderr, done)


def unanswered():
    """Nobody answers, and the line says what would have helped."""
    links, port = pairs_of_links()["unix stream"], free_port()
    a = serve("gone-a", links[0], "--app", "ib_write_bw", "--server", "--port", port, "--iterations", 100000)
    b = serve("gone-b", links[1], "--app", "ib_write_bw", "--client", "127.0.0.1", "--port", port, "--iterations", 100000,
              mac=PEER_MAC, addresses=(PEER4, PEER6))
    while "remote address" not in b.process.stdout.readline():
        pass
    time.sleep(0.3)
    a.process.send_signal(signal.SIGSTOP)
    status = b.wait(30)
    a.process.kill()
    a.process.communicate()
    expect(status == 1 and "transport retry counter exceeded: the peer did not answer (status 12); a higher --timeout" in b.text, b.text)
