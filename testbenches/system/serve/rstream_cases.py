# SPDX-License-Identifier: Apache-2.0
"""rstream between two models, and a client of rping's at its server."""
import struct
import subprocess
import time

from served import BTH, MODEL4, PEER4, PEER_MAC, RNIC, expect, path, serve, wire
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
    one_list_only()
    if BTH is not None:
        no_rsocket()


def rstream_list():
    """A minute and more of two processors: not in ctest. Without sizes and numbers both do what the tool does then (rdma-core 44, rstream.c: test_size, size_to_count)."""
    sizes = {64: 100000, 4096: 10000, 65536: 1000, 1 << 20: 100}
    links = ("datagram:unix:%s,%s" % (path("x"), path("y")), "datagram:unix:%s,%s" % (path("y"), path("x")))
    a = serve("list-a", links[0], "--app", "rstream", "--server", addresses=(MODEL4,))
    b = serve("list-b", links[1], "--app", "rstream", "--client", MODEL4, mac=PEER_MAC, addresses=(PEER4,))
    status = [b.wait(500), a.wait()]
    expect(status == [0, 0], "status %s\n%s%s" % (status, a.text, b.text))
    expected = [["latency", str(size), "1", str(count)] for size, count in sizes.items()]
    expected += [["bandwidth", str(size), str(count), "1"] for size, count in sizes.items()]
    for side in (a, b):
        run = side.result["runs"][0]
        expect(run["ok"] and run["sent"] == run["received"] == 2 * sum(sizes.values()) and run["wrong_bytes"] == 0, run)
        lines = [line.split() for line in side.text.splitlines()]
        said = [line[:4] for line in lines if line and line[0] in ("latency", "bandwidth")]
        expect(said == expected and "the content was looked at" in side.text, side.text)
    expect(a.result["clients"]["confirmed"] == 2, a.result["clients"])


def one_list_only():
    """A client with -S at a server without: both wait until one has no patience any more, which tells the other."""
    links = ("datagram:unix:%s,%s" % (path("x"), path("y")), "datagram:unix:%s,%s" % (path("y"), path("x")))
    a = serve("apart-a", links[0], "--app", "rstream", "--server", addresses=(MODEL4,))
    b = serve("apart-b", links[1], "--app", "rstream", "--size", 1000, "--iterations", 3, "--client", MODEL4, mac=PEER_MAC,
              addresses=(PEER4,))
    status = [b.wait(60), a.wait(60)]
    words = ("is it the same test?", "the peer does not send any more")
    for side in (a, b):
        expect(any(w in side.text for w in words), "status %s\n%s%s" % (status, a.text, b.text))
    expect(status == [1, 1] and "latency" not in a.text, "status %s\n%s%s" % (status, a.text, b.text))
    done = subprocess.run([RNIC, "serve", "--link", links[0], "--app", "rstream", "--server", "--all", "--size", "64"],
                          capture_output=True, text=True, timeout=20)
    expect(done.returncode == 2 and "--all: rstream has its own sizes" in done.stderr, done)


def no_rsocket():
    w = wire("--app", "rstream", "--server")
    request = bytearray(linux_request())
    request[38:40] = struct.pack(">H", PORT)
    kind, theirs, mine, _ = answer(w, datagram(bytes(request)))
    expect(kind == REP, "no REP")
    w.send(datagram(message(0x14, mine, theirs)))
    time.sleep(0.3)
    expect(w.model.wait(20) == 1 and "no rsocket of version 1" in w.model.text, w.model.text)
