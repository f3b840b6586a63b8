# SPDX-License-Identifier: Apache-2.0
"""rstream between two models, and a client of rping's at its server."""
import struct
import time

from served import BTH, MODEL4, PEER4, PEER_MAC, expect, path, serve, wire
from connection_cases import answer, datagram, linux_request, message

PORT, REP = 7471, 0x13


def rstream():
    links = ("datagram:unix:%s,%s" % (path("x"), path("y")), "datagram:unix:%s,%s" % (path("y"), path("x")))
    for size, count in ((1, 2000), (16, 100), (1000, 1000), (131072, 20), (300001, 9)):
        arguments = ("--app", "rstream", "--size", size, "--iterations", count)
        a = serve("rstream-a", links[0], *arguments, "--server", addresses=(MODEL4,))
        b = serve("rstream-b", links[1], *arguments, "--client", MODEL4, mac=PEER_MAC, addresses=(PEER4,))
        status = [b.wait(), a.wait()]
        expect(status == [0, 0], "%d bytes: status %s\n%s%s" % (size, status, a.text, b.text))
        for side in (a, b):
            run = side.result["runs"][0]
            expect(run["ok"] and run["sent"] == run["received"] == count and run["wrong_bytes"] == 0, run)
            expect("the content was looked at" in side.text, side.text)
    if BTH is not None:
        no_rsocket()


def no_rsocket():
    w = wire("--app", "rstream", "--server")
    request = bytearray(linux_request())
    request[38:40] = struct.pack(">H", PORT)
    kind, theirs, mine, _ = answer(w, datagram(bytes(request)))
    expect(kind == REP, "no REP")
    w.send(datagram(message(0x14, mine, theirs)))
    time.sleep(0.3)
    expect(w.model.wait(20) == 1 and "no rsocket of version 1" in w.model.text, w.model.text)
