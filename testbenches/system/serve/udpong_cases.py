# SPDX-License-Identifier: Apache-2.0
"""udpong between two models, and with hosts made of scapy's packets that speak as librdmacm's rsocket.c, or do not."""
import os
import random
import select
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

from scapy.all import ARP, Dot1Q, Ether, IP, IPv6, Raw, UDP, rdpcap
from served import BTH, MODEL4, MODEL6, MODEL_MAC, PEER4, PEER6, PEER_MAC, expect, pairs_of_links, path, serve, wire, wrong
from connection_cases import datagram

PORT, TAG, DATA, CONTROL = 7174, 0x55555555, 0, 7
KEY, OUR_QPN, OUR_PORT = 0x01234567, 0x1234, 40000
LOGIN, START, MESSAGE, ECHO, END = range(5)


def between_models():
    ipv4, ipv6 = ((PEER4,), (MODEL4,)), ((PEER6,), (MODEL6,))
    cases = (("count", ["--iterations", 500], [], ipv4), ("small", ["--size", 16, "--iterations", 1000], [], ipv4),
             ("echo", ["--size", 2040, "--iterations", 60, "--bidirectional"], [], ipv4),
             ("ipv6", ["--size", 2024, "--iterations", 60, "--bidirectional"], [], ipv6),
             ("vlan", ["--iterations", 60, "--bidirectional"], ["--vlan", 9, "--priority", 5], ipv4),
             ("v1", ["--iterations", 60, "--bidirectional"], ["--roce", "v1"], ipv4))
    links = pairs_of_links()["unix datagram"]
    for name, client, both, (own, to) in cases:
        a = serve("udpong-a", links[0], "--app", "udpong", "--server", *both, addresses=to)
        b = serve("udpong-b", links[1], "--app", "udpong", "--client", to[0], *client, *both, mac=PEER_MAC, addresses=own)
        status = [b.wait(), a.wait()]
        expect(status == [0, 0], "%s: status %s\n%s%s" % (name, status, a.text, b.text))
        number = client[client.index("--iterations") + 1]
        ours, theirs = b.result["runs"][0], a.result["runs"][0]
        echo = "--bidirectional" in client
        expect(ours["sent"] == ours["received"] == number and ours["wrong_bytes"] == 0, "%s: %s" % (name, ours))
        # Where this machine is busy an answer comes late, and a question twice: what is only sent is not.
        expect(theirs["received"] >= number if echo else theirs["received"] == number, "%s: %s" % (name, theirs))
        expect(theirs["sent"] == (theirs["received"] if echo else 0), "%s: %s" % (name, theirs))
        drop = a.result["link"]["drop"]  # reports of its groups before the peer came and behind its end
        expect(sum(drop.values()) == drop["no_peer"] <= 4, a.text)
        on_the_wire(name, b.pcap, own[0], 2 * number if echo else number, name == "vlan")
        print(name, "ok", flush=True)
    in_sequence(links)
    b = serve("udpong-b", links[1], "--app", "udpong", "--client", MODEL6, mac=PEER_MAC, addresses=(PEER4, PEER6))
    expect(b.wait() == 1 and "IPv4 and IPv6 do not meet" in b.text and "--gid-index" in b.text, b.text)


def in_sequence(links):
    """A server's clients one after the other, within a run or in the next; then it is ended while it waits."""
    a = serve("udpong-a", links[0], "--app", "udpong", "--server", "--repeat", 0, addresses=(MODEL4,))
    for _ in range(3):
        b = serve("udpong-b", links[1], "--app", "udpong", "--client", MODEL4, "--iterations", 40, mac=PEER_MAC, addresses=(PEER4,))
        expect(b.wait() == 0, b.text)
    time.sleep(3)  # the run has ended
    began = time.monotonic()
    a.process.send_signal(signal.SIGTERM)
    expect(a.wait(20) == 0 and time.monotonic() - began < 10, a.text)
    expect(1 <= a.result["runs_made"] <= 3 and a.result["runs_failed"] == 0 and a.text.count("a client at ") == 3, a.text)
    expect(sum(run["received"] for run in a.result["runs"]) == 120, a.text)


def address(text):
    return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)


def body(f):
    """Of a UDP datagram, without the padding of a short frame."""
    return bytes(f[UDP].payload)[:f[UDP].len - 8]


def told(payload):
    """struct ds_udp_header: (op, queue pair, address), and what is behind it."""
    tag, version, op, length, reserved, qpn = struct.unpack(">IBBBBI", payload[:12])
    expect(tag == TAG and (version, length) in ((4, 16), (6, 28)) and reserved == 0 and qpn >> 24 == 0, "header: " + payload.hex())
    return (op, qpn, payload[12:length]), payload[length:]


def checked(frame):
    """The checksums of our side are those that scapy makes."""
    again = frame.copy()
    del again[UDP].chksum
    if IP in again:
        del again[IP].chksum
    expect(bytes(again.__class__(bytes(again))) == bytes(frame), "checksums: " + frame.summary())


def on_the_wire(name, capture, client, messages, tagged):
    frames = rdpcap(capture)
    over_udp = [f for f in frames if UDP in f and 4791 not in (f[UDP].dport, f[UDP].sport)]
    for f in over_udp:
        checked(f)
        expect((Dot1Q in f) == tagged, name + ": VLAN of " + f.summary())
    (asks, one, own), login = told(body(over_udp[0]))
    reply = next(f for f in over_udp if f[UDP].sport == PORT)
    (answers, other, _), nothing = told(body(reply))
    expect((asks, answers) == (DATA, CONTROL) and own == address(client), name + ": " + str(over_udp))
    expect(over_udp[0][UDP].dport == PORT and reply[UDP].dport == over_udp[0][UDP].sport, name + ": ports")
    expect(len(login) == 16 and nothing == b"", name + ": login")
    if shutil.which("tshark") is None:
        print("without tshark")
        return
    def rows(what, *fields):
        command = ["tshark", "-r", capture, "-Y", what, "-T", "fields", "-E", "separator=;", "-o", "udp.check_checksum:TRUE"]
        for f in fields:
            command += ["-e", f]
        return [r.split(";") for r in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()]
    packets = rows("infiniband.bth", "infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.deth.q_key")
    expect({tuple(int(n, 0) for n in p) for p in packets} == {(0x64, one, KEY), (0x64, other, KEY)}, "%s: %s" % (name, packets[:9]))
    # Beside the messages: the answer to the login, and start and end with their answers.
    expect(len(packets) >= messages + 5, "%s: %d packets" % (name, len(packets)))
    expect(rows("_ws.malformed || (udp.checksum.status == 0 && !infiniband)", "frame.number") == [], name + ": malformed")


def tell(op=DATA, qpn=OUR_QPN, tag=TAG, version=4, length=16, own=socket.inet_aton(PEER4)):
    return struct.pack(">IBBBBI", tag, version, op, length, 0, qpn) + own


def over_udp(payload, source=PEER4, port=OUR_PORT, to=PORT, own=None):
    return Ether(src=PEER_MAC, dst=MODEL_MAC) / (own or IP(src=source, dst=MODEL4)) / UDP(sport=port, dport=to) / Raw(payload)


def words(op, number, client=0, content=b""):
    return struct.pack(">BBBBI", op, client, number, 0, 0) + content.ljust(8, b"\0")


def said(message, sender=PEER4, port=OUR_PORT):
    return struct.pack(">BBH", 4, 8, port) + socket.inet_aton(sender) + message


class host:
    """Speaks for the peer, as rsocket.c does."""

    def __init__(self, w):
        self.w, self.qpn = w, None

    def next(self, seconds=5):
        """The next frame of the model's, but for its ARP, which is answered."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            f = self.w.receive(end - time.monotonic())
            if f is None:
                break
            if ARP not in f:
                return f
            if f[ARP].op == 1:
                self.w.send(Ether(src=PEER_MAC, dst=MODEL_MAC) /
                            ARP(op=2, hwsrc=PEER_MAC, psrc=PEER4, hwdst=MODEL_MAC, pdst=MODEL4))
        raise wrong("nothing comes")

    def heard(self, f, sender_port=PORT):
        """The message in a UD packet to our queue pair."""
        expect(BTH in f and f[BTH].opcode == 0x64 and f[BTH].dqpn == OUR_QPN, "no datagram to us: " + f.summary())
        raw = bytes(f)[14 + 20 + 8 + 12:-4 - f[BTH].padcount]
        key, source = struct.unpack(">II", raw[:8])
        expect(key == KEY and source & 0xffffff == self.qpn, "DETH: " + raw[:8].hex())
        expect(raw[8:16] == struct.pack(">BBH", 4, 8, sender_port) + socket.inet_aton(MODEL4), "ds_header: " + raw[8:16].hex())
        return raw[16:]

    def ask(self, message):
        self.w.send(datagram(said(message), KEY, self.qpn, source=OUR_QPN))
        return self.heard(self.next())

    def log_in(self, number=0):
        self.w.send(over_udp(tell() + words(LOGIN, number)))
        f = self.next()
        checked(f)
        expect((f[UDP].sport, f[UDP].dport) == (PORT, OUR_PORT), "the answer: " + f.summary())
        (op, self.qpn, own), rest = told(body(f))
        expect(op == CONTROL and own == socket.inet_aton(MODEL4) and rest == b"", "the answer: " + f.summary())
        answer = self.heard(self.next())
        expect(answer[:1] + answer[2:3] == bytes((LOGIN, number)) and len(answer) == 16, "login: " + answer.hex())
        return answer[1]


def damaged(frame, at, value):
    raw = bytearray(bytes(frame))
    raw[at:at + len(value)] = value
    return bytes(raw)


def nonsense():
    """What may come to the UDP port of a server and makes no sense."""
    login = words(LOGIN, 9)
    payloads = [b"", b"x", tell()[:15], tell()[:12], b"\0" * 16, bytes(64), tell(tag=0x55555554) + login, tell(version=6) + login,
                tell(version=5) + login, tell(version=0) + login, tell(length=0) + login, tell(length=15) + login,
                tell(length=28) + login, tell(length=255) + login, tell(version=6, length=28) + bytes(12) + login,
                tell() + bytes(2048), tell() + bytes(4000)] + [tell(op=o) + login for o in (1, 2, 3, 4, 5, 6, 8, 255)]
    frames = [over_udp(p) for p in payloads]
    frames += [over_udp(tell() + login, source=who) for who in ("0.0.0.0", "224.0.0.5", "255.255.255.255")]
    good = over_udp(tell() + login)
    frames += [damaged(good, 6, b"\1\0\x5e\0\0\5"), damaged(good, 6, b"\xff" * 6)]
    reaching = len(frames)
    at = 14 + 20  # of the UDP header
    frames += [damaged(good, at + 6, b"\x12\x34"), damaged(good, at + 4, b"\0\7"), damaged(good, at + 4, b"\0\0"),
               damaged(good, at + 4, b"\xff\xff"), damaged(good, at + 4, struct.pack(">H", 8 + 32 + 1)),
               damaged(good, 16, b"\xff\xff"), damaged(good, 24, b"\0\0"), bytes(good)[:-8],
               over_udp(tell() + login, to=PORT + 1), over_udp(tell() + login, own=IP(src=PEER4, dst=MODEL4, flags="MF")),
               over_udp(tell() + login, own=IP(src=PEER4, dst=MODEL4, frag=4)),
               over_udp(tell() + login, own=IP(src=PEER4, dst="10.0.0.9")), over_udp(tell() + login, own=IP(src=PEER4, dst="10.255.255.255")),
               Ether(src=PEER_MAC, dst=MODEL_MAC) / Dot1Q(vlan=7) / IP(src=PEER4, dst=MODEL4) / UDP(sport=OUR_PORT, dport=PORT) / Raw(tell() + login)]
    long = tell(version=6, length=28, own=address(PEER6))
    frames += [over_udp(p + login, own=IPv6(src=PEER6, dst=MODEL6)) for p in (tell(), long, tell(version=6, length=28))]
    frames += [damaged(over_udp(long + login, own=IPv6(src=PEER6, dst=MODEL6)), 14 + 40 + 6, b"\0\0"),
               over_udp(long + login, own=IPv6(src="::ffff:10.0.0.1", dst="::ffff:10.0.0.2"))]
    return frames, reaching


def hostile_server():
    """A server with a client, beside datagrams of others that are none."""
    w = wire("--app", "udpong", "--server")
    peer = host(w)
    frames, marked = nonsense()
    w.ask(w.arp())
    for f in frames:
        w.silence(f)
    client = peer.log_in()
    expect(peer.ask(words(START, 1, client)) == words(START, 1, client), "no answer to a start")
    for f in frames:
        w.silence(f)
    messages = [b"", b"x", said(b"")[:7], said(b""), said(b"1234567"), b"\5" + said(words(ECHO, 3))[1:], b"\4\x18" + said(words(ECHO, 3))[2:],
                b"\4\7" + said(words(ECHO, 3))[2:], b"\6\x18" + bytes(21), b"\0" * 100, bytes(4096), said(words(ECHO, 3) + bytes(2100))]
    for m in messages:
        w.silence(datagram(m, KEY, peer.qpn, source=OUR_QPN))
    w.silence(datagram(said(words(ECHO, 3)), KEY + 1, peer.qpn))
    w.silence(datagram(said(words(ECHO, 3), sender="10.0.0.77"), KEY, peer.qpn))  # nobody has told where that is
    for i in range(1500):  # more peers than are kept: they tell where they are, and the one that speaks is known still
        w.send(over_udp(tell(op=CONTROL, qpn=i), source="10.0.%d.%d" % (1 + i // 250, 1 + i % 250)))
        if i % 30 == 29:  # no more than the host's ring takes on a busy machine
            expect(ARP in w.ask(w.arp()), "a control was answered")
        if i % 300 == 299:
            echo = words(ECHO, 4 + i // 300, client, b"all of it" * 30)
            expect(peer.ask(echo) == echo, "no echo after %d peers" % i)
    for i in range(7):
        w.send(datagram(said(words(MESSAGE, 0, client)), KEY, peer.qpn, source=OUR_QPN))
    end = peer.ask(words(END, 20, client))
    expect(end[:4] == words(END, 20, client)[:4] and struct.unpack(">I", end[4:8])[0] == 1 + 5 + 7, "end: " + end.hex())
    expect(w.model.wait(20) == 0, w.model.text)
    run = w.model.result["runs"][0]
    # The word of the one that nobody knows was counted for the client that it named, as the tool does.
    expect((run["sent"], run["received"]) == (5, 13), run)
    # Two of the UD messages are nothing but a good header and too short a word, which is not answered.
    expect("dropped %d datagrams that make no sense, 0 without room; 1 answers to nobody; %d peers forgotten" %
           (2 * marked + len(messages) - 2, 1500 + 1 - 1024) in w.model.text, w.model.text)
    w.socket.close()
    os.unlink(path("peer"))


def noise():
    """Anything in datagrams that were good once; then a client as any other."""
    w = wire("--app", "udpong", "--server")
    peer, chance = host(w), random.Random(5)
    w.ask(w.arp())
    seeds = [bytes(over_udp(tell() + words(op, 0))) for op in (LOGIN, MESSAGE, ECHO)]
    peer.log_in()
    for i in range(2000):
        if i % 2:  # of the frame, checksums and all, or behind them
            f = bytearray(chance.choice(seeds))
            for _ in range(chance.randrange(1, 5)):
                f[chance.randrange(12, len(f))] = chance.randrange(256)
            w.send(bytes(f[:chance.randrange(14, len(f) + 1)]))
        else:
            p = bytearray((tell() if i % 4 else said(b"")) + words(chance.choice((LOGIN, MESSAGE, ECHO)), 0))
            for _ in range(chance.randrange(1, 4)):
                p[chance.randrange(len(p))] = chance.randrange(256)
            p = bytes(p[:chance.randrange(len(p) + 1)])
            w.send(over_udp(p) if i % 4 else datagram(p, KEY, peer.qpn, source=OUR_QPN))
        while select.select([w.socket], [], [], 0)[0]:
            w.socket.recv(65536)
    while w.receive(0.3) is not None:
        pass
    client = peer.log_in(7)
    peer.ask(words(START, 8, client))
    echo = words(ECHO, 9, client, b"x" * 900)
    expect(peer.ask(echo) == echo and peer.ask(words(END, 10, client))[4:8] == b"\0\0\0\1", "no test after the noise")
    expect(w.model.wait(20) == 0 and "datagrams that make no sense" in w.model.text, w.model.text)
    w.socket.close()
    os.unlink(path("peer"))


def early():
    """Logins from before the server is there: on a busy machine they come while its queues are made, too."""
    login = bytes(over_udp(tell() + words(LOGIN, 0)))
    own, ended = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), threading.Event()
    own.bind(path("peer"))
    own.setblocking(False)

    def ask():
        while not ended.is_set():
            try:
                own.sendto(login, path("model"))
            except OSError:  # nobody is there, or it has enough for now
                pass
            while select.select([own], [], [], 0)[0]:
                own.recv(65536)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        model = serve("model", "datagram:unix:%s,%s" % (path("model"), path("peer")), "--app", "udpong", "--server")
        time.sleep(1)  # of logins
    finally:
        ended.set()
        asking.join()
    model.process.send_signal(signal.SIGTERM)
    expect(model.wait(20) == 1 and "a client at" in model.text, "it lived not: %s" % model.text)
    own.close()
    os.unlink(path("peer"))


def client_of_scapy():
    """A client whose server is none of ours, beside answers that are not for it."""
    w = wire("--app", "udpong", "--client", PEER4, "--iterations", 3, "--bidirectional", "--size", 100)
    peer = host(w)
    f = peer.next()
    expect(UDP in f and f[UDP].dport == PORT, "no login: " + f.summary())
    port = f[UDP].sport
    (op, qpn, own), login = told(body(f))
    peer.qpn = qpn
    expect((op, own, login) == (DATA, socket.inet_aton(MODEL4), words(LOGIN, 0)), "login: " + f.summary())

    def answer(message, sender_port=PORT):
        w.send(datagram(said(message, port=sender_port), KEY, peer.qpn, source=OUR_QPN))

    for bad in (tell(op=3), tell(tag=1), tell()[:10], b"", tell(version=6, length=28) + bytes(12)):
        w.send(over_udp(bad, port=PORT, to=port))
    w.send(over_udp(tell(op=CONTROL), port=PORT, to=port))
    answer(words(LOGIN, 0, 5))
    seen = {}  # by their numbers: what is answered late is asked again, in the same words
    while not any(m[0] == END for m in seen.values()):
        f = peer.next()
        if f[UDP].dport == PORT:  # written before it has read where our queue pair is
            header, message = told(body(f))
            expect(header == (op, qpn, own), "over UDP: " + body(f).hex())
        else:
            message = peer.heard(f, port)
        if message[0] == LOGIN:
            continue
        expect(seen.setdefault(message[2], message) == message, "asked again in other words: " + message.hex())
        answer(words(LOGIN, 0, 5))                                            # once more
        answer(bytes((message[0], 5, message[2] + 100)) + message[3:])        # to another question
        answer(message[:-1])                                                  # cut
        answer(message, sender_port=PORT + 1)                                 # somebody else's
        answer(message)
    expect([(m[0], m[1], len(m)) for m in seen.values()] == [(START, 5, 16)] + 3 * [(ECHO, 5, 100)] + [(END, 5, 16)], "%s" % seen)
    expect(w.model.wait(20) == 0, w.model.text)
    run = w.model.result["runs"][0]
    expect(run["sent"] == run["received"] == 3 and run["wrong_bytes"] == 0, run)


def udpong():
    between_models()
    if BTH is None:
        print("without scapy's RoCE")
        return 0
    hostile_server()
    noise()
    early()
    client_of_scapy()
    return 0
