# SPDX-License-Identifier: Apache-2.0
"""Clients that stop in the middle of their work: killed, stopped, or with nothing left of them but a queue pair."""
import os
import signal
import socket
import struct
import time

from scapy.all import ARP, Ether
from served import MODEL4, MODEL_MAC, PEER4, PEER_MAC, BTH, expect, free_port, path, serve, wire
from connection_cases import answer, datagram, linux_request, message

LEFT, STANDS = "the peer has left in the middle of the test", "the peer stands still: nothing of it has come for 30 s"
SILENT = "the peer does not send any more"
QPERF = {"long": ["--test", "rc_rdma_read_bw", "--seconds", 600], "short": ["--test", "rc_bw", "--seconds", 1]}
LONG, SHORT = ["--iterations", 100000], ["--iterations", 20]


class meeting:
    """A server for two clients, one after the other, on a link of their own."""

    def __init__(self, name, app, options=(), long=(), short=(), over_cm=False):
        self.name, self.app, self.options, self.long, self.short = name, app, list(options), list(long), list(short)
        self.port, ends = free_port(), [path(name + ".server"), path(name + ".client")]
        self.there = [MODEL4] if over_cm or app == "qperf" else ["127.0.0.1"]
        if app == "qperf":
            self.there += ["--exchange", "127.0.0.1"]
        self.client_link = "datagram:unix:%s,%s" % (ends[1], ends[0])
        self.server = serve(name + "-server", "datagram:unix:%s,%s" % (ends[0], ends[1]), "--app", app, "--server", "--port",
                            self.port, "--repeat", 2, *self.options, addresses=(MODEL4,))

    def client(self, options):
        return serve(self.name + "-client", self.client_link, "--app", self.app, "--client", *self.there, "--port", self.port,
                     *self.options, *options, mac=PEER_MAC, addresses=(PEER4,))

    def begin(self):
        """A client in the middle of its work."""
        self.first = self.client(self.long)
        if self.app not in ("qperf", "rping"):
            self.server.until("remote address", 20)
        time.sleep(1)
        expect(self.first.process.poll() is None, "%s: through before it could be stopped" % self.name)

    def is_told(self, words, seconds):
        line = self.server.until(" failed: ", seconds)
        expect(any(w in line for w in words), "%s: %s" % (self.name, line))

    def end(self, content=False):
        """The next client is served. `content`: with the first one, too."""
        second = self.client(self.short)
        expect(second.wait(150) == 0, "%s: %s" % (self.name, second.text))
        expect(self.server.wait(150) == (0 if content else 1), "%s: %s" % (self.name, self.server.text))
        runs = self.server.result["runs"]
        expect([r["ok"] for r in runs] == [content, True], "%s: %s" % (self.name, runs))


def killed():
    """A process that dies closes what it talked over: its server knows at once."""
    for app, options, long, short in (
            ("ib_write_bw", [], LONG, SHORT), ("ib_read_lat", [], LONG, SHORT), ("ib_send_bw", ["--iterations", 9000], [], []),
            ("ib_write_lat", ["--seconds", 20], [], None), ("qperf", [], QPERF["long"], QPERF["short"])):
        # Over the connection manager a process that dies says nothing; its successor is heard of, see reborn().
        m = meeting("killed-" + app, app, options, long, short or [])
        m.begin()
        m.first.process.kill()
        m.first.process.communicate()
        m.is_told([LEFT, "is it gone?", "transport retry counter"], 3)
        if short is None:  # it would take its time
            m.server.process.terminate()
            m.server.wait(20)
        else:
            m.end()
        print(app, "ok", flush=True)


def reborn():
    """Of a client of the connection manager that dies nothing is heard but its successor, with the same queue pair."""
    for app, options in (("rping", []), ("ib_write_bw", ["--rdma-cm"])):
        m = meeting("reborn-" + app, app, options, LONG, SHORT, over_cm=True)
        m.begin()
        m.first.process.kill()
        m.first.process.communicate()
        began = time.monotonic()
        m.end(app == "rping")  # whose server is content with any end
        took = time.monotonic() - began
        expect(took < 8, "%s: the next client was served after %.1f s: %s" % (app, took, m.server.text))


def stopped():
    """A process that stands still says nothing at all: each server has an end to its patience."""
    def made(app, options):
        long, short = ([], []) if app == "rc_pingpong" else (QPERF["long"], QPERF["short"]) if app == "qperf" else (LONG, SHORT)
        return meeting("stopped-" + app, app, options, long, short, "--rdma-cm" in options or app == "rping")

    meetings = [(made(app, options), words)
                for app, options, words in (
                    ("ib_write_bw", [], [STANDS]), ("ib_read_bw", ["--rdma-cm"], [STANDS]),
                    ("rc_pingpong", ["--iterations", 100000], ["retry counter", SILENT]),
                    ("rping", [], ["retry counter", SILENT]), ("qperf", [], [STANDS]))]
    for m, _ in meetings:
        m.begin()
        m.first.process.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    for m, words in meetings:
        m.is_told(words, 40)
        print("%s after %.1f s" % (m.name, time.monotonic() - began), flush=True)
    for m, _ in meetings:
        m.first.process.kill()
        m.first.process.communicate()
        m.end()


HELLO = b"6.06".ljust(16, b"\0") + struct.pack(">II", 4096, 64) + b"3\0"
QUEUE_PAIR = b"0000:0010:000011:000000:00001234:0000000000001000:" + b"00:" * 10 + b"ff:ff:0a:00:00:01:" + b"00000000:\0"


def exactly(s, count):
    got = b""
    while len(got) < count:
        more = s.recv(count - len(got))
        expect(more, "the model closed the conversation")
        got += more


def begun(w, port, words):
    """A client of perftest's up to the beginning of the test; its adapter is nobody."""
    s = socket.create_connection(("127.0.0.1", port))
    s.settimeout(20)
    s.sendall(HELLO)
    exactly(s, len(HELLO))
    for number in range(words):
        s.sendall(QUEUE_PAIR)
        if number == 0:
            exactly(s, len(QUEUE_PAIR))
            continue
        if number == 1 and w.resolved is False:
            asked = w.receive(10)
            expect(asked is not None and ARP in asked and asked[ARP].pdst == PEER4, "not asked for")
            w.send(Ether(src=PEER_MAC, dst=MODEL_MAC) / ARP(op=2, hwsrc=PEER_MAC, psrc=PEER4, hwdst=MODEL_MAC, pdst=MODEL4))
            w.resolved = True
        exactly(s, len(QUEUE_PAIR))
    return s


def left_there():
    """Strangers on a raw socket, whose queue pair stays. The server of any number of clients goes on."""
    for app, words in (("ib_send_bw", 4), ("ib_write_bw", 3), ("ib_write_lat", 4)):
        port = free_port()
        w = wire("--app", app, "--server", "--port", port, "--repeat", 0)
        w.resolved = False
        for closes in (True, True, app != "ib_write_bw"):
            s = begun(w, port, words)
            began = time.monotonic()
            if closes:
                s.close()
            line = w.model.until(" failed: ", 3 if closes else 40)
            took = time.monotonic() - began
            told = [LEFT, "is it gone?"] if closes else [STANDS]
            # The server of WRITE's latency writes first, and nobody answers that.
            expect(any(t in line for t in told + ["retry counter"] * (app == "ib_write_lat")), "%s: %s" % (app, line))
            print("%s, %s: %.1f s" % (app, "closed" if closes else "silent", took), flush=True)
            s.close()
        result = stop(w)
        expect(result["runs_made"] == 3 and result["runs_failed"] == 3, result["runs"])
    if BTH is not None:
        unreleased()


def stop(w):
    w.model.process.send_signal(signal.SIGTERM)
    expect(w.model.wait(20) == 1, w.model.text)  # no client of it was content
    w.socket.close()
    os.unlink(path("peer"))
    return w.model.result


def unreleased():
    """Over the connection manager: confirmed, and then nothing."""
    w = wire("--app", "rdma_server", "--server", "--repeat", 0)
    for number in range(2):
        request = bytearray(linux_request())
        request[24:28], request[38:40], request[56:59] = struct.pack(">I", 0x7000 + number), struct.pack(">H", 7471), b"\0\4" + bytes([number])
        kind, theirs, mine, rep = answer(w, datagram(bytes(request)))
        while kind == 0x15:  # the one before is asked to end
            kind, theirs, mine, rep = answer(w)
        expect(kind == 0x13, "no REP")
        w.send(datagram(message(0x14, mine, theirs)))
        if number == 0:
            w.model.until("failed: " + SILENT, 40)
        else:
            time.sleep(0.3)
            w.send(datagram(message(0x15, mine, theirs, rep[36:39] + b"\0")))
            w.model.until("released the connection", 3)
    stop(w)


def taken_late():
    """What the adapter sent last reaches a peer that takes it a while after the program has ended."""
    if BTH is None:
        print("skipped: this scapy knows no RoCE")
        return 77
    for messages in (60, 400):  # which wait at the link; for which the adapter is held, too
        w = wire("--app", "mckey", "--client", "239.9.8.7", "--iterations", messages, "--size", 1000)
        if messages == 60:
            w.model.until("messages sent", 20)
        time.sleep(1.2)  # that the peer is not run
        got = []
        while (f := w.receive(2)) is not None:
            if BTH in f:
                got.append(f[BTH].psn)
        expect(w.model.wait(10) == 0, "%d messages: %s" % (messages, w.model.text))
        first = got[0] if got else 0
        expect([(psn - first) % (1 << 24) for psn in got] == list(range(messages)), "%d of %d messages came: %s" % (
            len(got), messages, w.model.text))
        expect(w.model.result["link"]["waiting"]["bytes_out"] == 0, "%s" % w.model.result["link"])
        w.socket.close()
        os.unlink(path("peer"))
    return 0
