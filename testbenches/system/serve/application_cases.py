# SPDX-License-Identifier: Apache-2.0
"""Two of them together, with the applications that meet over TCP."""
import re
import socket
import subprocess

from scapy.all import Dot1Q, IPv6, UDP, rdpcap
from served import (MODEL4, MODEL6, PEER4, PEER6, PEER_MAC, RNIC, expect, free_port, pairs_of_links, path, serve,
                    together)


def pingpong():
    for kind, links in pairs_of_links().items():
        for app in ("rc_pingpong", "uc_pingpong", "ud_pingpong", "srq_pingpong", "xsrq_pingpong"):
            size = 900 if app == "ud_pingpong" else 3000
            together("%s over %s" % (app, kind), links, app, ["--iterations", 20, "--size", size])


    told_by_text()


def told_by_text():
    """What ibv_xsrq_pingpong writes and reads: "%04x:%06x:%06x:%06x:%06x:%32s" with a zero behind it."""
    port = free_port()
    m = serve("text", "listen:unix:" + path("t"), "--app", "xsrq_pingpong", "--server", "--port", port, addresses=(MODEL4,))
    with socket.create_connection(("127.0.0.1", port)) as s:
        s.settimeout(20)
        s.sendall(b"0000:abcdef:000012:fedcba:000777:00000000000000000000ffff0a000063\0")
        text = s.makefile("rb").read(66)
    m.wait()
    told = re.fullmatch(rb"0000:(8[0-9a-f]{5}):0[0-9a-f]{5}:[0-9a-f]{6}:[0-9a-f]{6}:0{20}ffff0a000002\0", text)
    expect(told is not None, "the model told %s" % text)
    run = m.result["runs"][0]
    expect("no neighbour has the address ::ffff:10.0.0.99" in run["error"], run)


def encapsulations(capture):
    found = set()
    for f in rdpcap(capture):
        tag = f.getlayer(Dot1Q)
        kind = tag.type if tag else f.type
        if kind == 0x8915 or (UDP in f and f[UDP].dport == 4791):
            found.add((hex(kind), tag.vlan if tag else 0, tag.prio if tag else 0))
    return found


def versions():
    links = pairs_of_links()["unix stream"]
    six = ((PEER6,), (MODEL6,))
    for name, options, addresses, seen in (
            ("RoCE v2 over IPv4", ["--mtu", 256], ((PEER4,), (MODEL4,)), ("0x800", 0, 0)),
            ("RoCE v2 over IPv6", ["--mtu", 4096], six, ("0x86dd", 0, 0)),
            ("RoCE v1", ["--roce", "v1"], six, ("0x8915", 0, 0)),
            ("VLAN", ["--vlan", 100, "--priority", 5], six, ("0x86dd", 100, 5))):
        for app in ("rc_pingpong", "ud_pingpong"):
            a, _ = together("%s, %s" % (app, name), links, app, ["--iterations", 5, "--size", 1000], addresses, options)
            found = encapsulations(a.pcap)
            expect(found == {seen}, "%s: frames are %s" % (name, found))
    a, b = together("link-local", links, "rc_pingpong", ["--iterations", 5, "--gid-index", 1], addresses=((), ()))
    expect(a.result["network"]["asked"] == 1 and b.result["network"]["solicitations"] == 1, "link-local: not asked for")


PERFTEST = [
    ("ib_write_bw", 65536, 40, []), ("ib_write_bw", 1000, 100, ["--qps", 5]), ("ib_write_bw", 3000, 60, ["--connection", "UC"]),
    ("ib_write_bw", 100000, 20, ["--bidirectional", "--qps", 2]), ("ib_write_lat", 2, 300, []),
    ("ib_write_lat", 6000, 50, ["--connection", "UC"]), ("ib_read_bw", 65536, 40, []), ("ib_read_bw", 500, 100, ["--qps", 3]),
    ("ib_read_bw", 9000, 40, ["--bidirectional"]), ("ib_read_lat", 5000, 50, []), ("ib_send_bw", 65536, 40, []),
    ("ib_send_bw", 700, 600, ["--qps", 2, "--rx-depth", 100]), ("ib_send_bw", 900, 60, ["--connection", "UD", "--qps", 3]),
    ("ib_send_bw", 5000, 40, ["--bidirectional"]), ("ib_send_lat", 2, 300, []), ("ib_send_lat", 4000, 50, ["--connection", "UC"]),
    ("ib_send_lat", 1024, 50, ["--connection", "UD"]), ("ib_atomic_bw", 8, 500, ["--qps", 2]),
    ("ib_atomic_bw", 8, 300, ["--atomic", "CMP_AND_SWAP", "--bidirectional"]), ("ib_atomic_lat", 8, 100, []),
    ("ib_atomic_lat", 8, 100, ["--atomic", "CMP_AND_SWAP"])]
EVERY_SIZE = [
    ("ib_write_bw", 0, 5, ["--all", "--qps", 2]), ("ib_write_lat", 0, 5, ["--all"]), ("ib_read_bw", 0, 5, ["--all", "--bidirectional"]),
    ("ib_read_lat", 0, 5, ["--all"]), ("ib_send_bw", 0, 5, ["--all"]), ("ib_send_bw", 0, 5, ["--all", "--bidirectional"]),
    ("ib_send_bw", 0, 20, ["--all", "--connection", "UD", "--mtu", 2048]), ("ib_send_lat", 0, 5, ["--all"]),
    ("ib_write_bw", 8 << 20, 5, ["--rdma-cm"]), ("ib_write_bw", 0, 5, ["--all", "--rdma-cm"])]
FOR_A_TIME = [(app, 0, 0, ["--seconds", 1, *more]) for app, more in (
    ("ib_write_bw", ["--bidirectional"]), ("ib_write_lat", []), ("ib_read_lat", []), ("ib_send_bw", ["--rdma-cm"]),
    ("ib_send_bw", ["--bidirectional"]), ("ib_send_lat", ["--connection", "UD"]), ("ib_atomic_bw", []))]
RDMA_CM = [
    ("ib_write_bw", 9000, 50, ["--rdma-cm", "--qps", 6]), ("ib_write_lat", 2, 100, ["--rdma-cm"]),
    ("ib_read_bw", 65536, 20, ["--rdma-cm", "--bidirectional"]), ("ib_read_lat", 5000, 50, ["--rdma-cm"]),
    ("ib_send_bw", 700, 600, ["--rdma-cm", "--qps", 3]), ("ib_send_lat", 64, 100, ["--rdma-cm"]),
    ("ib_atomic_bw", 8, 300, ["--rdma-cm"]), ("ib_atomic_lat", 8, 100, ["--rdma-cm"]),
    ("ib_write_bw", 3000, 50, ["--talk-rdma-cm", "--connection", "UC"]),
    ("ib_send_lat", 900, 50, ["--talk-rdma-cm", "--connection", "UD"])]


def perftest(cases=PERFTEST):
    links = pairs_of_links()["unix stream"]
    for app, size, messages, options in cases:
        name = " ".join([app, str(size)] + [str(o) for o in options])
        port = free_port()
        words = ["--app", app, "--port", port, *options] + (["--size", size] if size else [])
        words += ["--iterations", messages] if messages else []
        if "--all" in options:  # 8 MiB both ways: a busy machine may let one side stand still for a while
            words += ["--timeout", 18]
        there = MODEL4 if "cm" in name else "127.0.0.1"
        server = serve("perftest-a", links[0], *words, "--server")
        client = serve("perftest-b", links[1], *words, "--client", there, mac=PEER_MAC, addresses=(PEER4, PEER6))
        status = [client.wait(), server.wait()]
        expect(status == [0, 0], "%s: status %s\n%s%s" % (name, status, server.text, client.text))
        s, c = server.result["runs"][0], client.result["runs"][0]
        if not messages:
            expect(s["ok"] and c["ok"] and c["sent"] > 0 and c["took_us"] > 10000, "%s: %s %s" % (name, s, c))
            continue
        all_ = messages * (options[options.index("--qps") + 1] if "--qps" in options else 1)
        if "--all" in options:  # 2 bytes to 8 MiB, or to the MTU
            all_ *= 11 if "UD" in options else 23
        expect(s["ok"] and c["ok"] and c["wrong_bytes"] == s["wrong_bytes"] == 0 and c["sent"] == all_, "%s: %s %s" % (name, s, c))
        both = "--bidirectional" in options or app in ("ib_write_lat", "ib_send_lat")
        expect(s["sent"] == (all_ if both else 0), "%s: the server sent %d" % (name, s["sent"]))
        if app.startswith("ib_atomic"):
            expect(s["counted"] == all_ and (not both or c["counted"] == all_), "%s: counters at %s" % (name, s["counted"]))
        if app == "ib_send_bw" and not both:  # what came is what was sent, on each of the queue pairs
            sent = sorted(m["crc32"] for m in c["memory"])
            expect(sent == sorted(m["crc32"] for m in s["memory"]) and len(set(sent)) == len(sent), "%s: %s %s" % (name, s, c))
        print(name, "ok", flush=True)


def every_size():
    perftest(EVERY_SIZE)


def rdma_cm():
    perftest(RDMA_CM)
    perftest(FOR_A_TIME)


def several():
    """Two adapters in one process, each on a network of its own, each with a peer of its own, and a parameter of the second."""
    port = free_port()
    links = ["unix:" + path("first"), "unix:" + path("second")]
    both = serve("both", "listen:" + links[0], "--link", "listen:" + links[1], "--ip", "10.0.1.2@2", "--app", "rc_pingpong",
                 "--server", "--port", port, "--iterations", 50, "--size", 3000, "--set", "b.driver.blue_flame=all",
                 addresses=(MODEL4,))
    peers = [serve("peer%d" % i, "connect:" + links[i], "--app", "rc_pingpong", "--client", "127.0.0.1", "--port", port + i,
                   "--iterations", 50, "--size", 3000, mac="02:00:00:00:01:0%d" % i, addresses=("10.0.%d.1" % i,))
             for i in range(2)]
    status = [p.wait() for p in peers] + [both.wait()]
    expect(status == [0, 0, 0], "status %s\n%s" % (status, both.text))
    for text in ("adapter 1: rc_pingpong", "adapter 2: rc_pingpong",
                 "adapter 2: %d frames in" % both.result["adapters"][1]["link"]["frames_in"]):
        expect(text in both.text, "%r is not in %s" % (text, both.text))
    adapters = both.result["adapters"]
    expect(len(adapters) == 2, "%d adapters" % len(adapters))
    for adapter, peer in zip(adapters, peers):
        run = adapter["runs"][0]
        expect(run["ok"] and run["received"] == 50 and run["wrong_bytes"] == 0, run)
        # The peer's last one, by which it leaves the groups of its addresses, may find nobody.
        expect(peer.result["link"]["frames_out"] - adapter["link"]["frames_in"] in (0, 1) and
               adapter["link"]["frames_in"] > 100, adapter["link"])
    expect({p.result["statistics"].get("served.adapter.requester.packets") for p in peers} != {None}, "statistics")
    statistics = both.result["statistics"]
    expect(statistics["served.adapter.requester.packets"] > 100 and statistics["served2.adapter.requester.packets"] > 100,
           "each adapter has its own counters")
    blue_flames = [statistics.get(name + ".adapter.requester.blueflame_used", 0) for name in ("served", "served2")]
    expect(blue_flames[1] > 0 == blue_flames[0], "b.driver.blue_flame=all: %s requests by BlueFlame" % blue_flames)
    for pcap, count in ((both.pcap, adapters[0]), (both.pcap + ".2", adapters[1])):
        expect(len(rdpcap(pcap)) == count["link"]["frames_in"] + count["link"]["frames_out"] +
               count["link"]["drop"]["no_peer"], pcap)
    done = subprocess.run([RNIC, "serve", "--link", "listen:unix:" + path("x"), "--ip", "10.0.0.9@2"], capture_output=True,
                          text=True)
    expect(done.returncode == 2 and "--ip 10.0.0.9@2" in done.stderr, done)
