# SPDX-License-Identifier: Apache-2.0
"""qperf: its tests between two models, and clients over TCP that are none."""
import socket
import struct
import time

from served import MODEL4, PEER4, PEER_MAC, expect, free_port, path, serve

STREAMS = ("rc_bw", "rc_bi_bw", "rc_rdma_write_bw", "rc_rdma_read_bw", "rc_compare_swap_mr", "rc_fetch_add_mr",
           "ver_rc_compare_swap", "ver_rc_fetch_add")
TURNS = ("rc_lat", "rc_rdma_write_lat", "rc_rdma_read_lat", "rc_rdma_write_poll_lat")
RC_BW, UC_LAT = 13, 24  # places in the tool's table
LONGEST = 16 << 20


def between_two(test, *arguments):
    port = free_port()
    links = ("datagram:unix:%s,%s" % (path("x"), path("y")), "datagram:unix:%s,%s" % (path("y"), path("x")))
    a = serve("qperf-a", links[0], "--app", "qperf", "--server", "--port", port, addresses=(MODEL4,))
    b = serve("qperf-b", links[1], "--app", "qperf", "--client", MODEL4, "--exchange", "127.0.0.1", "--port", port, "--test",
              test, *arguments, mac=PEER_MAC, addresses=(PEER4,))
    status = [b.wait(), a.wait()]
    expect(status == [0, 0], "%s: status %s\n%s%s" % (test, status, a.text, b.text))
    return a.result["runs"][0], b.result["runs"][0]


def qperf():
    for test in STREAMS + TURNS:
        size = () if test.endswith("_mr") else ("--size", 70 if test in TURNS else 9000)
        server, client = between_two(test, "--seconds", 1, *size)
        for run in (server, client):
            expect(run["ok"] and run["wrong_bytes"] == 0, "%s: %s" % (test, run))
        expect(client["sent"] > 20, "%s: %s" % (test, client))
        passive = "read" in test or "_mr" in test or test.startswith("ver")
        expect(server["received"] == 0 if passive else server["received"] > 20, "%s: %s" % (test, server))
        print("%s: %d messages" % (test, client["sent"]), flush=True)
    server, client = between_two("rc_bw", "--iterations", 300, "--size", 5000)
    expect(server["received"] == 300 and client["sent"] == 300, "%s %s" % (server, client))


def request(test=RC_BW, version=(0, 4, 11), size=1000, messages=0, seconds=1, manager=1):
    """REQ of qperf.h."""
    return struct.pack("<4H16I128x", *version, test, 0, 0, 0, 0, size, 0, messages, 1, 0, 0, 0, 0, 0, seconds, 5, manager)


def qperf_unlinked():
    """A client that has asked over TCP and does not come over the link: while others wait it has 2 s, and none once it
    has left. The tool's clients wait 5 s for the first answer (-t)."""
    port = free_port()
    links = ("datagram:unix:%s,%s" % (path("x"), path("y")), "datagram:unix:%s,%s" % (path("y"), path("x")))
    server = serve("unlinked-a", links[0], "--app", "qperf", "--server", "--port", port, "--repeat", 0, addresses=(MODEL4,))
    for leaves in (False, True):
        silent = socket.create_connection(("127.0.0.1", port))
        silent.settimeout(20)
        silent.sendall(request())
        told = silent.recv(4, socket.MSG_WAITALL)
        expect(told == struct.pack("<I", port), "%r" % told)
        if leaves:
            silent.close()
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", port)) as other:
            other.settimeout(20)
            other.sendall(request())
            told, took = other.recv(4, socket.MSG_WAITALL), time.monotonic() - began
        expect(told == struct.pack("<I", port) and took < (0.5 if leaves else 3), "%r after %.1f s" % (told, took))
        silent.close()
        server.until("the client has left: it does not connect over RoCE" if leaves else "over RoCE, for 2 s while others wait", 5)
        if not leaves:
            server.until("the client has left", 5)  # the other one
    client = serve("unlinked-b", links[1], "--app", "qperf", "--client", MODEL4, "--exchange", "127.0.0.1", "--port", port,
                   "--seconds", 1, mac=PEER_MAC, addresses=(PEER4,))
    expect(client.wait(20) == 0, client.text)
    server.stop_with(1)


def qperf_strangers():
    """Each of them is told of in a line, and the next one is served."""
    cases = [(request(version=(0, 3, 0)), "qperf 0.3, not 0.4"), (request(UC_LAT), "asks for test 24"),
             (request(0xffff), "asks for test 65535"), (request(manager=0), "-cm 1"),
             (request(size=LONGEST + 1), "%d bytes: up to %d" % (LONGEST + 1, LONGEST)),
             (request(size=0xffffffff), "4294967295 bytes"), (request(seconds=0), "0 seconds"),
             (request(16, seconds=0, messages=10), "0 seconds"), (request(seconds=0xffffffff), "4294967295 seconds"),
             (b"\xff" * 200, "qperf 65535.65535"), (b"GET / HTTP/1.1\r\n".ljust(200), "qperf"),
             (request() + b"noise", "does not connect over RoCE")]
    port = free_port()
    model = serve("qperf", "listen:unix:" + path("s"), "--app", "qperf", "--server", "--port", port, "--repeat", len(cases))
    for word, _ in cases:
        with socket.create_connection(("127.0.0.1", port)) as s:
            s.settimeout(30)
            s.sendall(word)
            told = b""
            while True:
                try:
                    got = s.recv(100)
                except ConnectionResetError:
                    break
                if not got:
                    break
                told += got
            expect(told == (struct.pack("<I", port) if word.startswith(request()) else b""), "%r" % told)
    expect(model.wait(30) == 1, model.text)
    runs = model.result["runs"]
    expect(len(runs) == len(cases), "%d runs" % len(runs))
    for run, (word, why) in zip(runs, cases):
        expect(not run["ok"] and why in run["error"], "%r: %s instead of %s" % (word[:20], run["error"], why))
        expect(model.text.count(run["error"]) >= 1, model.text)
