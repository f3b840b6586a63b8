#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The adapter against Soft-RoCE of a Linux guest, live: tools of rdma-core and perftest, in both directions.

Usage: check_soft_roce.py CASE RNIC GUEST_FOLDER; without arguments it says which cases there are.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import guest as linux  # noqa: E402
import half_open  # noqa: E402
import perftest_cases  # noqa: E402
import udpong_cases  # noqa: E402
import verbs_cases  # noqa: E402
import wire_image  # noqa: E402
from bench import GID4, GID6, GUEST4, GUEST6, MODEL4, MODEL6, MODEL_MAC, PORT, SECONDS, bench, lost_its_channel, mac_of_function, rest_of  # noqa: E402

GUEST_VLAN, MODEL_VLAN = "10.100.0.1", "10.100.0.2"
RSTREAM_LIST = ((64, 100000), (4096, 10000), (65536, 1000), (1 << 20, 100))  # bytes, messages
GROUP, GROUP_IGMP = "239.1.2.3", "030201EF"


def rc(b):
    for mtu in (256, 512, 1024, 2048, 4096):
        b.both_ways("rc, MTU %d" % mtu, "rc_pingpong", 3 * mtu + 77, mtu=mtu)
    b.both_ways("rc, one byte", "rc_pingpong", 1)
    b.both_ways("rc, 64 KiB", "rc_pingpong", 65536, iterations=4, mtu=4096)


def unreliable(b):
    for mtu in (256, 512, 1024, 2048, 4096):
        b.both_ways("uc, MTU %d" % mtu, "uc_pingpong", 2 * mtu + 5, mtu=mtu)
    for size in (1, 256, 512, 1024, 2048, 4096):
        b.both_ways("ud, %d bytes" % size, "ud_pingpong", size)


def srq(b):
    for qps, mtu in ((1, 1024), (3, 256), (4, 512), (16, 1024), (8, 2048), (64, 4096)):
        b.both_ways("srq, %d queue pairs, MTU %d" % (qps, mtu), "srq_pingpong", 2 * mtu + 9, iterations=4 * qps, mtu=mtu,
                    serve=("--qps", str(qps)), tool="-q %d" % qps)
    # The model's XRC has other models for peers (system/serve.pingpong): Soft-RoCE knows none.
    status, text = b.guest.run("timeout 10 /usr/bin/ibv_xsrq_pingpong -d rxe0 -g %d" % b.guest.gid_index(GID4), 30)
    b.note("xsrq: Soft-RoCE has no XRC domains", status == 1 and "XRC Domain" in text, text)
    b.both_ways("srq, receives run out and are posted again", "srq_pingpong", 300, iterations=200,
                serve=("--qps", "4", "--rx-depth", "20"), tool="-q 4 -r 20")


def managed(b, name, app, guest_server, guest_client, model=(), client=GUEST4, tools=None):
    """A tool of librdmacm in the guest as client of the model, then as its server; no TCP between them."""
    listens = "/usr/bin/rdma resource show cm_id | grep -q LISTEN"
    client_tool, server_tool = tools or (app, app)
    pings = int(model[model.index("--iterations") + 1]) if app == "rping" else None
    if guest_client is not None:
        side = b.serve("--app", app, "--server", *model)
        b.verdict(name + ", the guest is client", side, b.guest.run(
            "timeout %d /usr/bin/%s %s" % (SECONDS, client_tool, guest_client), SECONDS * 2), pings)
    if guest_server is not None:
        b.guest.start("timeout %d /usr/bin/%s %s" % (SECONDS, server_tool, guest_server), listens)
        side = b.serve("--app", app, "--client", client, *model)
        b.verdict(name + ", the guest is server", side, b.guest.finish_server(SECONDS * 2), pings)


def rping(b):
    for size, count, mtu in ((64, 10, 1024), (1000, 5, 256), (65535, 3, 4096)):
        managed(b, "rping, %d bytes, MTU %d" % (size, mtu), "rping", "-s -v -a %s -S %d" % (GUEST4, size),
                "-c -v -V -a %s -C %d -S %d" % (MODEL4, count, size),
                ("--size", str(size), "--iterations", str(count), "--mtu", str(mtu)))
    managed(b, "rping over IPv6", "rping", "-s -a " + GUEST6, "-c -V -a %s -C 4" % MODEL6,
            ("--iterations", "4", "--gid-index", "5"), client=GUEST6)
    managed(b, "rping with a queue pair of its own making", "rping", "-s -q -a " + GUEST4, "-c -q -V -a %s -C 4" % MODEL4,
            ("--iterations", "4"))
    # Nobody listens: the peer says so, on either side.
    side = b.serve("--app", "rping", "--client", GUEST4, "--port", "7999")
    status, text = b.end(side)
    b.note("a service that is not there, the guest refuses", status == 1 and "reason 8" in text, text)
    side = b.serve("--app", "rping", "--server", "--port", "7999", "--duration", "8")
    status, text = b.guest.run("timeout 20 /usr/bin/rping -c -a %s -C 1" % MODEL4, 60)
    b.end(side)
    b.note("a service that is not there, the model refuses", status != 0 and "REJECTED" in text, text)


def functions(b):
    """The model's side is a virtual function: what its connections say goes through the physical function's driver."""
    function = ("--functions", "3", "--function", "2")
    managed(b, "rping, a virtual function", "rping", "-s -v -a %s -S 1000" % GUEST4,
            "-c -v -V -a %s -C 10 -S 1000" % MODEL4, function + ("--size", "1000", "--iterations", "10"))
    macs = wire_image.senders_of_connections(b.pcap)
    b.note("its messages have its own MAC", macs == {linux.MAC, mac_of_function(MODEL_MAC, 2)}, macs)
    managed(b, "rping over IPv6, a virtual function", "rping", "-s -a " + GUEST6, "-c -V -a %s -C 4" % MODEL6,
            function + ("--iterations", "4", "--gid-index", "5"), client=GUEST6)
    managed(b, "ucmatose, 8 connections, a virtual function", "ucmatose", "-c 8 -C 20 -S 3000 -b " + GUEST4,
            "-c 8 -C 20 -S 3000 -s " + MODEL4, function + ("--qps", "8", "--iterations", "20", "--size", "3000"))
    managed(b, "udaddy, a virtual function", "udaddy", "-b " + GUEST4, "-s " + MODEL4, function)
    managed(b, "rdma_server and rdma_client, a virtual function", "rdma_server", "-s " + GUEST4, "-s " + MODEL4, function,
            tools=("rdma_client", "rdma_server"))
    # Nobody listens: the function's refusal reaches the guest.
    side = b.serve("--app", "rping", "--server", "--port", "7999", "--duration", "8", *function)
    status, text = b.guest.run("timeout 20 /usr/bin/rping -c -a %s -C 1" % MODEL4, 60)
    b.end(side)
    b.note("a service that is not there, the virtual function refuses", status != 0 and "REJECTED" in text, text)
    managed(b, "rping, the physical function beside virtual ones", "rping", "-s -v -a %s -S 1000" % GUEST4,
            "-c -v -V -a %s -C 10 -S 1000" % MODEL4, ("--functions", "3", "--size", "1000", "--iterations", "10"))


def crowd(b):
    """Clients of one server, right one after the other, beside requests of a host that never confirms them."""
    stranger = half_open.stranger(b.own, MODEL_MAC, MODEL4)
    for app, times, port, client in (("rping", 20, 7174, "rping -c -V -a %s -C 3" % MODEL4), ("ucmatose", 10, 7471, "ucmatose -s " + MODEL4),
                                     ("ib_write_bw", 5, 18515, "ib_write_bw -d rxe0 -R -s 3000 -n 20 " + MODEL4)):
        more = ("--rdma-cm", "--size", "3000", "--iterations", "20") if app == "ib_write_bw" else ()
        side = b.serve("--app", app, "--server", "--repeat", str(times), *more)
        statuses = []
        for number in range(times):
            if number % 4 == 0:
                stranger.ask(port)
            ended = b.guest.run("timeout %d /usr/bin/%s" % (SECONDS, client), SECONDS * 2)
            statuses.append(0 if lost_its_channel(ended) else ended[0])
        status, text = b.end(side)
        with open(b.json) as f:
            result = json.load(f)
        asked = stranger.asked
        b.note("%s, %d clients in sequence, %d requests never confirmed" % (app, times, asked),
               not any(statuses) and result["runs_made"] == times and result["runs_failed"] == 0, "%s\n%s" % (statuses, text))
        b.note(app + ", they were answered", asked == 0 or result["clients"]["answered"] > result["clients"]["confirmed"], result["clients"])
        stranger.asked = 0
    model_leaves(b)


def model_leaves(b):
    """The model is ended while the guest's client has its connection: who goes first tells the other."""
    side = b.serve("--app", "rping", "--server")
    received = "[ $(cat /sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts) -gt $(($(cat /tmp/received) + 200)) ]"
    b.guest.must("cat /sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts > /tmp/received")
    b.guest.start("/usr/bin/rping -c -V -a %s -C 1000000" % MODEL4, received)
    side.terminate()
    status, text = b.end(side)
    # Where that ends is not looked at: rping's threads set its state each by itself, and where its only receive was
    # being posted again rxe never flushes that one, for which rping waits for ever (rxe_post_recv() of the library
    # writes to the queue, and the kernel has flushed it).
    told = b.guest.run("i=0; until grep -q 'client DISCONNECT EVENT' /tmp/output; do i=$((i+1)); [ $i = 100 ] && exit 1;"
                       " usleep 100000; done")[0] == 0
    b.guest.run("kill -9 $(pidof rping)")
    b.guest.finish_server()
    text += b.guest.run("cat /tmp/output")[1]
    asked, answered, behind = wire_image.farewell(b.pcap, MODEL_MAC)
    b.note("rping, the model ends, the guest is told", told and status == 1, text)
    b.note("rping, the model ends: DREQ, DREP, and no packet behind", (asked, answered, behind) == (1, 1, 0),
           "%d DREQs, %d DREPs, %d packets of the connection after that" % (asked, answered, behind))


def rstream(b, size, count, verify):
    """A stream of rsockets to the server and back; where the tool verifies its content, so does the model."""
    more = " -T v" if verify else ""
    tool = "timeout %d /usr/bin/rstream -S %d -C %d -I 1%s" % (SECONDS, size, count, more)
    options = ("--app", "rstream", "--size", str(size), "--iterations", str(count))

    def verdict(name, side, guest):
        status, text = b.end(side)
        ok = status == 0 and guest[0] == 0 and ("the content was looked at" in text) == verify and "failed" not in guest[1]
        if ok:
            with open(b.json) as f:
                run = json.load(f)["runs"][0]
            ok = run["ok"] and run["sent"] == run["received"] == count and run["wrong_bytes"] == 0
        name = "rstream, %d times %d bytes%s, %s" % (count, size, ", verified" if verify else "", name)
        b.note(name, ok)
        if not ok:
            b.show(status, text, guest)

    side = b.serve(*options, "--server")
    verdict("the guest is client", side, b.guest.run("%s -s %s" % (tool, MODEL4), SECONDS * 2))
    b.guest.start("%s -b %s" % (tool, GUEST4), "/usr/bin/rdma resource show cm_id | grep -q LISTEN")
    side = b.serve(*options, "--client", GUEST4)
    verdict("the guest is server", side, b.guest.finish_server(SECONDS * 2))


def no_xrc(b):
    """Soft-RoCE has none: its tools say so, and the model says so of them."""
    status, text = b.guest.run("timeout 10 /usr/bin/rdma_xclient -c x -s " + MODEL4, 30)
    b.note("rdma_xclient: Soft-RoCE has no XRC", status == 255 and "rdma_create_ep: Operation not supported" in text, text)
    listens = "/usr/bin/rdma resource show cm_id | grep -q LISTEN"
    for option, words, end in (("-c x", "reason 28: its application does not want to, as a peer that has no XRC says it", "rdma_get_request: Operation not supported"),
                               ("", "reason 8: nobody listens there over XRC", "")):
        b.guest.start("timeout 5 /usr/bin/rdma_xserver " + option, listens)
        status, text = b.end(b.serve("--app", "rdma_xclient", "--client", GUEST4, "--connection", "XRC"))
        guest = b.guest.finish_server(60)
        b.note("rdma_xserver %s: the model's client over XRC is refused" % option, status == 1 and words in text and end in guest[1],
               text + guest[1])


def rstream_list(b):
    """What rstream does without -S and -C, each side as server. Takes 12 minutes and more: not in ctest."""
    most = 900
    tests = [["latency", str(s), "1", str(n)] for s, n in RSTREAM_LIST] + [["bandwidth", str(s), str(n), "1"] for s, n in RSTREAM_LIST]

    def verdict(name, side, guest):
        status, text = b.end(side, most)
        said = [line.split()[:4] for line in text.splitlines() if line.startswith((" latency", " bandwidth"))]
        with open(b.json) as f:
            run = json.load(f)["runs"][0]
        messages = 2 * sum(n for _, n in RSTREAM_LIST)
        ok = status == 0 and guest[0] == 0 and said == tests and run["wrong_bytes"] == 0
        ok = ok and run["sent"] == run["received"] == messages and len(guest[1].splitlines()) == 1 + len(tests)
        b.note("rstream's own list, " + name, ok)
        if not ok:
            b.show(status, text, guest)

    side = b.serve("--app", "rstream", "--server")
    verdict("the guest is client", side, b.guest.run("timeout %d /usr/bin/rstream -s %s" % (most, MODEL4), most + 20))
    b.guest.start("timeout %d /usr/bin/rstream -b %s" % (most, GUEST4), "/usr/bin/rdma resource show cm_id | grep -q LISTEN")
    side = b.serve("--app", "rstream", "--client", GUEST4)
    verdict("the guest is server", side, b.guest.finish_server(most))


def cm(b):
    for size, count, verify in ((64, 500, True), (1000, 1000, False), (70000, 20, True), (1000000, 3, True)):
        rstream(b, size, count, verify)
    managed(b, "ucmatose", "ucmatose", "-b " + GUEST4, "-s " + MODEL4)
    managed(b, "ucmatose, 8 connections", "ucmatose", "-c 8 -C 20 -S 3000 -b " + GUEST4, "-c 8 -C 20 -S 3000 -s " + MODEL4,
            ("--qps", "8", "--iterations", "20", "--size", "3000"))
    managed(b, "ucmatose over IPv6", "ucmatose", "-b " + GUEST6, "-s " + MODEL6, ("--gid-index", "5"), client=GUEST6)
    managed(b, "udaddy", "udaddy", "-b " + GUEST4, "-s " + MODEL4)
    managed(b, "udaddy, 4 services", "udaddy", "-c 4 -C 5 -S 900 -b " + GUEST4, "-c 4 -C 5 -S 900 -s " + MODEL4,
            ("--qps", "4", "--iterations", "5", "--size", "900"))
    managed(b, "rdma_server and rdma_client", "rdma_server", "-s " + GUEST4, "-s " + MODEL4, tools=("rdma_client", "rdma_server"))
    managed(b, "rdma_xserver and rdma_xclient", "rdma_xserver", "", "-s " + MODEL4, tools=("rdma_xclient", "rdma_xserver"))
    no_xrc(b)
    # The guest's server of cmtime never ends.
    managed(b, "cmtime, 50 connections", "cmtime", None, "-c 50 -s " + MODEL4, ("--qps", "50"))
    b.guest.start("timeout 15 /usr/bin/cmtime -b " + GUEST4, "/usr/bin/rdma resource show cm_id | grep -q LISTEN")
    status, text = b.end(b.serve("--app", "cmtime", "--client", GUEST4, "--qps", "50"))
    b.note("cmtime, 50 connections, the guest is server", status == 0 and "disconnect" in text, text)
    b.guest.finish_server(60)
    # The model joins the group before the guest sends to it, and the other way round.
    side = b.serve("--app", "mckey", "--server", "--group", GROUP)
    b.verdict("mckey, the guest sends", side, b.guest.run("timeout 30 /usr/bin/mckey -m %s -b %s -s" % (GROUP, GUEST4), 60))
    for kind, what in ((4, "joining"), (3, "leaving")):
        model, guest = (wire_image.group_reports(b.pcap, host, GROUP, kind) for host in (MODEL4, GUEST4))
        b.note("IGMP, %s the group" % what, model and guest and set(model) == set(guest), "%s\n%s\n" % (model, guest))
    b.guest.start("timeout 30 /usr/bin/mckey -m %s -b %s" % (GROUP, GUEST4), "grep -q %s /proc/net/igmp" % GROUP_IGMP)
    side = b.serve("--app", "mckey", "--client", GROUP)
    b.verdict("mckey, the model sends", side, b.guest.finish_server(60))


def one_qperf(b, test, size, duration, model_duration, messages=None):
    side = b.serve("--app", "qperf", "--server", "--port", str(PORT + 2))
    guest = b.guest.run("timeout %d /usr/bin/qperf -lp %d -cm 1 -to 30 -vvs -uu -e 9 %s %s %s %s" % (
        SECONDS, PORT + 2, duration, "".join("-m " + s for s in size), MODEL4, test), SECONDS * 2)
    # The tool's own words: what it has sent and received, and what the model has told it at the end. In a test that ends
    # by its time each side counts what it sees until then.
    told = {word: int(number) for word, number in re.findall(r"(\w+_msgs) += +(\d+)", guest[1])}
    atomics = "swap" in test or "add" in test

    def client_counts(run):
        rows = [("rem_recv_msgs", "received"), ("rem_send_msgs", "sent")] if "rem_recv_msgs" in told else [("recv_msgs", "received")]
        passive = atomics or "read" in test
        return [] if passive and told or not passive and all(told.get(a) == run[b] for a, b in rows) else [
            "the tool says %s, the model %s" % (told, run)]

    def short_of(run):
        short = messages is not None and max(run["sent"], run["received"]) != messages
        return ["%d messages were to come: %s" % (messages, run)] if short else []

    b.tool_verdict("qperf %s, the guest is client" % test, side, guest, lambda run: client_counts(run) + short_of(run))
    side = b.serve("--app", "qperf", "--client", GUEST4, "--exchange", "127.0.0.1", "--port", str(PORT), "--test", test,
                   *(w for s in size for w in ("--size", s)), *model_duration)
    b.tool_verdict("qperf %s, the guest is server" % test, side, (0, ""),
                   lambda run: ([] if run["sent"] > 0 else ["%s" % run]) + short_of(run))


def qperf(b):
    """Its tests of RC. The others address their queue pairs by LID, which no Ethernet port has."""
    tests = [t % kind for t, kinds in (
        ("rc_%s", ("bw", "bi_bw", "lat", "compare_swap_mr", "fetch_add_mr")),
        ("rc_rdma_%s", ("read_bw", "read_lat", "write_bw", "write_lat", "write_poll_lat")),
        ("ver_rc_%s", ("compare_swap", "fetch_add"))) for kind in kinds]
    b.guest.start_server("/usr/bin/qperf -lp %d" % PORT, PORT)
    for test in tests:
        size = [] if test.endswith("_mr") else ["9000" if "bw" in test else "800"]
        one_qperf(b, test, size, "-t 1", ("--seconds", "1"))
    one_qperf(b, "rc_bw", ["3000"], "-n 400", ("--iterations", "400"), 400)
    status, text = b.guest.run("timeout 20 /usr/bin/qperf -lp %d -t 1 %s uc_lat" % (PORT, GUEST4), 60)
    # Which of its two sides says that it cannot go to RTR, and whether it has the time to, is not always the same.
    b.note("qperf uc_lat: Soft-RoCE has no path by LID", status != 0 and "latency" not in text, text)
    b.guest.must("kill $(pidof qperf)")


def addresses(b):
    # Rows of the model: 0 and 1 link-local, 2 and 3 IPv4, 4 and 5 IPv6; RoCE v2 is the second one.
    b.both_ways("rc over IPv6", "rc_pingpong", 3333, gid=GID6, gid_index=5)
    b.both_ways("uc over IPv6", "uc_pingpong", 3333, gid=GID6, gid_index=5)
    b.both_ways("ud over IPv6", "ud_pingpong", 900, gid=GID6, gid_index=5)
    link_local = "fe80:0000:0000:0000:5054:00ff:fe00:000a"
    b.both_ways("rc over link-local IPv6", "rc_pingpong", 700, mtu=256, gid=link_local, gid_index=1)
    b.guest.must("/sbin/ip link add link eth0 name eth0.100 type vlan id 100 egress-qos-map 0:4 1:1 2:2 3:3 4:4 5:5 6:6 7:7")
    b.guest.must("/sbin/ip addr add 10.100.0.1/24 dev eth0.100; /sbin/ip link set eth0.100 up; usleep 500000")
    vlan = ("--vlan", "100", "--ip", MODEL_VLAN)
    gid = "0000:0000:0000:0000:0000:ffff:0a64:0001"
    for app, size in (("rc_pingpong", 2222), ("uc_pingpong", 2222), ("ud_pingpong", 800)):
        b.both_ways(app[:2] + " in VLAN 100", app, size, gid=gid, gid_index=7, priority=4, serve=vlan)
    b.both_ways("srq in VLAN 100", "srq_pingpong", 1500, iterations=40, gid=gid, gid_index=7, priority=4,
                serve=(*vlan, "--qps", "4"), tool="-q 4")
    perftest_cases.run(b, perftest_cases.CASES_VLAN, gid, 7, " in VLAN 100", vlan)
    managed(b, "rping in VLAN 100", "rping", "-s -S 2000 -a " + GUEST_VLAN, "-c -v -V -a %s -C 4 -S 2000" % MODEL_VLAN,
            (*vlan, "--gid-index", "7", "--iterations", "4", "--size", "2000"), client=GUEST_VLAN)


def loss(b):
    """What the guest sends is lost at times: requests, which it repeats, and acknowledgements, which the model misses."""
    b.guest.must("/sbin/tc qdisc add dev eth0 root netem loss 1%")
    b.ack_timeout = 16
    perftest_cases.run(b, perftest_cases.CASES_LOSS, where=", 1 % is lost")
    b.lossy = True
    for test in (lambda: b.both_ways("rc, 1 % is lost", "rc_pingpong", 3000, iterations=100),
                 lambda: b.both_ways("srq, 1 % is lost", "srq_pingpong", 3000, iterations=100, serve=("--qps", "1"), tool="-q 1"),
                 lambda: managed(b, "rping, 1 % is lost", "rping", "-s -v -S 9000 -a " + GUEST4,
                                 "-c -v -V -a %s -C 40 -S 9000" % MODEL4, ("--size", "9000", "--iterations", "40"))):
        b.repeat = True
        for _ in range(3):
            if b.repeat:
                b.repeat = False
                test()
        if b.repeat:
            b.failures.append("what the guest sent last was lost three times")
    lost = re.search(r"dropped (\d+)", b.guest.must("/sbin/tc -s qdisc show dev eth0"))
    if lost is None or int(lost.group(1)) == 0:
        b.failures.append("no frame was lost")


def reads(b):
    """Answers of the guest to READs are lost, with the time-out that perftest takes."""
    b.ack_timeout = 14
    for percent in (1, 5):
        b.guest.must("/sbin/tc qdisc replace dev eth0 root netem loss %d%%" % percent)
        for tool, o in (c for c in perftest_cases.CASES_READS if percent == 1 or not c[1].get("cm")):
            perftest_cases.guest_is_server(b, "%s, %d %% is lost" % (perftest_cases.named(tool, o), percent), tool, o)


def late(b):
    """The guest's program stands still amid a test: for four seconds there are no receives."""
    received = "$(cat /sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts)"
    b.ack_timeout = 14

    def stand_still():
        b.guest.must("from=%s; i=0; until [ %s -gt $((from + 100)) ]; do i=$((i+1)); [ $i = 600 ] && exit 1; usleep 50000;"
                     " done; kill -STOP $(pidof ib_send_bw); sleep 4; kill -CONT $(pidof ib_send_bw)" % (received, received))

    perftest_cases.guest_is_server(b, "ib_send_bw, 3000 bytes, no receives for 4 s", "ib_send_bw",
                                   {"size": 3000, "n": 4000, "guest": "-r 64"}, meanwhile=stand_still)
    naks = sum(v for k, v in b.result["statistics"].items() if k.endswith("requester.rnr_naks"))
    print("%d times the receiver was not ready" % naks, flush=True)
    if naks == 0:
        b.failures.append("the receiver was ready all the time")


def congestion(b):
    """Packets of the guest are marked: the model answers with CNPs, which Soft-RoCE does not know and ignores."""
    options = []
    for point in ("notification", "reaction"):
        options += ["--set", "adapter.congestion.%s.priorities=1" % point]
    for app in ("rc_pingpong", "uc_pingpong", "ud_pingpong"):
        size = 1000 if app == "ud_pingpong" else 3000
        b.both_ways(app[:2] + " through a congested switch", app, size, iterations=60, serve=options)
        counted = {k: sum(v for name, v in b.result["statistics"].items() if name.endswith(k))
                   for k in ("np_ecn_marked_roce_packets", "np_cnp_sent")}
        print("%d packets marked, %s" % (b.switch.marked, counted), flush=True)
        if b.switch.marked == 0 or min(counted.values()) == 0:
            b.failures.append(app + ": no CNP was sent")


CASES = {"rc": rc, "srq": srq, "rping": rping, "functions": functions, "cm": cm, "crowd": crowd, "unreliable": unreliable, "addresses": addresses, "loss": loss,
         "reads": reads, "late": late, "qperf": qperf, "udpong": udpong_cases.udpong, "rstream_list": rstream_list,
         "congestion": congestion, "perftest": perftest_cases.perftest,
         "options": perftest_cases.options, "script": verbs_cases.verbs}


def stream(rnic, image, folder):
    """QEMU's stream framing, and answers of the model's host to a real network stack."""
    path = os.path.join(folder, "wire")
    model = subprocess.Popen([rnic, "serve", "--link", "listen:unix:" + path, "--ip", MODEL4, "--ip", MODEL6, "--app",
                              "rc_pingpong", "--server", "--port", str(PORT), "--iterations", "10", "--json",
                              os.path.join(folder, "r.json")], stdout=subprocess.PIPE, text=True)
    model.stdout.readline()
    g = None
    try:
        g = linux.guest(image, "stream,server=off,addr.type=unix,addr.path=" + path)
        g.set_up()
        g.must("ping -c 2 -W 5 " + MODEL4)
        g.must("ping -c 2 -W 5 -s 4000 " + MODEL4)
        g.must("ping -6 -c 2 -W 5 " + MODEL6)
        index = g.gid_index(GID4)
        g.must("timeout %d /usr/bin/ibv_rc_pingpong -d rxe0 -g %d -n 10 -p %d 10.0.2.2" % (SECONDS, index, PORT), 120)
        text, killed = rest_of(model, 30)
        if killed or model.returncode != 0:
            raise linux.failed("the model's side ended with status %d: %s" % (model.returncode, text))
        with open(os.path.join(folder, "r.json")) as f:
            network = json.load(f)["network"]
        if network["echo_requests"] < 4 or network["echo6_requests"] < 2 or network["malformed"] != 0:
            raise linux.failed("counted: %s" % network)
    finally:
        if model.poll() is None:
            model.kill()
            model.wait()
        if g is not None:
            g.stop()
    return []


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in [*CASES, "stream"]:
        raise SystemExit("usage: check_soft_roce.py CASE RNIC GUEST_FOLDER; cases: stream, " + ", ".join(CASES))
    case, rnic, image = sys.argv[1:]
    linux.need_guest(image)
    folder = tempfile.mkdtemp(prefix="rnic-interop-")
    try:
        if case == "stream":
            failures = stream(rnic, image, folder)
        else:
            b = bench(rnic, image, folder, case == "congestion", case == "qperf")
            try:
                CASES[case](b)
            finally:
                b.guest.stop()
            failures = b.failures
    except linux.failed as e:
        failures = [str(e)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for f in failures:
        print("failed: " + f)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
