# SPDX-License-Identifier: Apache-2.0
"""rdma_xserver and rdma_xclient over XRC: between two models, and with hosts that have none."""
import os
import shutil
import signal
import struct
import subprocess

from served import BTH, MODEL4, MODEL6, PEER4, PEER6, PEER_MAC, expect, pairs_of_links, path, serve, wire
from connection_cases import answer, datagram, linux_request, managed, message

REQ, REJ, REP, RTU, DREQ, DREP = 0x10, 0x12, 0x13, 0x14, 0x15, 0x16
XRC = ("--connection", "XRC")
PORT, SPACE_IB, SPACE_TCP = 7471, 0x013f, 0x0106
# Where they are in a REQ, with the header in front (the kernel's rdma/ibta_vol1_c12.h, CM_REQ_*).
SERVICE, TRANSPORT, EXTENDED = slice(32, 40), 67, 75


def rows(capture, what, *fields):
    command = ["tshark", "-r", capture, "-Y", what, "-T", "fields", "-E", "separator=;"]
    for f in fields:
        command += ["-e", f]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [r.split(";") for r in found.splitlines()]


def seen_by_tshark(capture):
    """What is on the wire, in the words of somebody else."""
    if shutil.which("tshark") is None:
        print("without tshark")
        return
    cm = "infiniband.cm."
    req, = rows(capture, "infiniband.mad.attributeid == 0x10", cm + "req.transpsvctype", cm + "req.ext_transport",
                cm + "req.localqpn", cm + "req.serviceid", cm + "req.retrcount", cm + "req.responderres", cm + "req.srq")
    expect([int(n, 16) for n in req[:2]] == [3, 1], "REQ: transport service and extended transport: %s" % req)
    expect(int(req[3], 16) == SPACE_IB << 16 | PORT, "REQ: service %s" % req[3])
    expect([int(n, 16) if n not in ("True", "False") else n == "True" for n in req[4:]] == [0, 0, 0],
           "REQ: what an initiator does not tell: %s" % req)
    rep, = rows(capture, "infiniband.mad.attributeid == 0x13", cm + "rep.localqpn", cm + "rep.localeecn", cm + "rep.srq",
                "ip.src", "ipv6.src")
    receiver = int(rep[1], 16)
    expect(int(rep[0], 16) == 0 and receiver != 0 and rep[2] in ("1", "True", "0x01"), "REP: %s" % rep)
    # Behind QP1's datagrams: one SEND Only of XRC, and its acknowledgement.
    packets = [[int(p[0]), int(p[1], 16)] for p in
               rows(capture, "infiniband.bth && !infiniband.mad", "infiniband.bth.opcode", "infiniband.bth.destqp")]
    expect(packets == [[0xa4, receiver], [0xb1, int(req[2], 16)]], "packets of the connection: %s" % packets)
    expect(rows(capture, "_ws.malformed", "frame.number") == [], "malformed packets")


def between_models():
    for name, more in (("xrc", {}), ("xrc-v1", {"options": ["--roce", "v1"]}),
                       ("xrc-ipv6", {"addresses": ((PEER6,), (MODEL6,)), "to": MODEL6}),
                       ("xrc-vlan", {"options": ["--vlan", 33, "--priority", 2]})):
        more["options"] = [*more.get("options", ()), *XRC]
        a, b = managed(name, "rdma_xserver", crossing=1, **more)
        expect(a.result["runs"][0]["received"] == b.result["runs"][0]["sent"] == 1, name + ": number of messages")
        if name in ("xrc", "xrc-vlan"):
            seen_by_tshark(b.pcap)
    links = pairs_of_links()["unix stream"]
    a = serve("several-a", links[0], "--app", "rdma_xserver", "--server", "--repeat", 4, *XRC, addresses=(MODEL4,))
    b = serve("several-b", links[1], "--app", "rdma_xclient", "--client", MODEL4, "--repeat", 4, *XRC, mac=PEER_MAC,
              addresses=(PEER4,))
    expect([b.wait(), a.wait()] == [0, 0] and a.result["runs_made"] == 4, "four in sequence: " + a.text + b.text)


def one_of_each():
    """RC and XRC are different services: who means the other one is told."""
    links = pairs_of_links()["unix stream"]
    for server, client, words in (((), XRC, "reason 8: nobody listens there over XRC (the tools' -c x"),
                                  (XRC, (), "reason 8: nobody listens there\n")):
        a = serve("other-a", links[0], "--app", "rdma_xserver", "--server", *server, addresses=(MODEL4,))
        b = serve("other-b", links[1], "--app", "rdma_xclient", "--client", MODEL4, *client, mac=PEER_MAC, addresses=(PEER4,))
        expect(b.wait() == 1 and words in b.text, "%s: %s" % (client, b.text))
        a.process.send_signal(signal.SIGTERM)
        a.wait()


def request(space, transport, extended, number):
    mad = bytearray(linux_request())
    mad[SERVICE] = struct.pack(">Q", space << 16 | PORT)
    mad[TRANSPORT] = mad[TRANSPORT] & ~6 | transport << 1
    mad[EXTENDED] = mad[EXTENDED] & ~7 | extended
    mad[24:28], mad[56:59] = struct.pack(">I", number), struct.pack(">I", number)[1:]
    return datagram(bytes(mad))


def strangers():
    """Requests for a transport that the server does not have, and answers of peers that have no XRC."""
    for options, space, good in ((XRC, SPACE_IB, (3, 1)), ((), SPACE_TCP, (0, 0))):
        w = wire("--app", "rdma_xserver", "--server", *options)
        for number, transport in enumerate([(0, 0), (1, 0), (2, 0), (3, 0), (3, 1), (3, 2), (3, 7)]):
            if transport == good:
                continue
            kind, _, remote, mad = answer(w, request(space, *transport, 0x100 + number))
            expect((kind, remote, mad[34:36]) == (REJ, 0x100 + number, b"\0\x09"), "%s: transport %s: %s" % (options, transport, mad[:36].hex()))
        kind, theirs, remote, mad = answer(w, request(space, *good, 0x200))
        expect((kind, remote) == (REP, 0x200), "no REP")
        numbers = [mad[at:at + 3] != b"\0\0\0" for at in (36, 40)]  # of a queue pair, of an EE context
        expect(numbers == ([False, True] if options else [True, False]), "REP: " + mad[:64].hex())
        w.send(datagram(message(RTU, 0x200, theirs)))
        w.send(datagram(message(DREQ, 0x200, theirs, (mad[40:43] if options else mad[36:39]) + b"\0")))
        expect(w.model.wait(20) == 1 and "released the connection before the messages" in w.model.text, w.model.text)
        w.socket.close()
        os.unlink(path("peer"))
    for why, words in ((28, "as a peer that has no XRC says it"), (9, "as a peer that has no XRC says it"),
                       (8, "nobody listens there over XRC")):
        w = wire("--app", "rdma_xclient", "--client", PEER4, *XRC)
        kind, mine, _, mad = answer(w)
        expect((kind, mad[TRANSPORT] >> 1 & 3, mad[EXTENDED] & 7) == (REQ, 3, 1), "REQ: " + mad[:80].hex())
        w.send(datagram(message(REJ, 0, mine, struct.pack(">BBH", 0, 0, why))))
        expect(w.model.wait(20) == 1 and "the peer refused: reason %d" % why in w.model.text and words in w.model.text, w.model.text)
        expect(w.model.text.count("failed") == 1, w.model.text)
        w.socket.close()
        os.unlink(path("peer"))


def xrc():
    between_models()
    one_of_each()
    if BTH is None:
        print("without scapy's RoCE")
        return 0
    strangers()
    return 0
