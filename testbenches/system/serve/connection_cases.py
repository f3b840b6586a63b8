# SPDX-License-Identifier: Apache-2.0
"""The connection manager: two of them together, and hosts that do not mean well."""
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import time

from scapy.all import ARP, Ether, IP, Raw, UDP, rdpcap
from served import MODEL_MAC, PEER_MAC, MODEL4, PEER4, MODEL6, PEER6, BTH, wrong, expect, serve, pairs_of_links, wire


def managed(name, app, server=(), client=(), addresses=((PEER4,), (MODEL4,)), to=MODEL4, options=(), crossing=0):
    """Two models meet through the connection manager, without any other connection between them. `crossing`: messages
    that may come when their connection has ended, as both sides release it at once."""
    links = pairs_of_links()["unix stream"]
    a = serve(name + "-a", links[0], "--app", app, "--server", *server, *options, addresses=addresses[1])
    b = serve(name + "-b", links[1], "--app", app, "--client", to, *client, *options, mac=PEER_MAC, addresses=addresses[0])
    status = [b.wait(), a.wait()]
    expect(status == [0, 0], "%s: status %s\n%s%s" % (name, status, a.text, b.text))
    for side in (a, b):
        run = side.result["runs"][0]
        expect(run["ok"] and run["wrong_bytes"] == 0, "%s: %s" % (name, run))
        counted = side.result["connection_manager"]
        expect(counted["malformed"] == counted["unknown_id"] == 0 and counted["wrong_state"] <= crossing,
               "%s: %s" % (name, counted))
    print(name, "ok", flush=True)
    return a, b


def connections():
    a, b = managed("rping", "rping", client=["--iterations", 5, "--size", 5000])
    expect(a.result["runs"][0]["received"] == b.result["runs"][0]["sent"] == 5, "numbers of pings")
    dissected(b.pcap)
    managed("rping-v1", "rping", client=["--iterations", 3], options=["--roce", "v1"])
    managed("rping-ipv6", "rping", client=["--iterations", 3], addresses=((PEER6,), (MODEL6,)), to=MODEL6)
    managed("rping-vlan", "rping", client=["--iterations", 3], options=["--vlan", 77, "--priority", 3])
    managed("ucmatose", "ucmatose", options=["--qps", 5])
    a, b = managed("udaddy", "udaddy", options=["--qps", 3])
    expect(a.result["runs"][0]["received"] == 30, "numbers of datagrams")
    managed("rdma_server", "rdma_server")
    a, b = managed("rdma_xserver", "rdma_xserver", crossing=1)
    expect(a.result["runs"][0]["received"] == b.result["runs"][0]["sent"] == 1, "rdma_xserver's message")
    a, b = managed("cmtime", "cmtime")
    expect(a.result["runs"][0]["received"] == b.result["runs"][0]["sent"] == 100 and "disconnect" in b.text, "cmtime: " + b.text)
    links = pairs_of_links()["unix stream"]
    a = serve("mckey-a", links[0], "--app", "mckey", "--server", "--group", "239.9.8.7")
    b = serve("mckey-b", links[1], "--app", "mckey", "--client", "239.9.8.7", mac=PEER_MAC, addresses=(PEER4, PEER6))
    expect([b.wait(), a.wait()] == [0, 0] and a.result["runs"][0]["received"] == 10, "mckey: " + a.text + b.text)
    nobody = serve("nobody-a", links[0], "--app", "rping", "--server", "--port", 7999)
    b = serve("nobody-b", links[1], "--app", "rping", "--client", MODEL4, mac=PEER_MAC, addresses=(PEER4, PEER6))
    expect(b.wait() == 1 and "reason 8" in b.text, "a service that is not there: " + b.text)
    nobody.process.terminate()
    nobody.wait()


def dissected(capture):
    """Our side of a conversation as tshark reads it."""
    if shutil.which("tshark") is None:
        print("without tshark")
        return
    fields = ["infiniband.mad.attributeid", "infiniband.cm.req.serviceid.dport", "infiniband.cm.req.retrcount",
              "infiniband.cm.req.prim_locallid", "infiniband.cm.req.ip_cm.sip4", "infiniband.cm.req.ip_cm.dip4",
              "infiniband.cm.req.ip_cm.ipv", "infiniband.cm.req.responderres", "infiniband.cm.rep.rnrretrcount", "ip.src"]
    command = ["tshark", "-r", capture, "-Y", "infiniband.mad", "-T", "fields", "-E", "separator=,"]
    for f in fields:
        command += ["-e", f]
    rows = [r.split(",") for r in subprocess.run(command, capture_output=True, text=True).stdout.splitlines()]
    expect([int(r[0], 16) for r in rows] == [0x10, 0x13, 0x14, 0x15, 0x16], "messages: %s" % rows)
    req = rows[0]
    expect([int(req[i], 16) for i in (1, 2, 6, 7)] == [7174, 7, 4, 1] and req[3] == "65535" and req[4] == PEER4 and
           req[5] == MODEL4 and req[9] == PEER4, "REQ: %s" % req)
    expect(int(rows[1][8], 16) == 7 and rows[1][9] == MODEL4, "REP: %s" % rows[1])
    wrong_ones = subprocess.run(["tshark", "-r", capture, "-Y", "_ws.malformed"], capture_output=True, text=True).stdout
    expect(wrong_ones == "", "malformed: " + wrong_ones)


GSI_KEY = 0x80010000


def datagram(mad, key=GSI_KEY, qpn=1, pkey=0xffff, source=1, damage=0, opcode=0x64):
    """A management datagram as scapy builds it, with its ICRC."""
    pad = -len(mad) % 4
    frame = bytearray(bytes(Ether(src=PEER_MAC, dst=MODEL_MAC) / IP(src=PEER4, dst=MODEL4, flags="DF", ttl=64) /
                            UDP(sport=0xc123, dport=4791, chksum=0) /
                            BTH(opcode=opcode, padcount=pad, pkey=pkey, dqpn=qpn, psn=0) /
                            Raw(struct.pack(">II", key, source) + mad + b"\0" * pad)))
    frame[-1] ^= damage
    return bytes(frame)


def linux_request():
    """The REQ of a Linux host for rping, from a capture, with our addresses."""
    here = os.path.dirname(os.path.abspath(__file__))
    for frame in rdpcap(os.path.join(here, "../../../traces/cm_rping_800B.pcap")):
        if UDP in frame and frame[UDP].dport == 4791 and len(frame) == 322:
            mad = bytearray(bytes(frame)[14 + 20 + 8 + 12 + 8:][:256])
            mapped = b"\0" * 10 + b"\xff\xff"
            mad[80:96], mad[96:112] = mapped + socket.inet_aton(PEER4), mapped + socket.inet_aton(MODEL4)
            mad[164 + 16:164 + 20], mad[164 + 32:164 + 36] = socket.inet_aton(PEER4), socket.inet_aton(MODEL4)
            return mad
    raise wrong("the capture has no REQ")


def message(attribute, local, remote, body=b""):
    head = struct.pack(">BBBBHHQHHI", 1, 7, 2, 3, 0, 0, 0x1234, attribute, 0, 0)
    return (head + struct.pack(">II", local, remote) + body).ljust(256, b"\0")


def path_request(local, remote, qpn):
    """LAP: the path that there is, once more (layout by the kernel's rdma/ibta_vol1_c12.h, CM_LAP_*)."""
    mapped = b"\0" * 10 + b"\xff\xff"
    return message(0x19, local, remote, struct.pack(">4x3sB4xHH16s16sIBBBB", qpn, 20 << 3, 0xffff, 0xffff,
                                                   mapped + socket.inet_aton(PEER4), mapped + socket.inet_aton(MODEL4),
                                                   0, 64, 0, 0, 19 << 3))


# message()'s, which the answer repeats.
APR_TRANSACTION = struct.pack(">Q", 0x1234)


def answer(w, frame=None, seconds=5):
    """(attribute, local, remote, MAD) of the next management datagram from the model."""
    if frame is not None:
        w.send(frame)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        f = w.receive(end - time.monotonic())
        if f is None:
            break
        if ARP in f and f[ARP].op == 1:
            w.send(Ether(src=PEER_MAC, dst=MODEL_MAC) / ARP(op=2, hwsrc=PEER_MAC, psrc=PEER4, hwdst=MODEL_MAC, pdst=MODEL4))
        elif UDP in f and f[UDP].dport == 4791 and len(f) == 322:
            mad = bytes(f)[62:318]
            return struct.unpack(">H", mad[16:18])[0], *struct.unpack(">II", mad[24:32]), mad
    raise wrong("no management datagram")


def intruders():
    """Management datagrams of hosts that do not mean well."""
    if BTH is None:
        print("skipped: this scapy knows no RoCE")
        return 77
    w = wire("--app", "rping", "--server", "--repeat", 0)
    rng = random.Random(77)
    req = linux_request()
    for frame in (datagram(req, key=0x11111111), datagram(req, key=0), datagram(req, pkey=0x1234), datagram(req, pkey=0),
                  datagram(req, qpn=0), datagram(req, qpn=0x202), datagram(req, qpn=0x203), datagram(req, qpn=0x208),
                  datagram(req, qpn=0xfffff), datagram(req, damage=1), datagram(req[:252]), datagram(req[:255]),
                  datagram(req + b"xxxx"), datagram(b""), datagram(req * 8), datagram(req, opcode=0x65),
                  datagram(req, opcode=0x04), datagram(req, opcode=0x24)):
        w.silence(frame)
    for at, value in ((0, 0), (0, 2), (1, 1), (1, 3), (1, 4), (1, 0x81), (2, 1), (3, 1), (3, 0x81), (17, 0), (17, 0x30)):
        bad = bytearray(req)
        bad[at] = value
        w.silence(datagram(bytes(bad)))
    for _ in range(300):  # noise in every field of every message
        mad = bytearray(rng.randbytes(256))
        mad[0:4], mad[16:18] = b"\1\7\2\3", struct.pack(">H", rng.choice((0x11, 0x12, 0x13, 0x14, 0x16, 0x18, 0x1a, 0x1b)))
        w.send(datagram(bytes(mad)))
    w.silence(datagram(bytes(256)))
    # Requests get the answer of the standard.
    other = bytearray(req)
    other[38:40] = struct.pack(">H", 9999)
    kind, _, remote, mad = answer(w, datagram(bytes(other)))
    expect((kind, remote, mad[34:36]) == (0x12, struct.unpack(">I", req[24:28])[0], b"\0\x08"), "no REJ for a service")
    kind, local, remote, _ = answer(w, datagram(message(0x15, 0x1111, 0x2222)))
    expect((kind, local, remote) == (0x16, 0x2222, 0x1111), "a DREQ of nothing is not answered")
    kind, _, _, mad = answer(w, datagram(message(0x17, 0x77, 0)))
    expect(kind == 0x18 and mad[28] != 0, "no answer for a service of datagrams")
    kind, local, remote, mad = answer(w, datagram(path_request(0x1111, 0x2222, b"\0\0\1")))
    expect((kind, local, remote, mad[33]) == (0x1a, 0x2222, 0x1111, 1), "a LAP of nothing is not refused")
    # A client that changes its mind, and one that means it.
    mine = struct.unpack(">I", req[24:28])[0]
    kind, theirs, remote, _ = answer(w, datagram(bytes(req)))
    expect((kind, remote) == (0x13, mine), "no REP")
    w.send(datagram(message(0x14, mine + 1, theirs)))  # confirmed by somebody else
    w.send(datagram(message(0x12, mine, theirs, struct.pack(">BBH", 0x40, 0, 28))))
    second = bytearray(req)
    second[24:28], second[56:59] = struct.pack(">I", mine + 5), b"\0\0\x99"
    kind, theirs, remote, mad = answer(w, datagram(bytes(second)))
    expect((kind, remote) == (0x13, mine + 5), "no REP for the second client")
    w.send(datagram(message(0x14, mine + 5, theirs)))
    # No other path for it: RoCE has no automatic path migration.
    theirs_qpn = mad[36:39]
    for asked, status in ((theirs_qpn, 2), (theirs_qpn, 2), (b"\0\0\1", 6)):
        kind, local, remote, apr = answer(w, datagram(path_request(mine + 5, theirs, asked)))
        expect((kind, local, remote, apr[33], apr[8:16]) == (0x1a, theirs, mine + 5, status, APR_TRANSACTION), "APR: %s" % apr)
    for _ in range(200):  # noise in a connection
        mad = bytearray(message(rng.choice((0x11, 0x13, 0x14, 0x16, 0x1a)), mine + 5, theirs, rng.randbytes(220)))
        w.send(datagram(bytes(mad)))
    w.silence(w.arp("10.0.0.77"))
    for other in (b"\0\0\0", b"\x12\x34\x56", bytes(second[56:59])):  # a DREQ, but of no queue pair of the connection's
        w.silence(datagram(message(0x15, mine + 5, theirs, other + b"\0")))
    kind, local, remote, _ = answer(w, datagram(message(0x15, mine + 5, theirs, theirs_qpn + b"\0")))
    expect((kind, local, remote) == (0x16, theirs, mine + 5), "no DREP")
    time.sleep(1)  # the run ends a little after its connection
    w.model.process.send_signal(signal.SIGTERM)
    expect(w.model.wait(20) == 0 and "changed its mind" in w.model.text, "the client that went away is no run: " + w.model.text)
    runs, statistics = w.model.result["runs"], w.model.result["statistics"]
    expect(len(runs) == 1 and runs[0]["ok"] and w.model.result["clients"]["gone"] == 1, "runs: %s" % runs)
    managed_ = w.model.result["connection_manager"]
    expect(managed_["malformed"] >= 12 and managed_["unknown_id"] >= 100 and managed_["wrong_state"] >= 50, managed_)
    expect(managed_["paths_refused"] == 3, managed_)
    if shutil.which("tshark") is not None:
        command = ["tshark", "-r", w.model.pcap, "-Y", "infiniband.mad.attributeid == 0x001a && !_ws.malformed && ip.src == " + MODEL4]
        rows = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        expect(len(rows) == 4, "APRs as tshark sees them: %s" % rows)
    expect(statistics["served.adapter.responder.drop.qkey"] == 2 and statistics["served.adapter.responder.drop.pkey"] == 2 and
           statistics["served.adapter.responder.drop.mad_length"] == 6, {k: v for k, v in statistics.items() if "drop" in k})
    return 0
