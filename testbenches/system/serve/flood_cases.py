# SPDX-License-Identifier: Apache-2.0
"""Links of every kind whose peers do not read, read slowly, leave and come back, or send without an end."""
import fcntl
import os
import signal
import socket
import struct
import threading
import time

from scapy.all import ARP, Ether, ICMP, IP, Raw
from served import MODEL_MAC, PEER_MAC, MODEL4, PEER4, wrong, expect, path, free_port, serve, wire

FRAME = bytes(Ether(src=PEER_MAC, dst="02:00:00:00:00:77") / Raw(b"x" * 46))  # nobody's: nothing answers it
ECHO = bytes(Ether(src=PEER_MAC, dst=MODEL_MAC) / IP(src=PEER4, dst=MODEL4) / ICMP() / Raw(b"x" * 1400))


def framed(frame):
    return struct.pack(">I", len(frame)) + bytes(frame)


class stream_end:
    """A peer on a stream; `frames` are sent whole, however long that takes."""
    lossless = True

    def __init__(self, family):
        if family == socket.AF_UNIX:
            self.at, link = path("s"), "listen:unix:" + path("s")
        else:
            self.at = ("127.0.0.1", free_port())
            link = "listen:tcp:%s:%d" % self.at
        self.family, self.link = family, link

    def open(self):
        self.socket = socket.socket(self.family)
        self.socket.connect(self.at)
        self.rest = b""

    def close(self):
        self.socket.close()

    def send(self, frame, seconds=30):
        self.socket.settimeout(seconds)
        self.socket.sendall(framed(frame))
        return True

    def receive(self, seconds):
        self.socket.settimeout(seconds)
        try:
            while len(self.rest) < 4 or len(self.rest) < 4 + struct.unpack(">I", self.rest[:4])[0]:
                more = self.socket.recv(65536)
                if not more:
                    return None
                self.rest += more
        except socket.timeout:
            return None
        length = 4 + struct.unpack(">I", self.rest[:4])[0]
        frame, self.rest = self.rest[4:length], self.rest[length:]
        return frame


class datagram_end:
    def __init__(self, family):
        self.family = family
        self.lossless = family == socket.AF_UNIX
        if family == socket.AF_UNIX:
            self.at, self.own = path("model"), path("peer")
            self.link = "datagram:unix:%s,%s" % (self.at, self.own)
        else:
            self.at, self.own = (("127.0.0.1", free_port(socket.SOCK_DGRAM)) for _ in range(2))
            self.link = "datagram:udp:%s:%d,%s:%d" % (self.at + self.own)

    def open(self):
        self.socket = socket.socket(self.family, socket.SOCK_DGRAM)
        self.socket.bind(self.own)

    def close(self):
        self.socket.close()
        if self.family == socket.AF_UNIX:
            os.unlink(self.own)

    def send(self, frame, seconds=30):
        self.socket.settimeout(seconds)
        self.socket.sendto(bytes(frame), self.at)
        return True

    def receive(self, seconds):
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(65536)
        except socket.timeout:
            return None


ETH_P_ALL = 3


class tap_end:
    """The interface's other side: what a packet socket sends on it comes to the model."""
    lossless = False

    def __init__(self):
        self.name = "rnf%d" % (os.getpid() % 100000)
        self.link = "tap:" + self.name

    def open(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            fcntl.ioctl(s, 0x8914, struct.pack("=16sH22x", self.name.encode(), 0x41))  # SIOCSIFFLAGS: up, running
        # With a protocol from the beginning it would take the frames of all interfaces until it has its own.
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.bind((self.name, ETH_P_ALL))

    def close(self):
        self.socket.close()

    def send(self, frame, seconds=30):
        self.socket.settimeout(seconds)
        try:
            self.socket.send(bytes(frame))
        except OSError:  # the interface's own queue: it never came to the link
            return False
        return True

    def receive(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                frame, address = self.socket.recvfrom(65536)
            except socket.timeout:
                return None
            if address[2] != socket.PACKET_OUTGOING:
                return frame
        return None


KINDS = {"tcp stream": lambda: stream_end(socket.AF_INET), "unix stream": lambda: stream_end(socket.AF_UNIX),
         "udp datagram": lambda: datagram_end(socket.AF_INET), "unix datagram": lambda: datagram_end(socket.AF_UNIX),
         "tap": tap_end}


def processor_seconds(process):
    with open("/proc/%d/stat" % process.pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_kb(process):
    with open("/proc/%d/status" % process.pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def begin(name, end, *arguments):
    """The model with its peer, or nothing where there is no such link."""
    try:
        model = serve(name, end.link, *arguments)
    except wrong as e:
        if not isinstance(end, tap_end):
            raise
        print("skipped: no TAP device can be had here: %s" % e)
        return None
    end.open()
    return model


def quickly(model, what):
    """SIGTERM is heard."""
    started = time.monotonic()
    result = model.stop()
    took = time.monotonic() - started
    expect(took < 2, "%s: %.1f s from SIGTERM to the end" % (what, took))
    return result


def balanced(result, name):
    """What came in is on the cable, counted as lost, or waits; the same for what went out."""
    link, cable = result["link"], result["statistics"]
    expect(link["frames_in"] == cable.get("bridge.to_adapter", 0) + link["drop"]["bridge"] + link["waiting"]["frames_in"],
           "%s: %d on the cable, %s" % (name, cable.get("bridge.to_adapter", 0), link))
    left, out = cable.get("bridge.from_adapter", 0), link["frames_out"] + link["drop"]["no_peer"] + link["drop"]["queue_full"]
    expect(out == left or out < left and link["waiting"]["bytes_out"] != 0, "%s: %d left the cable, %s" % (name, left, link))


class sender(threading.Thread):
    """Sends until it is told to stop, and counts what went."""

    def __init__(self, end, frame):
        super().__init__(daemon=True)
        self.end, self.frame, self.sent, self.stopped = end, frame, 0, False
        self.start()

    def run(self):
        try:
            while not self.stopped:
                self.sent += self.end.send(self.frame, 5)
        except OSError:  # the model is gone
            pass

    def stop(self):
        self.stopped = True
        self.join(10)
        expect(not self.is_alive(), "what is sent is not read any more")


def answered(end, seconds=60):
    """The number of questions until there was an answer: all that was sent before has been read by then."""
    for asked in range(1, int(seconds) + 1):
        end.send(wire.arp())
        until = time.monotonic() + (seconds if end.lossless else 1)
        while (left := until - time.monotonic()) > 0:
            frame = end.receive(left)
            if frame is not None and ARP in Ether(frame) and Ether(frame)[ARP].op == 2:
                return asked
    raise wrong("no answer within %d s" % seconds)


def flood():
    """More than the adapter takes: lossless links are read no faster, what others lose is counted, and nothing stops."""
    for name, kind in KINDS.items():
        end = kind()
        model = begin("flood", end)
        if model is None:
            continue
        answered(end)  # whatever the machine itself says on a new interface is said
        s = sender(end, FRAME)
        time.sleep(2)
        s.stop()
        if not end.lossless:  # certainly too much for the kernel's queue
            model.process.send_signal(signal.SIGSTOP)
            s.sent += sum(end.send(ECHO) for _ in range(6000))
            model.process.send_signal(signal.SIGCONT)
        asked = answered(end)
        result = quickly(model, name)
        link = result["link"]
        expect(s.sent > 2000, "%s: only %d frames were sent" % (name, s.sent))
        lost = sum(link["drop"][k] for k in ("kernel", "bridge"))
        came = link["frames_in"] + link["drop"]["kernel"]
        print("%s: %d sent, %d read, %s" % (name, s.sent, link["frames_in"], link["drop"]), flush=True)
        if isinstance(end, tap_end):  # the machine may have words of its own on it
            expect(s.sent + asked + 1 <= came <= s.sent + asked + 100, "%s: %d of %d" % (name, came, s.sent))
        else:
            expect(came == s.sent + asked + 1, "%s: %d of %d frames are accounted for" % (name, came, s.sent + asked + 1))
        expect((lost == 0) == end.lossless, "%s: %s" % (name, link["drop"]))
        expect(link["drop"]["bridge"] == 0, "%s: read and thrown away: %s" % (name, link["drop"]))
        expect(("(" in model.text and "kernel" in model.text) == (link["drop"]["kernel"] != 0), model.text)
        balanced(result, name)
        end.close()
    return 0


def ends_in_a_flood():
    """Signals and timers are heard whatever comes in."""
    for name, kind in KINDS.items():
        for frame in (FRAME, ECHO, b"x" * 10):  # ignored, answered, none at all
            end = kind()
            model = begin("flood", end)
            if model is None:
                break
            s = sender(end, frame)
            time.sleep(0.7)
            balanced(quickly(model, name), name)
            s.stop()
            end.close()
            model = begin("flood", end, "--duration", 2)
            started, s = time.monotonic(), sender(end, frame)
            model.wait(20)
            took = time.monotonic() - started
            expect(took < 4, "%s: --duration 2 is %.1f s in a flood" % (name, took))
            s.stop()
            end.close()
    return 0


def echo(number):
    return bytes(Ether(src=PEER_MAC, dst=MODEL_MAC) / IP(src=PEER4, dst=MODEL4) / ICMP(id=3, seq=number) / Raw(b"x" * 1400))


def echoed(end, seconds=10):
    while (frame := end.receive(seconds)) is not None:
        if ICMP in Ether(frame) and Ether(frame)[ICMP].type == 0:
            return Ether(frame)[ICMP].seq
    return None


def unread():
    """A peer that does not read, or slowly: nothing is lost that finds room, nothing waits in a hurry."""
    for name, kind in KINDS.items():
        end = kind()
        model = begin("unread", end)
        if model is None:
            continue
        for i in range(60):
            end.send(echo(i))
            time.sleep(0.002)
        time.sleep(1)
        before = processor_seconds(model.process)
        time.sleep(2)
        spent = processor_seconds(model.process) - before
        expect(spent < 0.2, "%s: %.2f s of processor time for 2 s of a peer that does not read" % (name, spent))
        got = []
        for i in range(60):
            got.append(echoed(end))
            time.sleep(0.003)
        expect(got == list(range(60)), "%s: answers %s" % (name, got))
        for i in range(60, 120):  # again, and it never reads
            end.send(echo(i))
        time.sleep(0.3)
        balanced(quickly(model, name), name)
        end.close()
        model = begin("unread", end, "--duration", 2)
        started = time.monotonic()
        for i in range(60):
            end.send(echo(i))
        model.wait(20)
        expect(time.monotonic() - started < 4, "%s: --duration 2 with a peer that does not read" % name)
        end.close()
    return 0


def overfull():
    """A peer that never reads is waited for, then its frames are lost and counted; it reads again and is served."""
    for name in ("unix stream", "unix datagram"):
        end = KINDS[name]()
        model = begin("overfull", end)
        s = sender(end, ECHO)
        time.sleep(2)
        s.stop()
        time.sleep(3)  # it is held, then given up
        before = processor_seconds(model.process)
        time.sleep(2)
        spent = processor_seconds(model.process) - before
        expect(spent < 0.3, "%s: %.2f s of processor time for 2 s of a peer that does not read" % (name, spent))
        s = sender(end, ECHO)
        time.sleep(6)
        s.stop()
        until = time.monotonic() + 60
        while end.receive(1) is not None:
            expect(time.monotonic() < until, "%s: it never ends" % name)
        expect(answered(end) == 1, name)
        result = quickly(model, name)
        expect(result["link"]["drop"]["queue_full"] > 0 and result["statistics"]["bridge.pauses_said"] > 0,
               "%s: %s" % (name, result["link"]))
        balanced(result, name)
        end.close()


def returns():
    """A datagram peer whose queue is full leaves, and another one takes its place, with and without a gap."""
    end = datagram_end(socket.AF_UNIX)
    model = begin("returns", end)
    for round_ in range(3):
        for i in range(40):
            end.send(echo(i))
        time.sleep(0.2)
        if round_ == 1:  # the old one stays, unread, but has lost its name
            old = end.socket
            os.unlink(end.own)
        else:
            end.close()
            time.sleep(0.4)
        end.open()
        deadline = time.monotonic() + 5
        while echoed(end, 0.3) is not None:
            expect(time.monotonic() < deadline, "echoes without an end")
        expect(answered(end, 5) == 1, "round %d" % round_)
    old.close()
    end.close()
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.sendto(echo(1), end.at)  # from somebody without a name, with nobody there
    time.sleep(0.3)
    end.open()
    expect(answered(end, 5) == 1, "after the last")
    result = quickly(model, "returns")
    expect(result["link"]["drop"]["no_peer"] > 0, result["link"])
    for word in ("link: the peer has come", "link: the peer has gone, frames for it are lost"):
        expect(model.text.count(word) >= 2, "%r: %s" % (word, model.text))
    balanced(result, "returns")
    # A peer that is connected to the model hears it all the same; its queue knows no number of frames.
    os.unlink(path("peer"))
    end.open()
    model = serve("connected", end.link)
    end.socket.connect(end.at)
    for i in range(400):
        end.socket.send(echo(i))
        time.sleep(0.001)
    time.sleep(0.5)
    before = processor_seconds(model.process)
    time.sleep(1)
    expect(processor_seconds(model.process) - before < 0.2, "busy with a full socket")
    expect([echoed(end) for _ in range(400)] == list(range(400)), "a connected peer does not hear everything")
    quickly(model, "connected")
    end.close()


def idle():
    """Nothing to do costs nothing."""
    for name, kind in KINDS.items():
        end = kind()
        model = begin("idle", end)
        if model is None:
            continue
        answered(end)
        time.sleep(0.5)
        before, memory = processor_seconds(model.process), resident_kb(model.process)
        time.sleep(3)
        spent, more = processor_seconds(model.process) - before, resident_kb(model.process) - memory
        expect(spent <= 0.03 and more < 100, "%s: %.2f s, %d KB in 3 s of nothing" % (name, spent, more))
        quickly(model, name)
        end.close()
    end = KINDS["unix stream"]()  # a server that listens for connections
    model = begin("idle", end, "--app", "rping", "--server", "--repeat", "0")
    answered(end)
    time.sleep(0.5)
    before = processor_seconds(model.process)
    time.sleep(3)
    spent = processor_seconds(model.process) - before
    expect(spent <= 0.03, "a server of connections: %.2f s in 3 s of nothing" % spent)
    model.process.terminate()  # without a client it ends in 1
    model.process.wait()
    end.close()
    # It was asleep, not behind: of three ends one at least is not on a machine that stands still itself.
    lost = []
    for _ in range(3):
        model = begin("idle", end, "--app", "rping", "--server", "--repeat", "0")
        time.sleep(1.5)
        lost.append(model.stop_with(1)["time"]["lost_us"])
    expect(min(lost) == 0, "told to end, idle servers say that they lost %s us" % lost)
    return 0


def growth():
    """A long flood needs no more memory than a short one."""
    for name in ("unix stream", "unix datagram", "udp datagram"):
        end = KINDS[name]()
        model = begin("growth", end)
        s = sender(end, ECHO)
        time.sleep(2)
        early = resident_kb(model.process)
        time.sleep(6)
        late = resident_kb(model.process)
        quickly(model, name)
        s.stop()
        end.close()
        expect(late - early < 8000, "%s: %d KB after 2 s, %d KB after 8 s" % (name, early, late))


def second_peer():
    """One peer at a time on a listening stream: the next one is told, and takes the place when it is free."""
    for family in (socket.AF_UNIX, socket.AF_INET):
        end = stream_end(family)
        model = begin("one", end)
        answered(end)
        for _ in range(3):
            other = socket.socket(family)
            other.connect(end.at)
            other.settimeout(10)
            expect(other.recv(1) == b"", "a second peer is not told")
            other.close()
        answered(end)
        # The first one leaves with much unsaid: that is read, and the next one is served.
        for i in range(3000):
            end.send(FRAME)
        end.close()
        end.open()
        expect(answered(end) == 1, "the next peer")
        result = quickly(model, "one")
        link = result["link"]
        expect(link["turned_away"] == 3 and link["connections"] == 2 and link["frames_in"] == 3003 and
               link["disconnections"] == 1, link)
        expect(model.text.count("link: a second peer was turned away: one is connected") == 3 and
               model.text.count("link: a peer has come") == 2 and model.text.count("link: the peer has gone") == 1, model.text)
        end.close()
        model = begin("quiet", end, "--quiet")
        answered(end)
        end.close()
        quickly(model, "quiet")
        expect("link:" not in model.text, model.text)


def lines():
    """Of many events a few lines are printed, and a reader that does not read stops nothing."""
    end = stream_end(socket.AF_UNIX)
    model = begin("lines", end)
    answered(end)
    others = [socket.socket(end.family) for _ in range(300)]
    for other in others:
        other.connect(end.at)
    for other in others:
        other.settimeout(10)
        expect(other.recv(1) == b"", "not told")
        other.close()
    answered(end)
    result = quickly(model, "lines")
    said = model.text.count("turned away")
    expect(result["link"]["turned_away"] == 300 and 5 < said < 20, "%d lines: %s" % (said, model.text))
    left_out = sum(int(line.split()[0]) for line in model.text.splitlines() if "left out" in line)
    expect(said + left_out + model.text.count("has come") + model.text.count("has gone") >= 301, model.text)
    end.close()
