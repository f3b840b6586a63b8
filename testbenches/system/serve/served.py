# SPDX-License-Identifier: Apache-2.0
"""`rnic serve` as a process, its peers on the other end of a link, and words for what went wrong."""
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

try:
    from scapy.all import ARP, Ether, rdpcap
except ImportError:
    print("skipped: there is no scapy")
    sys.exit(77)
try:
    from scapy.contrib.roce import BTH
except ImportError:
    BTH = None

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "program"))
from process_output import rest_of  # noqa: E402

RNIC = sys.argv[2]
FOLDER = tempfile.mkdtemp(prefix="rnic-serve-")
MODEL_MAC, PEER_MAC = "02:00:00:00:00:02", "02:00:00:00:00:01"
MODEL4, PEER4, MODEL6, PEER6 = "10.0.0.2", "10.0.0.1", "fd00::2", "fd00::1"


class wrong(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise wrong(what)


def path(name):
    return os.path.join(FOLDER, name)


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def is_report(frame):
    """Whether it tells of IPv6 groups (MLD): every host does so on its own when its addresses come and go."""
    raw = bytes(frame)
    at = 18 if raw[12:14] == b"\x81\0" else 14
    return raw[at - 2:at] == b"\x86\xdd" and raw[at + 6:at + 7] == b"\0" and raw[at + 48:at + 49] in (b"\x83", b"\x84", b"\x8f")


def asked_for(pcap):
    """The frames of a capture but for those reports."""
    return [f for f in rdpcap(pcap) if not is_report(f)]


class serve:
    """A process with its results."""

    def __init__(self, name, link, *arguments, mac=MODEL_MAC, addresses=(MODEL4, MODEL6), capture=".pcap"):
        self.json, self.pcap = path(name + ".json"), path(name + capture)
        command = [RNIC, "serve", "--link", link, "--mac", mac, "--json", self.json, "--pcap", self.pcap, "--overwrite"]
        for a in addresses:
            command += ["--ip", a]
        self.process = subprocess.Popen(command + [str(a) for a in arguments], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        self.heard = ""
        line = self.process.stdout.readline()
        if not line.startswith("serving"):
            self.process.kill()
            rest, _ = self.process.communicate()
            raise wrong("%s did not start: %s%s" % (name, line, rest))

    def until(self, word, seconds):
        """The next line with `word` in it."""
        overdue = threading.Timer(seconds, self.process.kill)
        overdue.start()
        try:
            while True:
                line = self.process.stdout.readline()
                self.heard += line
                if word in line:
                    return line
                expect(line, "%r was not said within %s s: %s" % (word, seconds, self.heard))
        finally:
            overdue.cancel()

    def wait(self, seconds=60):
        rest, killed = rest_of(self.process, seconds)
        self.text = self.heard + rest
        if killed:
            raise wrong("did not end within %d s: %s" % (seconds, self.text))
        with open(self.json) as f:
            self.result = json.load(f)
        return self.process.returncode

    def stop(self):
        return self.stop_with(0)

    def stop_with(self, expected):
        self.process.send_signal(signal.SIGTERM)
        status = self.wait(20)
        expect(status == expected, "status %s after SIGTERM: %s" % (status, self.text))
        return self.result


def together(name, links, app, arguments, addresses=((PEER4, PEER6), (MODEL4, MODEL6)), options=()):
    port = free_port()
    a = serve(name + "-a", links[0], "--app", app, "--server", "--port", port, *arguments, *options, addresses=addresses[1])
    b = serve(name + "-b", links[1], "--app", app, "--client", "127.0.0.1", "--port", port, *arguments, *options,
              mac=PEER_MAC, addresses=addresses[0])
    status = [b.wait(), a.wait()]
    expect(status == [0, 0], "%s: status %s\n%s%s" % (name, status, a.text, b.text))
    for side in (a, b):
        run = side.result["runs"][0]
        expect(run["ok"] and run["wrong_bytes"] == 0, "%s: %s" % (name, run))
        link = side.result["link"]
        # The last message of one of several queue pairs may find a peer that has had enough and is gone; so may reports
        # of groups, where it is not there yet, too.
        gone, captured = link["drop"]["no_peer"], rdpcap(side.pcap)
        expect(app == "srq_pingpong" or gone <= sum(is_report(f) for f in captured), "%s: %s" % (name, link))
        expect(sum(link["drop"].values()) == gone, "%s: %s" % (name, link))
        captured = len(captured)
        expect(captured == link["frames_in"] + link["frames_out"] + gone,
               "%s: %d frames captured, %s" % (name, captured, link))
    received, sent = a.result["runs"][0]["received"], b.result["runs"][0]["sent"]
    # One of several queue pairs may be ahead when all of them together have enough.
    expect(received == sent or app == "srq_pingpong" and min(received, sent) >= 20, name + ": numbers of messages")
    print(name, "ok", flush=True)
    return a, b


def pairs_of_links():
    tcp, udp1, udp2 = free_port(), free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_DGRAM)
    return {
        "unix stream": ("listen:unix:" + path("s"), "connect:unix:" + path("s")),
        "tcp stream": ("listen:tcp:127.0.0.1:%d" % tcp, "connect:tcp:127.0.0.1:%d" % tcp),
        "unix datagram": ("datagram:unix:%s,%s" % (path("x"), path("y")), "datagram:unix:%s,%s" % (path("y"), path("x"))),
        "udp datagram": ("datagram:udp:127.0.0.1:%d,127.0.0.1:%d" % (udp1, udp2),
                         "datagram:udp:127.0.0.1:%d,127.0.0.1:%d" % (udp2, udp1)),
    }


class wire:
    """The other end of a UNIX datagram link."""

    def __init__(self, *arguments, **more):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path("peer"))
        self.model = serve("model", "datagram:unix:%s,%s" % (path("model"), path("peer")), *arguments, **more)

    def send(self, frame):
        self.socket.settimeout(30)  # what the model has not read yet has to make room
        self.socket.sendto(bytes(frame), path("model"))

    def receive(self, seconds, reports=False):
        """The next frame; reports of IPv6 groups only where they are asked for."""
        end = time.monotonic() + seconds
        try:
            while True:
                self.socket.settimeout(max(end - time.monotonic(), 0.001))
                frame = self.socket.recv(65536)
                if reports or not is_report(frame):
                    return Ether(frame)
        except socket.timeout:
            return None

    def ask(self, frame, seconds=5):
        self.send(frame)
        answer = self.receive(seconds)
        expect(answer is not None, "no answer to %s" % frame.summary())
        return answer

    def silence(self, frame):
        """The frame is not answered, and what follows it is."""
        self.send(frame)
        answer = self.ask(self.arp())
        expect(ARP in answer, "%s was answered by %s" % (Ether(bytes(frame)).summary(), answer.summary()))

    @staticmethod
    def arp(target=MODEL4):
        return Ether(src=PEER_MAC, dst="ff:ff:ff:ff:ff:ff") / ARP(op=1, hwsrc=PEER_MAC, psrc=PEER4, pdst=target)
