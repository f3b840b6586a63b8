# SPDX-License-Identifier: Apache-2.0
"""What administrators set of connections and groups: RoCE versions, types of service, reports of multicast groups.

The rules are those of the kernel's rdma_cm (core/cma.c) and of the product documents; frames are read by tshark,
queries of multicast routers are scapy's."""
import os
import shutil
import signal
import socket
import subprocess
import time

from scapy.all import (Dot1Q, Ether, ICMPv6MLQuery, ICMPv6MLQuery2, IP, IPv6, IPv6ExtHdrHopByHop, RouterAlert,
                       in6_getnsmac)
from scapy.contrib.igmp import IGMP as IGMP2
from scapy.contrib.igmpv3 import IGMPv3, IGMPv3mq
from scapy.layers.inet import IPOption_Router_Alert
from served import PEER_MAC, MODEL4, PEER4, MODEL6, PEER6, RNIC, expect, pairs_of_links, path, serve, wire

V1, V2 = ["--set", "driver.cma_roce_mode=v1"], ["--set", "driver.cma_roce_mode=v2"]
ONLY_V1 = ["--set", "driver.roce_mode=v1"]  # module parameter roce_mode=0
OLD = ["--set", "adapter.port.roce_v2=false"]  # an adapter of the first generation


def frames(capture, fields, only=""):
    """The values of these fields in each frame, as tshark reads them."""
    command = ["tshark", "-r", capture, "-T", "fields"] + (["-Y", only] if only else [])
    for f in fields:
        command += ["-e", f]
    done = subprocess.run(command, capture_output=True, text=True)
    return [tuple(line.split("\t")) for line in done.stdout.splitlines()]


def connect(name, server, client, app="rping", iterations=("--iterations", 3)):
    """A server and a client of it; the client's status and both."""
    links = pairs_of_links()["unix stream"]
    a = serve(name + "-a", links[0], "--app", app, "--server", *server, addresses=(MODEL4,))
    b = serve(name + "-b", links[1], "--app", app, "--client", MODEL4, *iterations, *client, mac=PEER_MAC,
              addresses=(PEER4,))
    status = b.wait()
    if status == 0:
        a.wait()
    else:
        a.stop_with(1)
    return status, a, b


def roce_modes():
    """The client's default decides; a server takes what comes in a version that its address has GIDs of, as long as
    there are some of its own default too."""
    if shutil.which("tshark") is None:
        print("skipped: no tshark")
        return 77
    of_roce = "udp.port == 4791 or eth.type == 0x8915"
    for client, server, seen in (([], [], ("0x0800", "4791")), (V1, [], ("0x8915", "")), (V2, V1, ("0x0800", "4791")),
                                 (V1, V1, ("0x8915", "")), (OLD, OLD, ("0x8915", ""))):
        status, a, b = connect("meet", server, client)
        expect(status == 0, "%s to %s: %s%s" % (client, server, a.text, b.text))
        for side in (a, b):
            kinds = set(frames(side.pcap, ["eth.type", "udp.dstport"], of_roce))
            expect(kinds == {seen}, "%s to %s: %s" % (client, server, kinds))
            expect(side.result["connection_manager"]["not_admitted"] == 0, side.result["connection_manager"])

    # The server's address has no GID of the server's default version: cma_ib_acquire_dev fails, and the communication
    # manager refuses as if the application had (28, IB_CM_REJ_CONSUMER_DEFINED), in the version of the request.
    for app in ("rping", "udaddy"):
        status, a, b = connect("refused", ONLY_V1 + V2, V1, app, () if app == "udaddy" else ("--iterations", 3))
        expect(status == 1 and ("reason 28" if app == "rping" else "status 2") in b.text, b.text)
        expect(a.result["connection_manager"]["not_admitted"] == 1 and a.result["runs_made"] == 0, a.result)
        rows = frames(b.pcap, ["infiniband.mad.attributeid", "eth.type", "infiniband.cm.rej.reason"], "infiniband.mad")
        expect([int(r[0], 16) for r in rows] == ([0x10, 0x12] if app == "rping" else [0x17, 0x18]), rows)
        expect({r[1] for r in rows} == {"0x8915"}, rows)
        expect(app != "rping" or int(rows[1][2], 0) == 28, rows)

    # No GID of the client's version at the server: its adapter knows no such address, and nobody answers.
    status, a, b = connect("unheard", ONLY_V1 + V1, V2 + ["--duration", 3])
    expect(status == 1 and a.result["connection_manager"]["received"] == 0, "%s%s" % (a.result, b.text))

    # None at the client: no connection begins (cma_acquire_dev_by_src_ip: ENODEV).
    done = subprocess.run([RNIC, "serve", "--link", "listen:unix:" + path("s"), "--app", "rping", "--client", MODEL4,
                           "--ip", PEER4, *ONLY_V1, *V2], capture_output=True, text=True, timeout=20)
    expect(done.returncode == 2 and done.stderr.startswith("rnic: driver.cma_roce_mode v2: ") and
           done.stderr.count("\n") == 1, done)


def types_of_service():
    """SL = ToS >> 5 and PCP = SL & 7 in tagged frames, the ToS itself in IP; the server's are those of the request."""
    if shutil.which("tshark") is None:
        print("skipped: no tshark")
        return 77
    tagged = ["--vlan", 7]
    for client, server, tos, pcp in ((["--tos", 104], [], 104, 3), (["--set", "driver.cma_roce_tos=184"], [], 184, 5),
                                     (["--set", "driver.cma_roce_tos=184", "--tos", 0], ["--tos", 255], 0, 0),
                                     (["--tos", 104, "--priority", 6], ["--priority", 2], 104, 6), ([], [], 0, 0)):
        status, a, b = connect("tos", tagged + server, tagged + client)
        expect(status == 0, a.text + b.text)
        for side in (a, b):
            seen = set(frames(side.pcap, ["vlan.priority", "ip.dsfield"], "udp.port == 4791"))
            expect(seen == {(str(pcp), "0x%02x" % tos)}, "%s: %s" % (client, seen))
    # Without a tag there is no PCP: the ToS stays.
    status, a, b = connect("untagged", [], ["--tos", 104])
    seen = set(frames(b.pcap, ["vlan.priority", "ip.dsfield"], "udp.port == 4791"))
    expect(status == 0 and seen == {("", "0x68")}, seen)
    # A forced class goes before it (Force DSCP); each host has its own.
    forced = ["--traffic-class", "tclass=16,dst_ip=" + MODEL4, "--ttl", 3]
    status, a, b = connect("forced", tagged, tagged + ["--tos", 104] + forced)
    data = set(frames(b.pcap, ["ip.src", "ip.dsfield", "ip.ttl", "vlan.priority"],
                      "udp.port == 4791 and infiniband.bth.destqp != 1"))
    expect(status == 0 and data == {(PEER4, "0x10", "3", "3"), (MODEL4, "0x68", "64", "3")}, data)


IGMP = ["eth.dst", "ip.src", "ip.dst", "igmp.type", "igmp.record_type", "igmp.maddr"]
MLD = ["eth.dst", "ipv6.dst", "icmpv6.type", "icmpv6.mldr.mar.record_type", "icmpv6.mldr.mar.multicast_address"]


def reports():
    """Joining and leaving a group is told to the network if its datagrams are IP, and queries are answered."""
    if shutil.which("tshark") is None:
        print("skipped: no tshark")
        return 77
    links = pairs_of_links()["unix stream"]

    def mckey(group, *options):
        a = serve("group-a", links[0], "--app", "mckey", "--server", "--group", group, *options)
        b = serve("group-b", links[1], "--app", "mckey", "--client", group, *options, mac=PEER_MAC,
                  addresses=(PEER4, PEER6))
        expect([b.wait(), a.wait()] == [0, 0] and a.result["runs"][0]["received"] == 10, a.text + b.text)
        return a, b

    def four(kind, record, source, group="239.9.8.7", to="224.0.0.22", dmac="01:00:5e:00:00:16"):
        return (dmac, source, to, kind, record, group)

    a, b = mckey("239.9.8.7")
    for side, own in ((a, MODEL4), (b, PEER4)):
        rows = [r for r in frames(side.pcap, IGMP, "igmp") if r[1] == own]
        # The program may end before it says the last for the second time.
        joins, leaves = [four("0x22", "4", own)] * 2, [four("0x22", "3", own)] * 2
        expect(rows in (joins + leaves, joins + leaves[:1]), rows)
    a, b = mckey("239.9.8.7", "--igmp", 2)
    # In version 2 a host that hears another one's report is not the last reporter, which alone says that it leaves.
    report = {own: four("0x16", "", own, to="239.9.8.7", dmac="01:00:5e:09:08:07") for own in (MODEL4, PEER4)}
    leave = four("0x17", "", PEER4, to="224.0.0.2", dmac="01:00:5e:00:00:02")
    rows = frames(a.pcap, IGMP, "igmp")
    left = [r for r in rows if r[1] == MODEL4 and r[3] == "0x17"]
    expect(rows[:2] == [report[MODEL4], report[PEER4]] and not left, rows)
    rows = frames(b.pcap, IGMP, "igmp")
    expect(rows[:2] == [report[MODEL4], report[PEER4]] and rows[-1] == leave and rows.count(leave) == 1, rows)
    a, b = mckey("239.9.8.7", "--roce", "v1")  # RoCE v1 is not IP
    expect(frames(a.pcap, IGMP, "igmp") == [], "reports of RoCE v1")
    bad = frames(a.pcap, ["frame.number"], "_ws.malformed")
    expect(bad == [], bad)

    w = wire("--app", "mckey", "--server", "--group", "239.9.8.7")
    w.model.until("joined", 20)
    answers = {}
    for name, query in (("general", IP(dst="224.0.0.1") / IGMPv3(type=0x11, mrcode=5) / IGMPv3mq(qrv=2, qqic=125)),
                        ("of the group", IP(dst="239.9.8.7") / IGMPv3(type=0x11, mrcode=5) /
                         IGMPv3mq(gaddr="239.9.8.7", qrv=2, qqic=125)),
                        ("of another", IP(dst="239.9.8.8") / IGMPv3(type=0x11, mrcode=5) /
                         IGMPv3mq(gaddr="239.9.8.8", qrv=2, qqic=125))):
        while w.receive(1.5) is not None:  # reports of the join
            pass
        query[IP].src, query[IP].ttl, query[IP].options = PEER4, 1, [IPOption_Router_Alert()]
        to = "01:00:5e:00:00:01" if name == "general" else "01:00:5e:%02x:%02x:%02x" % tuple(
            int(n) & (0x7f if i == 0 else 0xff) for i, n in enumerate(query[IP].dst.split(".")[1:]))
        w.send(Ether(src=PEER_MAC, dst=to) / query)
        answers[name] = w.receive(3)
    expect(answers["of another"] is None, answers["of another"])
    w.model.stop_with(1)
    rows = [r for r in frames(w.model.pcap, IGMP, "igmp") if r[1] == MODEL4]
    expect(rows == [four("0x22", "4", MODEL4)] * 2 + [four("0x22", "2", MODEL4)] * 2 + [four("0x22", "3", MODEL4)] *
           (len(rows) - 4) and len(rows) in (5, 6), rows)
    left_at_the_end(four)


def left_at_the_end(four):
    """Groups that are joined when the program ends are left: by its time, a signal, and beside an IGMPv2 querier."""
    for how in ("signal", "duration", "querier of version 2"):
        os.unlink(path("peer"))
        w = wire("--app", "mckey", "--server", "--group", "239.9.8.7", *(["--duration", 3] if how == "duration" else []))
        w.model.until("joined", 20)
        if how == "querier of version 2":
            w.send(Ether(src=PEER_MAC, dst="01:00:5e:00:00:01") /
                   IP(src=PEER4, dst="224.0.0.1", ttl=1, options=[IPOption_Router_Alert()]) / IGMP2(type=0x11, mrcode=5))
            time.sleep(1)
        if how == "duration":
            expect(w.model.wait(20) == 1, w.model.text)
        else:
            w.model.process.send_signal(signal.SIGTERM)  # and once more, as timeout does: it is one wish
            w.model.stop_with(1)
        rows = [r for r in frames(w.model.pcap, IGMP, "igmp") if r[1] == MODEL4]
        last = (four("0x17", "", MODEL4, to="224.0.0.2", dmac="01:00:5e:00:00:02") if how == "querier of version 2" else
                four("0x22", "3", MODEL4))
        expect(rows[-1] == last and rows.count(last) in (1, 2), "%s: %s" % (how, rows))
        heard = []
        while (f := w.receive(0.3)) is not None:
            heard.append(bytes(f))
        expect(any(bytes([0x17 if how == "querier of version 2" else 0x22, 0]) == f[38:40] for f in heard[-1:]),
               "%s: the peer has not got it" % how)
        w.socket.close()


def listeners():
    """The same of IPv6 groups: those of the host's addresses (RFC 4861, 7.2.1) and one that is joined."""
    if shutil.which("tshark") is None:
        print("skipped: no tshark")
        return 77
    w = wire("--app", "mckey", "--server", "--group", "ff0e::1:3", addresses=(MODEL6, "fd00::1234:5678"))
    w.model.until("joined", 20)
    groups = {"ff02::1:ff00:2", "ff02::1:ff34:5678", "ff0e::1:3"}  # the link-local address and the first one have one

    def told(record, rows):
        return {g for r in rows if r[:3] == ("33:33:00:00:00:16", "ff02::16", "143")
                for k, g in zip(r[3].split(","), r[4].split(",")) if k == record}

    def ask(query, to):
        while w.receive(1.5, reports=True) is not None:
            pass
        w.send(Ether(src=PEER_MAC, dst=in6_getnsmac(socket.inet_pton(socket.AF_INET6, to))) /
               IPv6(src="fe80::99", dst=to, hlim=1) / IPv6ExtHdrHopByHop(options=[RouterAlert(value=0)]) / query)
        return w.receive(3, reports=True)

    answers = [ask(ICMPv6MLQuery2(mrd=500, QRV=2, QQIC=125), "ff02::1")]
    answers += [ask(ICMPv6MLQuery2(mladdr=g, mrd=500, QRV=2, QQIC=125), g) for g in ("ff02::1:ff34:5678", "ff0e::1:3")]
    expect(all(a is not None for a in answers), "no answer to a query: %s" % answers)
    w.model.stop_with(1)
    rows = frames(w.model.pcap, MLD, "icmpv6.type == 143")
    answered = [r for r in rows if "2" in r[3].split(",")]
    expect(told("4", rows) == groups and [told("2", [r]) for r in answered] ==
           [groups, {"ff02::1:ff34:5678"}, {"ff0e::1:3"}], rows)
    # Once, or for the second time as well before the program is gone.
    expect(told("3", rows[-1:]) == groups and told("3", rows[:-2]) == set(), rows)
    expect(all(frames(w.model.pcap, ["frame.number"], f) == [] for f in ("_ws.malformed", "icmpv6.checksum.status == 0")),
           "bad reports")
    os.unlink(path("peer"))
    interfaces()


def interfaces():
    """The untagged interface has the link-local address, the VLAN's has those of --ip: each reports its own, and is asked
    by itself. MLDv1 beside a querier of that."""
    w = wire("--vlan", 100, addresses=("fd00::1234:5678",))
    while w.receive(1.5, reports=True) is not None:
        pass
    query = IPv6(src="fe80::99", dst="ff02::1", hlim=1) / IPv6ExtHdrHopByHop(options=[RouterAlert(value=0)]) / ICMPv6MLQuery(mrd=500)
    w.send(Ether(src=PEER_MAC, dst="33:33:00:00:00:01") / Dot1Q(vlan=100) / query)
    while w.receive(1.5, reports=True) is not None:
        pass
    w.model.stop()
    rows = frames(w.model.pcap, ["vlan.id"] + MLD, "icmpv6.type == 143 and eth.src == 02:00:00:00:00:02")
    joined = [r for r in rows if r[4] == "4"]
    expect({(r[0], r[5]) for r in joined} == {("", "ff02::1:ff00:2"), ("100", "ff02::1:ff34:5678")} and len(joined) == 4, rows)
    expect({(r[0], r[4], r[5]) for r in rows if r[4] != "4"} == {("", "3", "ff02::1:ff00:2")}, rows)
    old = frames(w.model.pcap, ["vlan.id", "ipv6.dst", "icmpv6.type", "icmpv6.mld.multicast_address"],
                 "(icmpv6.type == 131 or icmpv6.type == 132) and eth.src == 02:00:00:00:00:02")
    group = "ff02::1:ff34:5678"
    expect(old == [("100", group, "131", group), ("100", "ff02::2", "132", group)], old)
