#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rnic latency, bandwidth and soak between two hosts of a network (--topology): stages of switches and cables are those
that are worked out here from the parameters, for sizes, rates and both ways to forward; queues, which a queue worked
out from the frames that left the host has too; the buffer's thresholds; flows beside the measured hosts; ports,
functions and faults; how the simulation is run changes nothing; wrong options are refused in one line.

usage: check_topology.py PROGRAM
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from network_checks import Checks  # noqa: E402

ETHERNET, TAG, ROCE, RETH, ICRC, FCS = 14, 4, 20 + 8 + 12, 16, 4, 4  # bytes; ROCE: IPv4, UDP, BTH
PREAMBLE, GAP, SHORTEST = 8, 12, 64
PS_PER_METRE = 5050
MTU = 2048

PAIR = """
[topology]
kind = "custom"
[[cable]]
ends = ["h1", "s1"]
metres = %(near)d
rate_mbps = %(rate_in)d
[[cable]]
ends = ["h2", "s1"]
metres = %(far)d
rate_mbps = %(rate_out)d
"""

CROWD = """
vlan = 2
priority = 3
[topology]
kind = "star"
hosts = 5
[parameters]
switch.buffer.flow_control = "%s"
driver.lossless_global_pause = false
driver.pfc_mask = 8
[[flow]]
from = ["h2", "h3", "h4"]
to = "h5"
"""


# ---------------------------------------------------------------- what a switch does, worked out

def line_ps(frame, rate_mbps):
    """Of a frame, FCS included, with its preamble."""
    return (frame + PREAMBLE) * 8 * 1000000 // rate_mbps


def packets(size):
    """Bytes on the line of each packet of a WRITE."""
    out, left = [], size
    while True:
        payload = min(left, MTU)
        headers = ETHERNET + ROCE + (RETH if not out else 0) + ICRC + FCS
        out.append(max(headers + (payload + 3) // 4 * 4, SHORTEST))
        left -= payload
        if left == 0:
            return out


def last_of(frames, starts, rate_in, rate_out, hop, stored):
    """When the last of frames whose first bits come at `starts` is ready to leave and leaves, and of what before it
    waits: (store, queue) in ps."""
    free = ready = begun = 0
    for frame, start in zip(frames, starts):
        came_in, goes_out = line_ps(frame, rate_in), line_ps(frame, rate_out)
        store = came_in if stored else max(0, came_in - goes_out)
        ready = start + store + hop
        begun = max(ready, free)
        free = begun + goes_out + GAP * 8 * 1000000 // rate_out
    return store, begun - ready


def stages_of(row):
    """By block and stage, in ps."""
    return {(s["block"], s["stage"]): s["ps"] for s in row["stages"]}


def sent_by(capture, mac):
    """(ns, bytes with FCS) of the frames of one sender."""
    with open(capture, "rb") as f:
        data = f.read()
    assert struct.unpack("<I", data[:4])[0] == 0xa1b23c4d, "not a nanosecond capture"
    at, out = 24, []
    while at < len(data):
        seconds, ns, length, _ = struct.unpack("<IIII", data[at:at + 16])
        frame = data[at + 16:at + 16 + length]
        if frame[6:12] == mac:
            out.append((seconds * 10**9 + ns, length + FCS))
        at += 16 + length
    return out


def check_one_switch(c):
    """Single packets: exact. Messages of several: their own frames are in each other's way, by times of the capture."""
    for stored in (False, True):
        how = "store_and_forward" if stored else "cut_through"
        for rate_in, rate_out in ((40000, 40000), (10000, 10000), (40000, 10000), (10000, 40000)):
            text = PAIR % {"near": 7, "far": 20, "rate_in": rate_in, "rate_out": rate_out}
            network = c.file(text + '[parameters]\nswitch.forwarding = "%s"\nswitch.hop_ps = 321000\n' % how)
            for size in (2, 333, 1024, 2048, 4096, 9000):
                what = "%s, %d to %d Mb/s, %d bytes: " % (how, rate_in, rate_out, size)
                capture = os.path.join(c.folder, "%d.pcap" % c.number)
                result, _ = c.call("latency", "--topology", network, "--sizes", str(size), "--iterations", "1",
                                  "--warm-up", "3", "--pcap", capture)
                row = result["rows"][0]
                stages = stages_of(row)
                c.expect(sum(stages.values()) == row["end_to_end_ps"], what + "stages do not sum to the whole")
                frames = packets(size)
                mac = bytes.fromhex("0002c9000101")
                sent = [s for s in sent_by(capture, mac) if s[1] in frames][-len(frames):]
                c.expect([s[1] for s in sent] == frames, what + "frames of %s bytes, expected %s" % (sent, frames))
                store, queue = last_of(frames, [1000 * s[0] for s in sent], rate_in, rate_out, 321000, stored)
                c.expect(stages.get(("h1_to_s1", "cable")) == 7 * PS_PER_METRE, what + "first cable")
                c.expect(stages.get(("s1_to_h2", "cable")) == 20 * PS_PER_METRE, what + "second cable")
                c.expect(stages.get(("s1", "forward")) == 321000, what + "forward: %s" % stages.get(("s1", "forward")))
                c.expect(stages.get(("s1", "store"), 0) == store, what + "store: %s, worked out %d" %
                         (stages.get(("s1", "store")), store))
                off = abs(stages.get(("s1", "queue"), 0) - queue)
                c.expect(off == 0 if len(frames) == 1 else off <= 2000, what + "queue: %s, worked out %d" %
                         (stages.get(("s1", "queue")), queue))
                c.expect(stages[("h2.adapter.port1", "wire")] == line_ps(frames[-1], rate_out), what + "wire: %d" %
                         stages[("h2.adapter.port1", "wire")])


def check_against_cable(c):
    """What a switch adds to the same hosts at a cable: itself, the second cable, and the bytes where it stores."""
    for forwarding in ("cut_through", "store_and_forward"):
        network = c.file(PAIR % {"near": 3, "far": 3, "rate_in": 40000, "rate_out": 40000} +
                         '[parameters]\nswitch.forwarding = "%s"\n' % forwarding)
        for size in (2, 64, 512, 2048):
            alone, _ = c.call("latency", "--sizes", str(size))
            behind, _ = c.call("latency", "--sizes", str(size), "--topology", network)
            more = 1000 * (behind["rows"][0]["avg_us"] - alone["rows"][0]["avg_us"])
            stored = line_ps(packets(size)[0], 40000) if forwarding == "store_and_forward" else 0
            expected = (250000 + 3 * PS_PER_METRE + stored) / 1000
            # The answer's way is the acknowledgement's, of which nothing waits; clocks of the two hosts differ in phase.
            c.expect(abs(more - expected) < 6, "%s, %d bytes: %.3f ns more than a cable, expected %.3f" %
                     (forwarding, size, more, expected))


def check_many_switches(c):
    result, text = c.call("latency", "--topology", "leaf-spine", "--no-flows", "--sizes", "64")
    stages = stages_of(result["rows"][0])
    c.expect(sum(ps for (_, stage), ps in stages.items() if stage == "forward") == 3 * 250000, "three switches")
    c.expect([s for s in stages if s[1] == "cable"][0][0] == "h1_to_leaf1" and
             sum(ps for (_, stage), ps in stages.items() if stage == "cable") == 4 * 3 * PS_PER_METRE, "four cables")
    way = result["network"]["ways"][0]
    c.expect((way["cables"], way["switches"], len(way["hops"][1])) == (4, 3, 2), "way: %s" % way)
    c.expect("h1 - 3 m, 40 Gb/s - leaf1 - 3 m, 40 Gb/s - spine1 or spine2 - 3 m, 40 Gb/s - leaf4" in text, text[:300])
    read, _ = c.call("latency", "--topology", "leaf-spine", "--no-flows", "--verb", "read", "--sizes", "64",
                    "--between", "h1,h2")
    stages = stages_of(read["rows"][0])
    c.expect(stages[("leaf1", "forward")] == 2 * 250000, "READ goes there and back: %s" % stages.get(("leaf1", "forward")))
    c.expect({b for b, s in stages if s == "cable"} == {"h1_to_leaf1", "leaf1_to_h2", "h2_to_leaf1", "leaf1_to_h1"}, "READ")
    c.expect(sum(stages.values()) == read["rows"][0]["end_to_end_ps"], "READ: sum")


# ---------------------------------------------------------------- others beside them

def port_to(result, to):
    return next(p for p in result["network"]["ports"] if p["to"] == to)


def dropped(result):
    return sum(v for p in result["network"]["ports"] for n, v in p.items() if n.startswith("drop_"))


def check_advice(c):
    """What is said to give more is the field of the line that limits; lines that are as slow are named together."""
    dumbbell = c.file('[topology]\nkind = "dumbbell"\nleft = 2\nright = 2\ntrunk_rate_mbps = 10000\n')
    result, _ = c.call("bandwidth", "--topology", dumbbell, "--no-flows", "--between", "h1,h3", "--sizes", "4096")
    row = result["rows"][0]
    c.expect(row["limited_by"] == "wire, left to right" and row["more_by"] == "more trunk_rate_mbps of the topology",
             "%s: %s" % (row["limited_by"], row["more_by"]))
    star = c.file('[topology]\nkind = "star"\nhosts = 3\nrate_mbps = 10000\n')
    result, _ = c.call("bandwidth", "--topology", star, "--no-flows", "--between", "h1,h3", "--sizes", "4096")
    row = result["rows"][0]
    c.expect(sorted(row["limited_by"].split(" and ")) == ["wire, h1 to s1", "wire, s1 to h3"] and
             set(row["more_by"].split(", ")) == {"more rate_mbps of the topology"}, "%s: %s" % (row["limited_by"], row["more_by"]))


def check_crowd(c):
    """Four senders, one of them measured, have a quarter of the line each. With PFC nothing is lost, and the longest
    queue is what dynamic thresholds give four inputs: from n a B / (1 + n a), where all come at once, to
    B (1 - (1 + a) ** -n), where one comes after the other, with what is theirs beside it; without, a queue has half of
    the buffer at alpha = 1."""
    network = c.file(CROWD % "pfc")
    result, text = c.call("bandwidth", "--topology", network, "--sizes", "65536", "--messages", "300")
    row, port = result["rows"][0], port_to(result, "h5")
    payload = 65536 / (65536 + 32 * (ETHERNET + TAG + ROCE + ICRC + FCS + PREAMBLE + GAP) + RETH) * 40
    c.expect(row["limited_by"] == "wire, s1 to h5", "limited by " + row["limited_by"])
    c.expect(0.93 * payload / 4 < row["goodput_gbps"] < 1.03 * payload / 4, "a quarter: %.3f of %.3f" % (row["goodput_gbps"], payload))
    c.expect(dropped(result) == 0, "%d dropped" % dropped(result))
    c.expect(all(port_to(result, h)["tx_pause"] > 0 for h in ("h1", "h2", "h3", "h4")), "not all are stopped")
    c.expect(row["standstills"].get("pauses of switch s1", 0) > 0.3, "standstills: %s" % row["standstills"])
    headroom = int((301 + 2.16 * 3) * 40 + 2.72 * 4200)
    shared, alpha, n = (12 << 20) - 5 * (4200 + headroom), 8 / 64, 4
    least, most = n * alpha * shared / (1 + n * alpha), shared * (1 - (1 + alpha)**-n) + n * (4200 + headroom)
    c.expect(least < port["most_queued_bytes"] < most, "queue of %d, thresholds give %d to %d" %
             (port["most_queued_bytes"], least, most))
    c.expect("h5" in text and "beside them" in text and str(port["most_queued_bytes"]) in text, "not printed: " + text[-600:])
    c.expect(len(result["network"]["flows"]) == 3 and min(f["goodput_gbps"] for f in result["network"]["flows"]) > 5, "flows")
    alone, _ = c.call("bandwidth", "--topology", network, "--sizes", "65536", "--messages", "100", "--no-flows")
    c.expect(0.97 * payload < alone["rows"][0]["goodput_gbps"] < payload and not alone["network"]["flows"], "alone")
    lossy, _ = c.call("bandwidth", "--topology", c.file(CROWD % "nothing"), "--sizes", "65536", "--messages", "30",
                     "--set", "switch.buffer.bytes=1000000")
    port = port_to(lossy, "h5")
    c.expect(500000 - MTU - 100 < port["most_queued_bytes"] <= 500000, "without flow control: %d" % port["most_queued_bytes"])
    c.expect(port["drop_queue"] > 0 and all(p["tx_pause"] == 0 for p in lossy["network"]["ports"]), "drops, no pauses")


def check_latency_in_crowd(c):
    """A message behind others waits for what is in front of it, and in another priority for a frame at most."""
    text = (CROWD % "pfc").replace('from = ["h2", "h3", "h4"]', 'from = ["h2", "h3"]')
    network = c.file(text)
    behind, _ = c.call("latency", "--topology", network, "--sizes", "64", "--settle", "2000", "--iterations", "10")
    queue = stages_of(behind["rows"][0])[("s1", "queue")]
    longest = port_to(behind, "h5")["most_queued_bytes"] * (1 + (PREAMBLE + GAP) / MTU) * 200
    c.expect(0.5 * longest < queue < 1.02 * longest, "waits %d ps of a queue of %d" % (queue, longest))
    free, _ = c.call("latency", "--topology", network, "--sizes", "64", "--settle", "2000", "--priority", "5",
                    "--set", "switch.buffer.lossless_priorities=40", "--set", "driver.pfc_mask=40",
                    "--set", "switch.scheduling=strict")
    # The line chooses its next frame half a hop ahead: what it has chosen by then goes first, and the frame behind.
    frame = (MTU + ETHERNET + TAG + ROCE + RETH + ICRC + FCS + PREAMBLE + GAP) * 200
    queue = stages_of(free["rows"][0]).get(("s1", "queue"), 0)
    c.expect(queue <= frame + 125000, "waits %d ps in a priority of its own" % queue)
    c.expect(free["rows"][0]["max_us"] < 10, "max %.3f" % free["rows"][0]["max_us"])


def check_file_is_taken(c):
    """VLAN and priority are the file's, unless they are given."""
    network = c.file(CROWD % "pfc")
    for arguments, tag in (([], b"\x81\x00\x60\x02"), (["--priority", "1"], b"\x81\x00\x20\x02"),
                           (["--vlan", "0", "--priority", "0"], b"\x08\x00")):
        capture = os.path.join(c.folder, "%d.pcap" % c.number)
        c.call("latency", "--topology", network, "--no-flows", "--sizes", "64", "--iterations", "1", "--pcap", capture, *arguments)
        with open(capture, "rb") as f:
            c.expect(bytes.fromhex("0002c9000101") + tag in f.read(), "%s: no frame with %s" % (arguments, tag.hex()))


# ---------------------------------------------------------------- with other options

TWO_PORTS = '[topology]\nkind = "leaf-spine"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\nports_per_host = 2\n' \
            '[parameters]\nswitch.buffer.flow_control = "pause"\n'


def check_ports(c):
    """Both ports of a host, each on a leaf of its own; what a flow has beside them."""
    network = c.file(TWO_PORTS)
    both, _ = c.call("bandwidth", "--topology", network, "--port", "1,2", "--qps", "2", "--sizes", "65536", "--messages", "200")
    one, _ = c.call("bandwidth", "--topology", network, "--port", "2", "--sizes", "65536", "--messages", "100")
    c.expect(both["rows"][0]["goodput_gbps"] > 1.3 * one["rows"][0]["goodput_gbps"] > 48, "both: %.3f, one: %.3f" %
             (both["rows"][0]["goodput_gbps"], one["rows"][0]["goodput_gbps"]))
    c.expect([w["hops"][0][0]["to"] for w in both["network"]["ways"]] == ["leaf1", "leaf2", "leaf2", "leaf1"], "ways")
    c.expect(one["network"]["ways"][0]["hops"][0][0]["to"] == "leaf2", "port 2 of h1 is on leaf2")
    use = both["rows"][0]["utilisation"]
    c.expect(min(use["wire, h1 to leaf1"], use["wire, h1 to leaf2"]) > 0.5, "both lines are used: %s" % use)
    beside = c.file(TWO_PORTS + '[[flow]]\nfrom = "h1"\nto = "h4"\nports = [1, 2]\nqps = 2\n')
    shared, _ = c.call("bandwidth", "--topology", beside, "--port", "1,2", "--qps", "2", "--sizes", "65536", "--messages", "200")
    c.expect(shared["rows"][0]["goodput_gbps"] < 0.8 * both["rows"][0]["goodput_gbps"] and
             shared["network"]["flows"][0]["goodput_gbps"] > 5, "beside a flow: %s" % shared["network"]["flows"])
    custom = c.file(PAIR % {"near": 3, "far": 3, "rate_in": 40000, "rate_out": 40000})
    with open(custom, encoding="utf-8") as f:
        second = c.file(f.read().replace('"h2"', '"h2.2"'))
    result, _ = c.call("latency", "--topology", second, "--sizes", "2")
    c.expect(("h2.adapter.port2", "wire") in stages_of(result["rows"][0]), "h2 has its second port alone")
    c.refuse(["--port", "port 1 of h2", "expected 2"], "latency", "--topology", second, "--port", "1")


def check_functions_and_faults(c):
    guest, _ = c.call("latency", "--topology", "dumbbell", "--no-flows", "--sizes", "64", "--functions", "4", "--function", "3")
    c.expect(dropped(guest) == 0 and guest["network"]["ports"][0]["tx_gbps"] > 0, "a virtual function's frames have no way")
    c.expect(guest["rows"][0]["typical_us"] < 3, "typical %.3f" % guest["rows"][0]["typical_us"])
    lost, _ = c.call("soak", "--topology", "dumbbell", "--no-flows", "--messages", "2000", "--qps", "8", "--drop", "1", "--duplicate", "1")
    c.expect(lost["clean"] and lost["faults"]["a_to_b"]["drop"] > 0 and lost["faults"]["b_to_a"]["drop"] > 0, "soak: %s" % lost["faults"])
    plan = c.file("[[event]]\nflow = 1\nnth = 3\ntype = \"drop\"\ndirection = \"a_to_b\"\nopcode = \"rdma_write\"\n")
    late, _ = c.call("latency", "--topology", "star", "--no-flows", "--sizes", "64", "--iterations", "20", "--faults", plan)
    c.expect(late["faults"]["rules"][0]["hits"] == 1 and late["statistics"]["cable.a_to_b.frames"] > 20, "plan: %s" % late["faults"])
    outage = c.file("[[outage]]\nport = 1\ndown_us = 12000\nlasts_us = 50\n")
    result, _ = c.call("soak", "--topology", "star", "--no-flows", "--messages", "20000", "--qps", "8", "--faults", outage)
    lost = [result["counters"][n] for n in ("h1.adapter.port1.drop_link_down", "h1.adapter.port1.drop_tx_link_down",
                                            "s1.port0.drop_no_line")]
    c.expect(result["clean"] and min(lost) > 0, "outage: %s lost, clean: %s" % (lost, result["clean"]))
    for side in ("a", "b"):
        result, _ = c.call("latency", "--topology", "star", "--no-flows", "--sizes", "64", "--set", side + ".rtl.icrc=rtl")
        plain, _ = c.call("latency", "--topology", "star", "--no-flows", "--sizes", "64")
        c.expect(result["rows"] == plain["rows"], side + ".rtl.icrc=rtl changes times")


def check_runs(c):
    network = c.file(CROWD % "pfc")
    arguments = ["--topology", network, "--sizes", "4096", "--messages", "200", "--seed", "3"]
    first, _ = c.call("bandwidth", *arguments)
    for how in ("sim.always_tick=true", "sim.shuffle_seed=7", "sim.run_ahead=false"):
        other, _ = c.call("bandwidth", *arguments, "--set", how)
        for result in (first, other):
            for key in ("parameters", "set", "file"):
                result.pop(key, None)
            for row in result["rows"]:
                row.pop("simulator", None)
        c.expect(first["network"] == other["network"] and first["rows"] == other["rows"] and
                 first["statistics"] == other["statistics"], how + ": another run")


def check_flaps(c):
    """The cable of a host that fills a lossless queue is out for 3 us, twenty times: what was on it is lost, and nothing for
    want of headroom, since the switch stops it anew each time."""
    outages = c.file("[[outage]]\ndown_us = 700\nlasts_us = 3\nevery_us = 100\ntimes = 20\n")
    result, _ = c.call("bandwidth", "--sizes", "65536", "--topology", "incast", "--between", "h1,h9", "--settle", "300",
                       "--faults", outages, "--messages", "20")
    ports = result["network"]["ports"]
    c.expect(ports[0]["to"] == "h1" and ports[0]["drop_no_line"] > 0 and ports[0]["tx_pause"] >= 20, ports[0])
    c.expect(all(p["drop_headroom"] == 0 for p in ports), "lossless frames lost: %s" % [p["drop_headroom"] for p in ports])


def check_refusals(c):
    star = ["--topology", "star"]
    c.refuse(["--between", "only with --topology"], "latency", "--between", "h1,h2")
    c.refuse(["--no-flows", "only with --topology"], "bandwidth", "--no-flows")
    c.refuse(["--settle", "only with --topology"], "soak", "--settle", "3")
    c.refuse(["--cable", "metres"], "latency", *star, "--cable", "3")
    c.refuse(["--rate", "rate_mbps"], "bandwidth", *star, "--rate", "40000")
    c.refuse(["--between", "no host h9", "h1, h2, h3, h4"], "latency", *star, "--between", "h1,h9")
    c.refuse(["--between", "two different"], "latency", *star, "--between", "h1,h1")
    c.refuse(["--between", "h1", "two hosts, as in h1,h2"], "latency", *star, "--between", "h1")
    c.refuse(["--port", "port 2 of h1", "expected 1"], "soak", *star, "--port", "1,2")
    c.refuse(["--port", "1,1", "1,2"], "bandwidth", "--topology", c.file(TWO_PORTS), "--port", "1,1")
    c.refuse(["none.toml", "cannot be read", "leaf-spine"], "latency", "--topology", "none.toml")
    c.refuse(["no parameter cable.metres"], "latency", *star, "--set", "cable.metres=3")
    c.refuse([":2:", "hosts", "65", "2 to 64"], "latency", "--topology", c.file('[topology]\nhosts = 65\nkind = "star"\n'))
    islands = '[topology]\nkind = "custom"\n[[cable]]\nends = ["h1", "s1"]\n[[cable]]\nends = ["h2", "s2"]\n'
    c.refuse(["--between", "no way leads from port 1 of h1 to port 1 of h2"], "latency", "--topology", c.file(islands))
    c.refuse(["1 host, expected 2"], "latency", "--topology", c.file('[topology]\nkind = "custom"\n[[cable]]\nends = ["h1", "s1"]\n'))
    flow = '[topology]\nkind = "star"\nhosts = 2\n[[flow]]\nfrom = "h1"\nto = "h2"\nports = %s\n'
    c.refuse([":7:", "ports", "port 2 of h1 has no cable"], "latency", "--topology", c.file(flow % "2"))
    c.refuse([":7:", "ports", "3", "1, 2 or both"], "latency", "--topology", c.file(flow % "[1, 3]"))
    c.refuse([":6:", "ports_per_host", "2 or more leaves"], "latency", "--topology", c.file(
        '[topology]\nkind = "leaf-spine"\nleaves = 1\nspines = 1\nhosts_per_leaf = 2\nports_per_host = 2\n'))


def main():
    with tempfile.TemporaryDirectory() as folder:
        c = Checks(sys.argv[1], folder)
        for check in (check_refusals, check_one_switch, check_against_cable, check_many_switches, check_advice, check_crowd,
                      check_latency_in_crowd, check_file_is_taken, check_ports, check_functions_and_faults, check_flaps, check_runs):
            if len(sys.argv) > 2 and sys.argv[2] != check.__name__:
                continue
            try:
                check(c)
            except (RuntimeError, KeyError, AssertionError) as e:
                c.expect(False, "%s: %r" % (check.__name__, e))
    for fault in c.faults:
        print(fault)
    return 1 if c.faults else 0


if __name__ == "__main__":
    sys.exit(main())
